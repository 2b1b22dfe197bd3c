"""Honest bundles of every kind, each accepted with its marks.

The boards are as small here as the datasets: three tasks of GTA-Atomic, two of GTA-Workflow.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.cli.bundles import make_bundle
from gta_bench.errors import GtaError
from gta_bench.harnesses.choice import CellLimits, Harness
from gta_bench.judging import prompts
from gta_bench.leaderboard.submission import EntryLabel
from gta_bench.records.judges import PROMPT_DIGESTS
from gta_bench.records.leaderboard import Mark
from gta_bench.records.run import Limits, Mode, System
from gta_bench.settings import BudgetSettings, Settings
from tests.builders import atomic_task, call, parameter, reply, tool, write_atomic
from tests.harnesses.scripted import run_atomic, set_price
from tests.leaderboard.bundles import SIMILARITY
from tests.leaderboard.submitting import NAME, Made, check, imported, model, pack
from tests.needs import needs

pytestmark = pytest.mark.usefixtures("small_boards")
SETTINGS = Settings.model_validate({"scoring": {"similarity": SIMILARITY}})

HARNESS = System(model="openai/m", agent="harness", harness="my-harness")
CELL = Limits(seconds=60, memory_bytes=1 << 30, processes=9)
HONEST: dict[str, tuple[dict[str, Any], int, tuple[Mark, ...]]] = {
    "results of a folder": ({}, 0, ("imported",)),
    "a scripted model": (
        {"system": System(model=NAME, agent="react")},
        0,
        ("imported", "scripted model"),
    ),
    "a harness in a cell": (
        {"system": HARNESS, "network": "tools", "limits": CELL},
        1,
        ("imported",),
    ),
    "a harness on the open network": (
        {"system": HARNESS, "network": "open", "limits": CELL},
        1,
        ("imported", "open network"),
    ),
    "a harness that was tried twice": (
        {"system": HARNESS, "network": "tools", "limits": CELL},
        2,
        ("imported", "retried"),
    ),
    "tools of its own": ({"tools": "own"}, 0, ("imported", "own tools")),
    "a tape": (
        {"tape": {"mode": "replay", "origin": "live", "digest": "d" * 64}},
        0,
        ("imported", "taped"),
    ),
    "a tape that is recorded": (
        {"tape": {"mode": "record", "origin": "live", "digest": "d" * 64}},
        0,
        ("imported", "taped"),
    ),
    "published words": (
        {"system": System(model="openai/m", agent="react-upstream"), "wording": "published"},
        0,
        ("imported",),
    ),
    "notes of its own": ({"notes": ("anything",)}, 0, ("imported",)),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_bundle_is_accepted_with_its_marks(
    data: Mapping[str, Path], tmp_path: Path, name: str
) -> None:
    changes, tried, marks = HONEST[name]
    run = imported(data, tmp_path / "run", tried, **changes)
    checked = check(pack(run, data["atomic"], tmp_path), data["atomic"], tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    assert checked.entry.status == "self-reported"
    assert {*checked.entry.marks} == {*marks, "other similarity"}, "scored by exact-or-half"
    assert checked.entry.attempts == (3 * tried or None)
    assert not any("anything" in note for note in checked.entry.notes)


@pytest.mark.parametrize("name", ["atomic", "workflow", "imported"])
def test_an_honest_run_is_accepted(made: Mapping[str, Made], tmp_path: Path, name: str) -> None:
    checked = check(made[name].bundle, made[name].data, tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    known = {
        "atomic": (("scripted model", "other similarity"), 3),
        "workflow": (("scripted model", "scripted judge"), 2),
        "imported": (("imported", "other similarity"), None),
    }
    assert (checked.entry.marks, checked.entry.attempts) == known[name]
    assert checked.entry.status == "self-reported"


def failing(*faults: BaseException | None) -> Model:
    """Raises these, one a call, and then answers as the others do."""
    left = list(faults)

    def reply(*_: Any) -> ModelOutput:
        fault = left.pop(0) if left else None
        if fault is not None:
            raise fault
        output = ModelOutput.from_content(NAME, "7")
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), RuntimeError("down")])
def test_an_honest_run_that_was_broken_off_is_accepted(
    data: Mapping[str, Path], tmp_path: Path, fault: BaseException
) -> None:
    """An interrupt leaves a log behind whose samples the next one has too."""
    settings = SETTINGS.model_copy(update={"budget": BudgetSettings(max_connections=1)})
    run = tmp_path / "run"
    for one in (failing(None, None, fault, *[RuntimeError("down")] * 9), failing()):
        with suppress(GtaError, KeyboardInterrupt):
            gta_bench.run("atomic", run, model=one, data=data["atomic"], settings=settings)
    checked = check(pack(run, data["atomic"], tmp_path), data["atomic"], tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    assert checked.entry.marks == ("scripted model", "other similarity", "retried")
    assert checked.entry.attempts == (4 if isinstance(fault, KeyboardInterrupt) else 5)


SUM = {"expression": "6*7 + 100000 - 100000"}
CALCULATOR = tool("Calculator", parameter("expression"))


def calculating(agent: str) -> Model:
    """Calls the calculator in the agent's protocol, then answers."""

    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        began = not any(message.role == "assistant" for message in messages)
        if began and agent == "toolcalling":
            output = ModelOutput.for_tool_call(NAME, "Calculator", SUM)
        elif began:
            action = f"Thought: Count.\nAction: Calculator\nAction Input: {json.dumps(SUM)}\n"
            output = ModelOutput.from_content(NAME, action)
        else:
            said = "" if agent == "toolcalling" else "Final Answer: "
            output = ModelOutput.from_content(NAME, f"{said}It is 42.")
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


@pytest.mark.parametrize("agent", ["toolcalling", "react", "react-upstream"])
def test_an_agent_that_calls_tools_is_accepted(tmp_path: Path, agent: str) -> None:
    dialogs = [
        {"role": "user", "content": "How much is it?"},
        call("Calculator", SUM),
        reply("Calculator", "42"),
        {"role": "assistant", "content": "It is 42."},
    ]
    accepted = {"whitelist": [["42"]], "blacklist": None}
    task = atomic_task(tools=[CALCULATOR], files=[], dialogs=dialogs, gt_answer=accepted)
    data = write_atomic(tmp_path / "data", {str(n): task for n in range(3)}, [CALCULATOR])
    runs = [tmp_path / "step", tmp_path / "end"]
    for run, mode in zip(runs, get_args(Mode), strict=True):
        asked = {"model": calculating(agent), "agent": agent, "mode": mode, "settings": SETTINGS}
        gta_bench.run("atomic", run, data=data, **asked)
    out = tmp_path / "both.zip"
    make_bundle(runs, out, tmp_path / "key.pem", EntryLabel(), None, SETTINGS, str(data))
    checked = check(out, data, tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    assert checked.entry.scores["arg_acc"].value == 100
    assert checked.entry.scores["l_f1"].value == 100


ASKING = """
import json, os, urllib.request

body = {"model": "inspect", "messages": [{"role": "user", "content": "How much?"}]}
for _ in range(2):
    reply = json.load(urllib.request.urlopen(urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer none"},
    )))
print(reply["choices"][0]["message"]["content"])
"""


@pytest.mark.slow
@needs("bwrap")
def test_a_harness_that_asks_its_model_in_a_cell_is_accepted(
    data: Mapping[str, Path], tmp_path: Path
) -> None:
    set_price()
    (tmp_path / "harness.py").write_text(ASKING, encoding="utf-8")
    command = f"python3 {tmp_path / 'harness.py'}"
    harness = Harness(kind="command", target=command, limits=CellLimits(seconds=300))
    units = run_atomic(harness, model("7"), data["atomic"], ":", tmp_path / "run")
    assert [unit.answer for unit in units] == ["7"] * 3
    gta_bench.score(tmp_path / "run", settings=SETTINGS)
    bundle = pack(tmp_path / "run", data["atomic"], tmp_path)
    checked = check(bundle, data["atomic"], tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    assert checked.entry.marks == ("scripted model", "other similarity")
    assert checked.entry.costs.usd == 9.0


@pytest.mark.parametrize(
    ("answered", "marked"),
    [
        ("mockllm/model", False),
        ("model-2026-11-16", False),
        ("Model-latest", False),
        ("model-mini", True),
        ("gpt-5", True),
    ],
)
def test_a_model_that_answers_by_another_name_is_marked(
    data: Mapping[str, Path], tmp_path: Path, answered: str, marked: bool
) -> None:
    named = model("7", answered)
    run = tmp_path / "run"
    gta_bench.run("atomic", run, model=named, data=data["atomic"], settings=SETTINGS)
    checked = check(pack(run, data["atomic"], tmp_path), data["atomic"], tmp_path / "open")
    assert checked.findings == ()
    assert checked.entry is not None
    assert ("name differs" in checked.entry.marks) == marked
    assert (f"its model answered as {answered!r}" in checked.entry.notes) == marked


def test_every_version_knows_its_own_judge() -> None:
    assert prompts.digest() in PROMPT_DIGESTS, "add the digest of the new prompts there"
