"""`--estimate`: a range before the first unit, and what finished units say of the rest."""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import gta_bench
from gta_bench.datasets.atomic import load_atomic
from gta_bench.judging import prompts
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.verdicts import append_verdicts
from tests.authored import TASK, write_task
from tests.builders import (
    atomic_task,
    checkpoint,
    tool,
    workflow_task,
    write_atomic,
    write_json,
    write_workflow,
)
from tests.chat_server import ChatServer, chat_server
from tests.cli.test_run import gta
from tests.content.conftest import jail
from tests.judging.builders import names, question, verdict

__all__ = ["jail"]
WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "larch")
WRITER = tool(
    "CsvFileGenerator",
    {"type": "text", "name": "filename", "description": "Name."},
    {"type": "text", "name": "data_str", "description": "Rows."},
)
BY_CHECKS = """\
format = 1
id = "checked"

[deliverables]
"summary.csv" = "csv"

[[leaf]]
id = "there"
says = "summary.csv is there."
checks = [{ is = "file.exists", file = "summary.csv" }]
"""
LINE = re.compile(
    r"(?P<units>\d+) units? left, (?P<calls>.+?) calls?, (?P<input>.+?) input and "
    r"(?P<output>.+?) output tokens, (?P<cost>.+?) \((?P<basis>.+)\)\."
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")


def write_settings(url: str = "http://127.0.0.1:9/v1") -> None:
    models = "".join(
        f'[models.{name}]\nmodel = "openai-api/local/{name}"\nbase_url = "{url}"\n'
        'key_env = "GTA_TEST_KEY_A"\ninput_price = 2\noutput_price = 8\n'
        for name in ("m", "judge")
    )
    text = f'[scoring]\nsimilarity = "exact-or-half"\n{models}'
    Path("gta.toml").write_text(text, encoding="utf-8")


def lines(result: Result) -> list[dict[str, str]]:
    return [found.groupdict() for found in LINE.finditer(result.stderr)]


def ends(text: str) -> tuple[float, float]:
    found = [float(part.strip("$").replace(",", "")) for part in text.split(" to ")]
    return found[0], found[-1]


def prose(seed: str, least: int, most: int) -> str:
    """Words of a length that the seed decides."""
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(least, most)))


def counted(request: dict[str, Any], choice: dict[str, Any]) -> tuple[int, int]:
    """Tokens of 3.3 characters, with what a template adds: not those of the estimate."""
    sent = json.dumps([request["messages"], request.get("tools", [])])
    written = json.dumps(choice["message"])
    return int(len(sent) / 3.3) + 20, int(len(written) / 3.3)


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"message": message, "finish_reason": "tool_calls"}


def task_text(request: dict[str, Any]) -> str:
    """What the user asked for."""
    return json.dumps([one for one in request["messages"] if one["role"] == "user"][:2])


def agent(request: dict[str, Any], calls: int) -> str | dict[str, Any]:
    """Calls a tool so many times, then answers; lengths vary."""
    turn = sum(one["role"] == "assistant" for one in request["messages"])
    seed = f"{task_text(request)} {turn}"
    if turn < calls:
        name = request["tools"][0]["function"]["name"]
        if name == "CsvFileGenerator":
            rows = [["word"], *([word] for word in prose(seed, 20, 300).split())]
            return called(name, {"filename": f"table{turn}", "data_str": json.dumps(rows)})
        return called(name, {"note": prose(seed, 5, 80)})
    return prose(seed, 10, 150)


def judge(request: dict[str, Any]) -> str:
    (name,) = names(request)
    reason = prose(question(request), 10, 60)
    return json.dumps(verdict(name, score=random.Random(reason).randint(0, 10), reason=reason))


def reply(request: dict[str, Any]) -> str | dict[str, Any]:
    if request["model"] == "judge":
        return judge(request)
    found = re.search(r"Task (\d+)", task_text(request))
    assert found is not None
    return agent(request, calls=2 + int(found[1]) % 3)


def measured(run: str) -> tuple[int, int]:
    """The tokens that the units of a run took."""
    units: list[AtomicUnit | WorkflowUnit] = [*gta_bench.units(run)]
    own = [unit.usage for unit in units]
    return sum(one.input_tokens for one in own), sum(one.output_tokens for one in own)


def check(found: Mapping[str, str], took: tuple[int, int], label: str) -> None:
    """The middle within a factor of 1.5, and the range around it."""
    for name, real in zip(("input", "output"), took, strict=True):
        low, high = ends(found[name])
        middle = (low + high) / 2
        print(f"{label} {name}: {low:,.0f} to {high:,.0f}, took {real:,}, {middle / real:.2f}")
        assert low <= real <= high
        assert 1 / 1.5 <= middle / real <= 1.5, (label, name, low, high, real)
    assert "from the usage of 5 finished units" in found["basis"]


def run_in_two(server: ChatServer, command: tuple[str, ...], count: int) -> tuple[Result, Result]:
    """Five tasks, an estimate of the others that asks nothing, and the others."""
    server.usage = counted
    first = gta(*command, "--tasks", "0:5", "--out", "runs/first")
    assert first.exit_code == 0, first.output
    asked = server.asked
    whole = ("--tasks", f"0:{count}", "--out", "runs/first")
    estimated = gta(*command, *whole, "--estimate")
    assert server.asked == asked
    rest = gta(*command, "--tasks", f"5:{count}", "--out", "runs/rest")
    assert rest.exit_code == 0, rest.output
    return estimated, rest


def write_twenty(released: Path, folder: Path) -> dict[str, int]:
    """Every eleventh task of GTA-Atomic; how many calls its reference makes, by its request."""
    folder.mkdir()
    tasks = json.loads((released / "dataset.json").read_text(encoding="utf-8"))
    write_json(folder / "dataset.json", dict([*tasks.items()][:220:11]))
    for name in ("toolmeta.json", "image"):
        (folder / name).symlink_to(released / name)
    loaded = load_atomic(folder).tasks.values()
    return {task.request: len(task.calls) for task in loaded}


@pytest.mark.parametrize("mode", ["step", "end-to-end"])
def test_five_units_of_gta_atomic_tell_what_the_other_fifteen_take(
    loopback: None, atomic_dir: Path, mode: str
) -> None:
    calls = write_twenty(atomic_dir, Path("data"))
    gta("tape", "from-reference", "--data", "data", "--out", "tape")
    tape = () if mode == "step" else ("--tape", "tape")
    command = ("run", "atomic", "--mode", mode, "--model", "m", "--data", "data", *tape)

    def follow(request: dict[str, Any]) -> str | dict[str, Any]:
        """A model that needs about as many turns as the reference."""
        said = task_text(request)
        (own,) = (count for text, count in calls.items() if json.dumps(text)[1:-1] in said)
        return agent(request, own + random.Random(said).choice([-1, 0, 1]))

    with chat_server(follow) as server:
        write_settings(server.url)
        estimated, rest = run_in_two(server, command, 20)
    (found,), (begun,) = lines(estimated), lines(rest)
    assert found["units"] == begun["units"] == "15"
    assert "a guess of 4 characters a token" in begun["basis"]
    check(found, measured("runs/rest"), mode)


def write_tasks(folder: Path) -> None:
    """Ten tasks with two to six leaves."""
    tasks = {}
    for number in range(10):
        leaves = [
            checkpoint(f"cp1-{leaf}", requirements=prose(f"{number} {leaf}", 8, 40))
            for leaf in range(random.Random(number).randint(2, 6))
        ]
        text = f"Task {number}. Write tables about {prose(str(number), 10, 120)}."
        tasks[str(number)] = workflow_task(
            tools=["CsvFileGenerator"],
            sub_tasks=[checkpoint("cp1", *leaves)],
            dialogs=[{"role": "user", "content": text}],
        )
    write_workflow(folder, tasks, toolmeta=[WRITER])


def test_five_units_of_gta_workflow_tell_what_the_others_and_their_judge_take(
    loopback: None,
) -> None:
    write_tasks(Path("data"))
    command = ("run", "workflow", "--model", "m", "--judge", "judge", "--data", "data")
    with chat_server(reply) as server:
        write_settings(server.url)
        estimated, rest = run_in_two(server, command, 10)
    own, judged = lines(estimated)
    assert own["units"] == judged["units"] == "5"
    assert [one["units"] for one in lines(rest)] == ["5", "5"]
    check(own, measured("runs/rest"), "workflow")
    rows = gta_bench.verdicts("runs/rest").values()
    took = sum(row.input_tokens for row in rows), sum(row.output_tokens for row in rows)
    check(judged, took, "judge")
    assert judged["calls"] == str(len(rows))


@pytest.mark.parametrize(
    ("options", "assumed"),
    [
        (("atomic", "--mode", "step"), "replies as long as the reference's or 500 tokens longer"),
        (("atomic", "--mode", "end-to-end"), "from the reference's turns to all 10"),
        (("workflow",), "from 3 turns a task to all 10"),
    ],
)
def test_before_the_first_unit_the_line_says_what_it_assumes_and_nothing_is_written(
    options: tuple[str, ...], assumed: str
) -> None:
    write_settings()
    write_atomic(Path("data/gta_atomic"), {"0": atomic_task(), "1": atomic_task()})
    write_workflow(Path("data/gta_workflow"))
    result = gta("run", *options, "--model", "m", "--estimate", "--out", "runs/x")
    assert result.exit_code == 0, result.output
    (found,) = lines(result)
    assert assumed in found["basis"]
    for part in ("calls", "input", "output"):
        low, high = ends(found[part])
        assert 0 < low <= high
    assert found["cost"].startswith("$")
    assert not Path("runs").exists()


def test_judges_are_estimated_with_their_repeats() -> None:
    write_settings()
    write_workflow(Path("data/gta_workflow"))
    with Path("gta.toml").open("a", encoding="utf-8") as file:
        file.write('[judge]\nmodel = "judge"\nrepeats = 3\n')
    result = gta("run", "workflow", "--agent", "silent", "--estimate", "--out", "runs/x")
    (found,) = lines(result)
    assert (found["units"], found["calls"]) == ("1", "6")
    assert "tokens of evidence per call" in found["basis"]


def test_only_leaves_that_a_judge_may_decide_are_estimated() -> None:
    """Six calls were announced where checks decided three of six leaves."""
    write_settings()
    write_task(Path("data"))
    write_task(Path("data"), BY_CHECKS, name="checked")
    run = ("run", "workflow", "--agent", "silent", "--data", "data", "--judge", "judge")
    (found,) = lines(gta(*run, "--estimate", "--out", "runs/x"))
    assert (found["units"], found["calls"]) == ("1", "2")
    Path("data/q3-sales/task.toml").write_text(TASK.replace('by = "check-then-judge"', ""))
    assert "1 unit left, 1 call, " in gta(*run, "--estimate", "--out", "runs/x").stderr


def test_a_leaf_that_failed_its_checks_waits_for_no_judge(jail: object) -> None:
    write_settings()
    write_task(Path("data"))
    run = ("run", "workflow", "--agent", "silent", "--data", "data", "--out", "runs/x")
    gta(*run)
    estimate = (*run, "--judge", "judge", "--estimate")
    assert [one["units"] for one in lines(gta(*estimate))] == ["1"]
    key = VerdictKey(task="q3-sales", leaf="advice", judge="openai-api/local/judge")
    row = VerdictRow(key=key, verdict=Scored(value=5), prompts=prompts.digest())
    append_verdicts(Path("runs/x"), [row])
    assert "nothing to estimate" in gta(*estimate).stderr


def test_judging_a_stored_run_is_estimated_before_anything_is_sent_or_written(
    loopback: None,
) -> None:
    write_tasks(Path("data"))
    score = ("score", "runs/x", "--judge", "judge")
    with chat_server(reply) as server:
        server.usage = counted
        write_settings(server.url)
        command = ("run", "workflow", "--model", "m", "--data", "data", "--out", "runs/x")
        assert gta(*command, "--tasks", "0:2").exit_code == 0
        asked, files = server.asked, sorted(Path("runs/x").rglob("*"))
        (found,) = lines(gta(*score, "--estimate"))
        first, second = lines(gta(*score, "--judge", "m", "--cascade", "1", "--estimate"))
        assert (server.asked, sorted(Path("runs/x").rglob("*"))) == (asked, files)
        assert gta(*score).exit_code == 0
        rows = gta_bench.verdicts("runs/x").values()
        assert (found["units"], found["calls"]) == ("2", str(len(rows)))
        for part, took in (
            ("input", sum(row.input_tokens for row in rows)),
            ("output", sum(row.output_tokens for row in rows)),
        ):
            low, high = ends(found[part])
            assert low <= took <= high
        assert first == found
        assert ends(second["calls"])[0] == 0
        assert "runs/x: nothing to estimate" in gta(*score, "--estimate").stderr
    assert "--estimate needs" in str(gta("score", "runs/x", "--estimate").exception)


def test_longer_replies_than_allowed_are_not_expected() -> None:
    write_settings()
    write_atomic(Path("data/gta_atomic"), {"0": atomic_task()})
    command = ("run", "atomic", "--mode", "step", "--model", "m", "--estimate", "--out", "runs/x")
    (found,) = lines(gta(*command, "--max-tokens", "4"))
    assert ends(found["output"])[1] <= 8


def test_where_nothing_can_be_known_that_is_said() -> None:
    write_settings()
    write_atomic(Path("data/gta_atomic"), {"0": atomic_task()})
    command = ("run", "atomic", "--mode", "step", "--agent", "gold", "--estimate", "--out", "r")
    assert "r: nothing to estimate" in gta(*command).stderr
