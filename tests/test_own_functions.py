"""Agents, metrics and judges that are functions, in real runs on the demo's tasks."""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from inspect_ai.model import ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.agents.contract import History
from gta_bench.agents.models import NO_MODEL
from gta_bench.agents.own import AgentFunction, make_own_agent
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.script import make_scripted_model
from gta_bench.errors import GtaError, RunError, UsageError
from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.own import JudgeFunction, make_own_judge, read_judged
from gta_bench.leaderboard.checks import judge_problems, read_judge_records
from gta_bench.own_code import name_function
from gta_bench.records.evidence import Evidence
from gta_bench.records.run import RunSpec, System
from gta_bench.records.scores import RunScores
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import AtomicUnit
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.summary import judge_badges, run_badges, system_name
from gta_bench.running.backends.backend import open_backend
from gta_bench.running.judge_run import Judging, judge_run
from gta_bench.running.shards import Listener
from gta_bench.running.system_run import Resources, execute, plan_run, read_dataset
from gta_bench.settings import ScoringSettings, Settings

SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
GREETING = "Hello"


def greet(name: str) -> str:
    return f"{GREETING}, {name}."


async def calculate(history: History, tools: Sequence[ToolSpec]) -> CallStep | AnswerStep:
    if history.position == 0:
        return CallStep(name="Calculator", arguments={"expression": "6 * 7"})
    return AnswerStep(content=greet(history.task))


def answer(history: History, tools: Sequence[ToolSpec]) -> str:
    return greet(history.task)


async def ask(history: History, tools: Sequence[ToolSpec]) -> str:
    return (await get_model().generate("Hello")).completion


def nothing(history: History, tools: Sequence[ToolSpec]) -> Any:
    return 7


def run(out: Path, agent: Any, **options: Any) -> RunScores:
    given: dict[str, Any] = {
        "mode": "step",
        "tasks": "0:2",
        "data": ATOMIC,
        "settings": SETTINGS,
    } | options
    scores = gta_bench.run("atomic", out, agent=agent, **given)
    assert isinstance(scores, RunScores)
    return scores


def test_an_agent_decides_in_both_modes(tmp_path: Path) -> None:
    assert run(tmp_path / "step", calculate).n == 2
    scores = run(tmp_path / "end", calculate, mode="end-to-end")
    # The second task does not offer the tool.
    assert (scores.n, scores.tools[0].tool, scores.tools[0].done) == (2, "Calculator", 1)
    for unit in gta_bench.units(tmp_path / "end"):
        assert unit.answer == f"Hello, {unit.task.id}."


def test_a_plain_function_may_return_a_text_and_a_coroutine_may_ask_the_model(
    tmp_path: Path,
) -> None:
    run(tmp_path / "plain", answer, tasks="0:1", mode="end-to-end")
    assert gta_bench.units(tmp_path / "plain")[0].answer.startswith("Hello, ")
    output = ModelOutput.from_content("mockllm/model", "Good evening")
    output.usage = ModelUsage()
    model = get_model("mockllm/model", custom_outputs=[output])
    scores = run(tmp_path / "asks", ask, tasks="0:1", mode="end-to-end", model=model)
    assert scores.usage.model_calls == 1


def test_the_manifest_and_the_reports_say_whose_code_it_is(tmp_path: Path) -> None:
    run(tmp_path / "x", answer)
    manifest = gta_bench.manifest(tmp_path / "x")
    system, place = manifest.spec.system, "tests.test_own_functions"
    assert system.agent == "own:answer" and system.has_own_agent
    assert {*system.code} == {f"{place}:{name}" for name in ("answer", "greet", "GREETING")}
    assert "own agent (own:answer)" in run_badges(manifest)
    assert system_name(manifest) == "own:answer"


def test_changed_code_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier, the results of the old function were returned."""
    run(tmp_path / "x", answer, tasks="0:1")
    run(tmp_path / "x", answer, tasks="0:2")
    monkeypatch.setitem(globals(), "GREETING", "Good morning")
    with pytest.raises(RunError) as raised:
        run(tmp_path / "x", answer, tasks="0:2")
    name = "'tests.test_own_functions:GREETING'"
    assert str(raised.value) == (
        f"{tmp_path / 'x'} was run with other code: {name} has changed since, by an edit or by the "
        f"run itself. Use another folder for the new code, or restore {name} to continue. If the "
        "agent keeps a cache or a counter, create both in a function that you call for each run."
    )


SEEN: dict[str, str] = {}


def remember(history: History, tools: Sequence[ToolSpec]) -> str:
    return SEEN.setdefault(history.task, "Hello")


def make_remembering() -> AgentFunction:
    seen: dict[str, str] = {}

    def remember_own(history: History, tools: Sequence[ToolSpec]) -> str:
        return seen.setdefault(history.task, "Hello")

    return remember_own


def test_an_agent_with_a_cache_continues_if_it_is_created_for_each_run(tmp_path: Path) -> None:
    run(tmp_path / "global", remember, tasks="0:1")
    with pytest.raises(RunError, match="SEEN' has changed since, by an edit or by the run itself"):
        run(tmp_path / "global", remember)
    run(tmp_path / "made", make_remembering(), tasks="0:1")
    assert run(tmp_path / "made", make_remembering()).n == 2


def test_an_agent_by_name_has_a_digest_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    text = "from gta_bench.agents.catalog import silent\ndef mine(setup): return silent(setup)\n"
    (tmp_path / "named_agent.py").write_text(text, encoding="utf-8")
    run(tmp_path / "x", "named_agent:mine", model="mockllm/model")
    code = gta_bench.manifest(tmp_path / "x").spec.system.code
    assert {*code} == {"named_agent:mine"}


def test_a_reply_of_another_type_leaves_the_unit_unscored_with_its_cause(tmp_path: Path) -> None:
    scores = run(tmp_path / "x", nothing, tasks="0:1")
    assert scores.n == 0
    assert "'nothing' returned a int" in scores.unscored[0].cause


def leave(history: History, tools: Sequence[ToolSpec]) -> str:
    sys.exit(3)


async def stop(history: History, tools: Sequence[ToolSpec]) -> str:
    raise Stop("enough")


class Stop(BaseException):
    pass


def raise_half_a_character(history: History, tools: Sequence[ToolSpec]) -> str:
    raise ValueError("x\ud800")


@pytest.mark.parametrize(
    ("agent", "cause"),
    [
        (leave, "'leave' raised SystemExit(3)"),
        (stop, "'stop' raised Stop('enough')"),
        (raise_half_a_character, "ValueError: x\ufffd"),
    ],
)
def test_whatever_an_agent_raises_leaves_its_unit_unscored(
    tmp_path: Path, agent: AgentFunction, cause: str
) -> None:
    """Earlier, these ended the whole run."""
    scores = run(tmp_path / "x", agent)
    assert scores.n == 0 and len(scores.unscored) == 2
    assert all(cause in one.cause for one in scores.unscored)


@pytest.mark.parametrize("agent", [5, None, ["step"]])
def test_what_is_no_function_is_refused(agent: Any) -> None:
    with pytest.raises(UsageError, match=r"^The agent is a value of type '\w+': pass a function"):
        make_own_agent(agent)
    with pytest.raises(UsageError, match=r"^The judge is a value of type '\w+': pass a function"):
        make_own_judge(agent)


def test_code_is_compared_only_where_it_was_recorded() -> None:
    def spec(**code: str) -> RunSpec:
        system = System(model="m", agent="a:b", code=code)
        return RunSpec(dataset="atomic", mode="step", system=system, tasks=("0",))

    assert spec().difference(spec(f="1")) is None
    found = spec(f="1").difference(spec(f="2"))
    assert found is not None and found.name == "code.f"
    found = spec(f="1").difference(spec(f="1", g="2"))
    assert found is not None and found.name == "code.g"


def test_workers_refuse_functions(tmp_path: Path) -> None:
    own = make_own_agent(answer)
    resources = Resources(data=ATOMIC, settings=SETTINGS, agent=own)
    system = System(model="none/none", agent=own.name, code=own.code)
    spec = RunSpec(dataset="atomic", mode="step", system=system, tasks=("receipt",))
    planned = plan_run(spec, resources, read_dataset("atomic", ATOMIC))
    with (
        open_backend(2, None) as backend,
        pytest.raises(UsageError, match="'own:answer' is a function of this process"),
    ):
        execute(planned, resources, tmp_path / "x", print, backend=backend)
    assert not (tmp_path / "x").exists()


def test_the_command_line_says_where_such_an_agent_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a Python function: run it where it is defined"):
        run(tmp_path / "x", "own:answer", model="mockllm/model")


def count_answers(unit: AtomicUnit) -> float | None:
    return float(len(unit.answer))


def test_a_metric_has_the_digest_of_its_code(tmp_path: Path) -> None:
    run(tmp_path / "x", answer, mode="end-to-end")
    measured = gta_bench.measure(tmp_path / "x", count_answers)
    assert measured.name == "count_answers" and measured.value
    assert measured.code is not None
    assert {*measured.code} == {"tests.test_own_functions:count_answers"}
    unknown = FunctionType(compile("1.0", "nowhere", "eval"), {})
    assert gta_bench.measure(tmp_path / "x", lambda _: unknown()).code is None
    with pytest.raises(GtaError, match="Metric '<lambda>' returned 'a' for task receipt"):
        gta_bench.measure(tmp_path / "x", lambda _: "a")  # type: ignore[arg-type, return-value]


def score_length(request: str, leaf: Checkpoint, evidence: Evidence) -> tuple[float, str]:
    return min(10.0, len(evidence.answer) / 100), f"{len(evidence.answer)} characters"


async def fail(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    raise KeyError(leaf.id)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "run"
    scores = gta_bench.run(
        "workflow",
        folder,
        model=make_scripted_model(),
        data=WORKFLOW,
        tasks="sales",
        judges=[score_length],
        settings=SETTINGS,
    )
    assert isinstance(scores, WorkflowScores) and scores.complete
    return folder


def test_a_judge_gives_verdicts_under_its_name_and_digest(judged: Path) -> None:
    rows = gta_bench.verdicts(judged)
    (name,) = {key.judge for key in rows}
    assert name.startswith("own/score_length [code=") and judge_badges(name) == ("own judge",)
    row = next(iter(rows.values()))
    assert row.verdict.type == "scored" and row.verdict.reason.endswith("characters")
    assert (row.model, row.prompts) == ("own/score_length", "")
    (entry,) = json.loads((judged / "judges.json").read_text(encoding="utf-8"))["judges"]
    assert [*entry["generation"]["code"]] == ["tests.test_own_functions:score_length"]


def test_a_leaderboard_refuses_verdicts_of_a_function(judged: Path) -> None:
    (found,) = read_judge_records(judged).items()
    (problem,) = judge_problems(found[1], found[0])
    assert problem.endswith("is a function of its author, not a model; judge with a model")


def test_a_changed_judge_is_another_judge(judged: Path) -> None:
    def make(level: float) -> JudgeFunction:
        def judge(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
            return level

        return judge

    for level in (3, 4):
        gta_bench.judge(judged, make(level), settings=SETTINGS)
    mine = {
        (key.judge, row.verdict.value)
        for key, row in gta_bench.verdicts(judged).items()
        if key.judge.startswith("own/judge ") and row.verdict.type == "scored"
    }
    assert sorted(value for _, value in mine) == [3, 4]
    assert len({name for name, _ in mine}) == 2


def test_a_judge_that_raises_gives_no_score(judged: Path) -> None:
    gta_bench.judge(judged, fail, settings=SETTINGS)
    rows = [
        row for key, row in gta_bench.verdicts(judged).items() if key.judge.startswith("own/fail ")
    ]
    assert rows
    for row in rows:
        assert isinstance(row.verdict, Unscored) and row.verdict.cause == "judge_failed"
        assert "KeyError" in row.verdict.detail


def leave_judging(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    sys.exit("no more")


def raise_half(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    raise ValueError("x\ud800")


class NoText:
    def __repr__(self) -> str:
        raise ValueError("no text")


def return_what_has_no_text(request: str, leaf: Checkpoint, evidence: Evidence) -> Any:
    return NoText()


@pytest.mark.parametrize(
    ("judge", "detail"),
    [
        (leave_judging, "RuntimeError: 'leave_judging' raised SystemExit('no more')"),
        (raise_half, "ValueError: x?"),
        (return_what_has_no_text, "ValueError: no text"),
    ],
)
def test_whatever_a_judge_raises_is_no_score(
    judged: Path, judge: JudgeFunction, detail: str
) -> None:
    gta_bench.judge(judged, judge, settings=SETTINGS)
    found = [
        row.verdict
        for key, row in gta_bench.verdicts(judged).items()
        if key.judge.startswith(f"own/{name_function(judge)} ")
    ]
    assert found and {*found} == {Unscored(cause="judge_failed", detail=detail)}


@pytest.mark.parametrize(
    "returned",
    [
        (5, "x\ud800"),
        Scored(value=5, reason="x\ud800"),
        Scored(value=5, reason="x", used=("\ud800",)),
        Unscored(cause="refused", detail="x\ud800"),
        "x\ud800",
    ],
    ids=repr,
)
def test_half_characters_in_a_verdict_are_replaced(returned: object) -> None:
    """Files cannot contain them; earlier, one of them ended all judging."""
    assert "x" in read_judged(returned).model_dump_json()


def test_a_judge_that_is_no_function_stores_nothing(judged: Path) -> None:
    before = gta_bench.verdicts(judged)
    with pytest.raises(UsageError, match=r"^The judge is a value of type 'int': pass a function"):
        gta_bench.judge(judged, 5, settings=SETTINGS)  # type: ignore[arg-type]
    assert gta_bench.verdicts(judged) == before


@pytest.mark.parametrize(
    ("returned", "cause"),
    [
        (None, "score_missing"),
        ("7", "score_not_a_number"),
        (True, "score_not_a_number"),
        (11, "score_out_of_range"),
        (float("nan"), "score_out_of_range"),
        (10**400, "score_out_of_range"),
        ((5, 5), "reply_other_shape"),
        ((1, 2, 3), "score_not_a_number"),
    ],
)
def test_nonsense_is_no_score(returned: object, cause: str) -> None:
    found = read_judged(returned)
    assert isinstance(found, Unscored) and found.cause == cause


def test_workers_refuse_judges_that_are_functions(judged: Path) -> None:
    def watch(_: str) -> AbstractContextManager[Listener]:
        return nullcontext(print)

    model = make_own_judge(score_length)
    judging = Judging((NO_MODEL,), JudgeOptions(), 1, SETTINGS)
    with (
        open_backend(2, None) as backend,
        pytest.raises(UsageError, match="'own/score_length' is a function of this process"),
    ):
        next(judge_run(judged, judging, watch, backend, models=[model]))
