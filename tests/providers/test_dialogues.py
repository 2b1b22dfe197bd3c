"""Twelve dialogues of the default agent with every strict server: no request is refused.

The agent runs as a user runs it, through Inspect's providers and the vendors' packages. That
nothing was refused is one half; the other is that every block of every reply came back unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import gta_bench
from gta_bench.agents.models import choose_model
from gta_bench.records.run import Mode
from gta_bench.records.units import AtomicUnit
from gta_bench.running.feedback import run_rounds
from gta_bench.settings import BudgetSettings, ModelSettings, ScoringSettings, Settings
from tests.builders import atomic_task, call, parameter, reply, tool, write_atomic
from tests.planning import planned
from tests.providers.apis import APIS, google_warnings
from tests.providers.core import (
    Call,
    Conversation,
    Refusal,
    Reply,
    StrictServer,
    strict_server,
)
from tests.tasks.workflow_runs import judge_by_words, unwatched, write_dataset

pytestmark = google_warnings

SIX, SEVEN = Call({"expression": "6*7"}), Call({"expression": "42+1"})
ANSWER = Reply("It is 42.", thought="That is all.")
CALLED = ("call", "reply")


@dataclass(frozen=True)
class Dialogue:
    """What the model says, and the trace and the unusual ends that come of it."""

    script: Sequence[Reply | Refusal]
    trace: Sequence[str]
    stops: Sequence[str] = ()


DIALOGUES = {
    "parallel-calls": Dialogue([Reply(calls=(SIX, SEVEN, SIX)), ANSWER], [*CALLED * 3, "answer"]),
    "reasoning-before-calls": Dialogue(
        [
            Reply("Let me see.", thought="First this.", calls=(SIX,)),
            Reply(thought="Then both.", calls=(SEVEN, SIX)),
            ANSWER,
        ],
        [*CALLED * 3, "answer"],
    ),
    "tool-errors": Dialogue(
        [
            Reply(thought="Try.", calls=(Call({"expression": "6/0"}), Call({}, "Nothing"), SIX)),
            ANSWER,
        ],
        [*CALLED, "call", *CALLED, "answer"],
    ),
    "cut-off": Dialogue(
        [
            Reply(calls=(SIX,)),
            Reply("The answer is", stop="cut off"),
            Reply(thought="So much to think", stop="cut off"),
            Reply(thought="Again.", calls=(SIX, SEVEN), stop="cut off"),
            ANSWER,
        ],
        [*CALLED, "malformed", "malformed", *CALLED, "call", "answer"],
        ["cut off"] * 3,
    ),
    "refusal": Dialogue(
        [Reply(calls=(SIX,)), Reply("I cannot help with that.", stop="refused")],
        [*CALLED, "malformed"],
        ["refused"],
    ),
    "empty-reply": Dialogue(
        [Reply(calls=(SIX,)), Reply(), Reply(calls=(SEVEN,)), ANSWER],
        [*CALLED, "malformed", *CALLED, "answer"],
        ["empty"],
    ),
    "10-turns": Dialogue(
        [
            *(
                Reply(thought=f"Turn {turn}.", calls=(SIX, SEVEN)[: 1 + turn % 2])
                for turn in range(9)
            ),
            ANSWER,
        ],
        [*CALLED * 13, "answer"],
    ),
}
# Arguments that are text can be broken; where they are objects they can only be the wrong ones,
# and Gemini says that it could not read its own call, which Inspect lets it repeat twice.
BROKEN = Reply(thought="Now.", calls=(Call('{"expression": "6*'), SIX))
WRONG = Reply(thought="Now.", calls=(Call({"formula": "6*7"}), SIX))
MALFORMED = {
    **dict.fromkeys(APIS, Dialogue([BROKEN, ANSWER], ["call", *CALLED, "answer"])),
    "anthropic": Dialogue([WRONG, ANSWER], ["call", *CALLED, "answer"]),
    "gemini": Dialogue(
        [WRONG, *[Reply(stop="malformed")] * 3, ANSWER],
        ["call", *CALLED, "malformed", "answer"],
        ["malformed call"],
    ),
}


# What a dialogue meets that outgrew the model's window.
OVERFLOW = {
    **dict.fromkeys(
        APIS,
        Refusal("Your input exceeds the context window.", code="context_length_exceeded"),
    ),
    "anthropic": Refusal("prompt is too long: 210001 tokens > 200000 maximum"),
    "gemini": Refusal("The input token count exceeds the maximum number of tokens allowed."),
    "compatible": Refusal("This model's maximum context length is 4096 tokens."),
}
RESUMED = "resume"
# Inspect's eval set tries a failed unit once more by itself.
FAILED: list[Reply | Refusal] = [
    Reply(thought="First this.", calls=(SIX, SEVEN)),
    Refusal("No credit.", status=403),
] * 2
CALCULATOR = tool("Calculator", parameter("expression"))


def dialogues_of(api: str) -> dict[str, Dialogue]:
    overflow = Dialogue([Reply(calls=(SIX,)), OVERFLOW[api]], CALLED, ["context"])
    return {**DIALOGUES, "malformed-arguments": MALFORMED[api], "overflow": overflow}


def question(name: str) -> str:
    return f"What is 6 times 7, and one more? ({name})"


@dataclass(frozen=True)
class Played:
    """All dialogues with one server, by their names."""

    api: str
    conversations: Mapping[str, Conversation]
    units: Mapping[str, AtomicUnit]
    # Replies of the dialogue to be resumed that the first run did not get.
    left: int


@pytest.fixture(scope="module", params=APIS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One run has them all; the one that fails is resumed by a second run."""
    api: str = request.param
    folder = tmp_path_factory.mktemp(api)
    scripts: dict[str, list[Reply | Refusal]] = {
        name: [*dialogue.script] for name, dialogue in dialogues_of(api).items()
    }
    scripts[RESUMED] = [*FAILED, Reply(thought="First this.", calls=(SEVEN, SIX)), ANSWER]
    data = write_data(folder / "data", scripts)
    asked = {question(name): script for name, script in scripts.items()}
    with strict_server(APIS[api], asked) as server:
        run(server, data, folder / "run", "end-to-end")
        left = len(server.conversations[question(RESUMED)].script)
        run(server, data, folder / "run", "end-to-end")
    units = {unit.task.id: unit for unit in gta_bench.units(folder / "run")}
    found = {name: server.conversations[question(name)] for name in scripts}
    return Played(api, found, units, left)  # type: ignore[arg-type]


def write_data(folder: Path, names: Iterable[str]) -> Path:
    """A task for every name."""
    reference = [
        call("Calculator", {"expression": "6*7"}),
        reply("Calculator", "42"),
        call("Calculator", {"expression": "42+1"}),
        reply("Calculator", "43"),
        {"role": "assistant", "content": "They are 42 and 43."},
    ]
    tasks = {
        name: atomic_task(
            tools=[CALCULATOR],
            dialogs=[{"role": "user", "content": question(name)}, *reference],
            gt_answer={"whitelist": [["42"]], "blacklist": None},
        )
        for name in names
    }
    return write_atomic(folder, tasks, toolmeta=[CALCULATOR])


def settings(server: StrictServer) -> Settings:
    held = ModelSettings(
        model=server.api.model,
        base_url=server.url,
        key_env="STRICT_KEY",
        generate=server.api.generate,
        args=server.api.args,
    )
    return Settings(
        models={"strict": held},
        budget=BudgetSettings(max_retries=0),
        scoring=ScoringSettings(similarity="exact-or-half"),
    )


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRICT_KEY", "none")
        yield


def run(server: StrictServer, data: Path, out: Path, mode: Mode) -> None:
    held = settings(server)
    gta_bench.run(
        "atomic", out, model="strict", mode=mode, data=data, settings=held, preflight=False
    )


def assert_kept(name: str, found: Conversation, *, begun: int = 1) -> None:
    """Nothing was refused, all was said, and every request has all that was said before it."""
    api = APIS[name]
    assert found.refusals == []
    assert found.script == []
    assert sum(not api.said(one.request) for one in found.exchanges) == begun
    assert api.changes(found.exchanges) == []


@pytest.mark.parametrize("name", dialogues_of("gemini"))
def test_a_dialogue_is_taken(name: str, played: Played) -> None:
    assert_kept(played.api, played.conversations[name])
    dialogue, unit = dialogues_of(played.api)[name], played.units[name]
    assert [step.step for step in unit.trace or ()] == [*dialogue.trace]
    assert [*unit.stops] == [*dialogue.stops]


def test_a_run_that_failed_is_resumed(played: Played) -> None:
    assert played.left == 2
    assert_kept(played.api, played.conversations[RESUMED], begun=3)
    trace = played.units[RESUMED].trace or ()
    assert [step.step for step in trace] == [*CALLED * 2, "answer"]


@pytest.mark.parametrize("api", APIS)
def test_the_prefix_of_step_mode_is_taken(api: str, tmp_path: Path, loopback: None) -> None:
    data = write_data(tmp_path / "data", ["prefix"])
    script = [*[Reply(calls=(SIX,))] * 2, ANSWER]
    with strict_server(APIS[api], {"": script}) as server:
        run(server, data, tmp_path / "run", "step")
    found = server.conversations[""]
    assert found.refusals == []
    shown = [
        [block for block in APIS[api].said(one.request) if "Calculator" in str(block)]
        for one in found.exchanges
    ]
    assert sorted(len(blocks) for blocks in shown) == [0, 1, 2]
    (unit,) = gta_bench.units(tmp_path / "run")
    assert sorted(step.step for step in unit.trace or ()) == ["answer", "call", "call"]


@pytest.mark.parametrize("api", APIS)
def test_a_round_of_feedback_is_taken(api: str, tmp_path: Path, loopback: None) -> None:
    first, second = (
        Call({"html_code": f"<p>{word}</p>", "filename": f"{word}.html"}, "HtmlFileGenerator")
        for word in ("quokka", "wombat")
    )
    hidden = Reply("Done.", thought="[redacted]")
    script = [Reply(thought="[redacted]", calls=(first,)), hidden, Reply(calls=(second,)), ANSWER]
    with strict_server(APIS[api], {"": script}) as server:
        held = settings(server)
        plan = planned(
            write_dataset(tmp_path / "data"),
            "workflow",
            model=choose_model("strict", held),
            tasks="1",
            settings=held,
        )
        rounds = run_rounds(
            *plan, tmp_path / "run", unwatched, judge_by_words, rounds=1, level="pass-fail"
        )
        assert len(list(rounds)) == 2
    assert_kept(api, server.conversations[""])
