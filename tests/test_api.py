"""The names that notebooks use, from the data to the report, on the demo's tasks."""

import asyncio
import doctest
import inspect
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, assert_type

import pytest

import gta_bench
from gta_bench import api
from gta_bench.datasets.model import AtomicDataset, WorkflowDataset
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.script import make_scripted_judge, make_scripted_model
from gta_bench.errors import GtaError
from gta_bench.records.progress import RunProgress
from gta_bench.records.scores import (
    EndToEndScores,
    RunScores,
    StepScores,
    StrictEndToEndScores,
    StrictStepScores,
)
from gta_bench.records.units import AtomicUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.rows import RunUnits
from gta_bench.settings import ScoringSettings, Settings

SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reference and an agent that says nothing, step by step; and a judged run."""
    folder = tmp_path_factory.mktemp("runs")
    for agent in ("gold", "silent"):
        scores = gta_bench.run(
            "atomic", folder / agent, agent=agent, mode="step", data=ATOMIC, settings=SETTINGS
        )
        assert isinstance(scores, RunScores)
        assert (scores.n, scores.n_units) == (5, 5)
    told: list[RunProgress] = []
    judged = gta_bench.run(
        "workflow",
        folder / "judged",
        model=make_scripted_model(),
        data=WORKFLOW,
        tasks="sales",
        judges=[make_scripted_judge()],
        settings=SETTINGS,
        listener=told.append,
    )
    assert isinstance(judged, WorkflowScores)
    assert judged.complete and (told[-1].done, told[-1].units) == (1, 1)
    return {name: folder / name for name in ("gold", "silent", "judged")}


def test_every_name_is_typed_and_documented() -> None:
    assert sorted([*gta_bench.__all__, "__version__"]) == dir(gta_bench)
    for name in gta_bench.__all__:
        found = getattr(gta_bench, name)
        assert inspect.getdoc(found), name
        if inspect.isfunction(found):
            shown = inspect.signature(found)
            types = [one.annotation for one in shown.parameters.values()]
            assert inspect.Signature.empty not in [*types, shown.return_annotation], name


def test_the_examples_in_the_docstrings_work(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, run in runs.items():
        shutil.copytree(run, tmp_path / "runs" / name.replace("judged", "workflow"))
    (tmp_path / "gta.toml").write_text("scoring.similarity = 'exact-or-half'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(api)
    assert found.attempted > 0 and found.failed == 0


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys, gta_bench; print({'inspect_ai', 'pydantic'} & {*sys.modules})"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


async def check_types() -> None:
    """Not a test: mypy checks the types that users of the API see."""
    atomic = gta_bench.run("atomic", "runs/x", model="openai/gpt-5")
    assert_type(atomic, RunScores[StrictEndToEndScores, EndToEndScores])
    steps = gta_bench.run("atomic", "runs/x", model="openai/gpt-5", mode="step")
    assert_type(steps, RunScores[StrictStepScores, StepScores])
    assert_type(gta_bench.run("workflow", "runs/x"), WorkflowScores)
    assert_type(gta_bench.load("atomic"), AtomicDataset)
    assert_type(gta_bench.units("runs/x", "atomic"), RunUnits[AtomicUnit])
    assert_type(await gta_bench.arun("workflow", "runs/x"), WorkflowScores)
    verdicts = [row.verdict for row in gta_bench.verdicts("runs/x").values()]
    assert_type([one.value for one in verdicts if one.type == "scored"], list[float])


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        gta_bench.lode  # noqa: B018


def test_load_knows_folders_and_both_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(gta_bench.load(ATOMIC), AtomicDataset)
    assert isinstance(gta_bench.load(WORKFLOW), WorkflowDataset)
    monkeypatch.chdir(tmp_path)
    text = f"[data]\natomic = '{ATOMIC}'\nworkflow = '{WORKFLOW}'\n"
    Path("gta.toml").write_text(text, encoding="utf-8")
    assert len(gta_bench.load("atomic").tasks) == 5
    assert len(gta_bench.load("workflow").tasks) == 2
    with pytest.raises(gta_bench.GtaError, match="gta data fetch atomic"):
        gta_bench.load("nowhere")


def test_a_tool_is_called_with_files_and_leaves_files(tmp_path: Path) -> None:
    assert "Calculator" in gta_bench.tool_names()
    assert gta_bench.call("Calculator", expression="6 * 7").text == "42"
    made = gta_bench.call(
        "AddText",
        files=[ATOMIC / "image" / "seaside.png"],
        keep=tmp_path / "made",
        image="inputs/seaside.png",
        text="Hello",
        position="mt",
    )
    assert "outputs/seaside-text.png" in made.text
    assert (tmp_path / "made" / "outputs" / "seaside-text.png").is_file()


def test_a_stored_run_is_read_and_scored_again(runs: dict[str, Path]) -> None:
    again = gta_bench.score(runs["gold"], settings=SETTINGS)
    assert isinstance(again, RunScores)
    assert isinstance(again.strict, StepScores) and again.strict.tool_acc == 100
    assert gta_bench.manifest(runs["gold"]).spec.system.agent == "gold"
    assert [unit.task.id for unit in gta_bench.units(runs["judged"])] == ["sales"]
    assert len(gta_bench.verdicts(runs["judged"])) == 6


def test_the_manifest_names_the_judges_by_their_models(runs: dict[str, Path]) -> None:
    assert gta_bench.manifest(runs["judged"]).spec.judges == (str(make_scripted_judge()),)


def test_a_second_run_in_one_process_reads_the_dataset_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(ATOMIC, data)
    found = []
    for name in ("before", "after"):
        gta_bench.run(
            "atomic",
            tmp_path / name,
            agent="silent",
            mode="step",
            data=data,
            tasks="0:1",
            settings=SETTINGS,
        )
        (unit,) = gta_bench.units(tmp_path / name)
        assert unit.digests is not None
        found.append((gta_bench.manifest(tmp_path / name).dataset_digest, unit.digests.inputs))
        for file in (data / "image").iterdir():
            file.write_bytes(file.read_bytes() + b"more")
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]


def test_judging_again_asks_nothing_that_is_known(runs: dict[str, Path]) -> None:
    before = gta_bench.verdicts(runs["judged"])
    gta_bench.judge(runs["judged"], make_scripted_judge(), settings=SETTINGS)
    assert gta_bench.verdicts(runs["judged"]) == before


def test_runs_are_compared_shown_and_exported(runs: dict[str, Path], tmp_path: Path) -> None:
    (found,) = gta_bench.compare(runs["gold"], runs["silent"])
    assert {one.metric for one in found.metrics}
    page = gta_bench.report(tmp_path / "page.html", runs["gold"], runs["judged"])
    assert "umbrellas" in page.read_text(encoding="utf-8")
    rows = gta_bench.export(tmp_path / "tables", runs["gold"], runs["judged"], shape="csv")
    assert rows["verdicts"] == 6


def test_it_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> tuple[object, str]:
        options: dict[str, Any] = {
            "agent": "gold",
            "mode": "step",
            "data": ATOMIC,
            "settings": SETTINGS,
        }
        scores = gta_bench.run("atomic", tmp_path / "run", tasks="chart", **options)
        return scores, gta_bench.call("Calculator", expression="1 + 1").text

    scores, text = asyncio.run(cell())
    assert isinstance(scores, RunScores) and scores.n == 1
    assert text == "2"


def test_a_failure_has_its_own_cause_alone() -> None:
    """Every failure was raised from `RuntimeError('no running event loop')`."""
    with pytest.raises(GtaError) as caught:
        gta_bench.judge("nowhere", "mockllm/model")
    context = caught.value.__context__
    while context is not None:
        assert "no running event loop" not in str(context)
        context = context.__context__


def test_a_metric_of_ones_own(runs: dict[str, Path]) -> None:
    def calls(unit: AtomicUnit) -> float | None:
        return float(len(unit.trace or ()))

    found = gta_bench.measure(runs["gold"], calls)
    assert (found.name, found.n, found.n_units) == ("calls", 5, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"agent": "toolcalling"}, "needs a model: model='provider/model'"),
        ({"model": "gpt-5"}, "Unknown model 'gpt-5'"),
        ({"agent": "gold", "judges": ["openai/x"]}, "GTA-Atomic has no judge"),
    ],
)
def test_mistakes_are_one_line(arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(gta_bench.GtaError, match=said):
        gta_bench.run("atomic", tmp_path / "x", data=ATOMIC, **arguments)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"dataset": "foo"}, "Unknown dataset 'foo'"),
        ({"mode": "stp"}, "Unknown mode 'stp'"),
        ({"tasks": [0, 1]}, "`tasks` must be a range such as '0:10', or a list of ids"),
        ({"tasks": []}, "`tasks` is empty"),
        ({"harness": "true {task_file}"}, "`agent` and `harness` exclude each other"),
        ({"out": "a\0b"}, "is not a folder"),
        ({"epochs": 0}, "must be at least 1"),
        ({"max_turns": 0}, "must be at least 1"),
        ({"epochs": "2"}, "`epochs` must be an integer, but is '2'"),
        ({"images": "attach"}, "`images` must be 'path' or 'attached'"),
        ({"epoch": 2}, "Unknown option 'epoch'; did you mean 'epochs'"),
        ({"model": 3}, "`model` must be the name of a model"),
        ({"settings": {"budget.workers": 3}}, "`settings`: unknown key `budget.workers`"),
        ({"feedback_rounds": 1}, "GTA-Atomic has no judge"),
        ({"mode": "step", "controls": ["no-tools"]}, "`controls` need mode='end-to-end'"),
        ({"tape_mode": "record"}, "`tape_mode` needs a tape: add `tape`."),
    ],
)
def test_a_wrong_argument_is_told_before_anything_is_made(
    options: dict[str, Any], told: str, tmp_path: Path
) -> None:
    wanted: dict[str, Any] = {
        "dataset": "atomic",
        "agent": "silent",
        "data": ATOMIC,
        "settings": SETTINGS,
    }
    with pytest.raises(gta_bench.GtaError, match=told):
        gta_bench.run(**{"out": tmp_path / "run", **wanted, **options})
    assert not (tmp_path / "run").exists()


def test_a_page_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gta_bench.GtaError, match="A report needs at least one run"):
        gta_bench.report(tmp_path / "page.html")


def test_settings_can_be_given_by_key(tmp_path: Path) -> None:
    gta_bench.run(
        "atomic",
        tmp_path / "run",
        agent="silent",
        mode="step",
        data=ATOMIC,
        tasks=["chart", "receipt"],
        settings={"scoring.similarity": "exact-or-half"},
    )
    spec = gta_bench.manifest(tmp_path / "run").spec
    assert (spec.tasks, spec.similarity) == (("chart", "receipt"), "exact-or-half")


def test_options_of_tools_reach_the_run(tmp_path: Path) -> None:
    gta_bench.run(
        "atomic",
        tmp_path / "run",
        agent="silent",
        data=ATOMIC,
        limit=1,
        controls=["no-tools"],
        control_seed=3,
        settings=SETTINGS,
    )
    spec = gta_bench.manifest(tmp_path / "run").spec
    assert (spec.controls, spec.control_seed) == (("no-tools",), 3)


def test_settings_can_be_given_by_table(tmp_path: Path) -> None:
    gta_bench.run(
        "atomic",
        tmp_path / "run",
        agent="silent",
        mode="step",
        data=ATOMIC,
        limit=1,
        settings={"scoring": {"similarity": "exact-or-half"}, "budget.timeout": 60},
    )
    assert gta_bench.manifest(tmp_path / "run").spec.similarity == "exact-or-half"


def test_a_harness_does_its_first_task_with_the_model_that_was_given(tmp_path: Path) -> None:
    """It was done with another model of the same name, and the run then refused to continue."""
    scores = gta_bench.run(
        "atomic",
        tmp_path / "run",
        harness=gta_bench.Harness(kind="bridged", target="tests.harnesses.agents:bare"),
        model=make_scripted_model(),
        data=ATOMIC,
        tasks=["departures", "chart"],
        settings=SETTINGS,
    )
    assert scores.n == 2


def test_a_file_that_cannot_be_written_is_an_error_of_ours(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(gta_bench.GtaError, match="Is a directory"):
        gta_bench.report(tmp_path, runs["gold"])


def test_the_result_of_a_tool_prints_in_a_line() -> None:
    assert repr(gta_bench.call("Calculator", expression="6 * 7")) == "<ToolResult Calculator: '42'>"


def test_a_harness_needs_the_mode_that_it_works_in(tmp_path: Path) -> None:
    with pytest.raises(gta_bench.GtaError, match="A harness needs mode='end-to-end'"):
        gta_bench.run(
            "atomic", tmp_path / "run", data=ATOMIC, mode="step", harness="true {task_file}"
        )


def test_a_command_is_a_harness(tmp_path: Path) -> None:
    with pytest.raises(gta_bench.GtaError, match="`harness`: program 'nowhere' not found"):
        gta_bench.run("atomic", tmp_path / "run", data=ATOMIC, harness="nowhere {task_file}")


def test_the_dataset_of_a_stored_run_can_be_named(runs: dict[str, Path]) -> None:
    assert gta_bench.units(runs["gold"], "atomic")[0].task.id == "receipt"
    assert gta_bench.score(runs["judged"], "workflow", settings=SETTINGS).complete
    for ask in (gta_bench.units, gta_bench.score):
        with pytest.raises(gta_bench.GtaError, match="is a run of the dataset 'atomic', not of"):
            ask(runs["gold"], "workflow")
    with pytest.raises(gta_bench.GtaError, match="has no judge and so no verdicts"):
        gta_bench.verdicts(runs["gold"])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gta_bench.verdicts("nope"), "nope is not a run"),
        (lambda: gta_bench.manifest(3), "3 is not a folder"),  # type: ignore[arg-type]
        (lambda: gta_bench.load(3), "3 is not a dataset"),  # type: ignore[call-overload]
        (lambda: gta_bench.judge("nope"), "Name at least one judge"),
        (lambda: gta_bench.export("out"), "needs at least one run"),
        (lambda: gta_bench.export("out", "x", shape="xls"), "Unknown shape 'xls'"),  # type: ignore[arg-type]
        (lambda: gta_bench.call("OCR", files="x.png"), "`files` must be a list"),
        (lambda: gta_bench.call("OCR", files=5), "`files` must be a list"),  # type: ignore[arg-type]
        (lambda: gta_bench.call("OCR", files=["a\0b"]), r"`files`: 'a.x00b' is not a path"),
        (lambda: gta_bench.call(None), "None is not the name of a tool"),  # type: ignore[arg-type]
        (lambda: gta_bench.call("OCR", keep=5), "`keep`: 5 is not a path"),  # type: ignore[arg-type]
        (
            lambda: gta_bench.call("Calculator", expression=b"x"),  # type: ignore[arg-type]
            "`expression` must be a value that JSON has, but is b'x'",
        ),
        (lambda: gta_bench.report("", "x"), "`file`: '' is not a path"),
        (lambda: gta_bench.report(5, "x"), "`file`: 5 is not a path"),  # type: ignore[arg-type]
        (lambda: gta_bench.export("out", "x", settings=5), "`settings` must be"),  # type: ignore[arg-type]
        (lambda: gta_bench.export("out", "x", settings={1: 2}), "`settings` must be"),  # type: ignore[dict-item]
        (lambda: gta_bench.export("out", "x", settings={"judge": 2}), "'judge' is no setting"),
        (lambda: gta_bench.export("a\0b", "x"), "is not a folder"),
    ],
)
def test_a_mistake_has_a_type_and_one_line(call: Callable[[], object], told: str) -> None:
    with pytest.raises(gta_bench.GtaError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_coroutines_do_the_same(runs: dict[str, Path], tmp_path: Path) -> None:
    async def main() -> None:
        assert (await gta_bench.acall("Calculator", expression="6 * 7")).text == "42"
        assert (await gta_bench.ascore(runs["gold"], "atomic", settings=SETTINGS)).n == 5
        assert len(await gta_bench.acompare(runs["gold"], runs["silent"])) == 1
        page = await gta_bench.areport(tmp_path / "page.html", runs["gold"])
        assert page.is_file()
        assert (await gta_bench.aexport(tmp_path / "tables", runs["gold"]))["samples"] == 5
        assert (await gta_bench.ameasure(runs["gold"], lambda unit: 1.0)).n == 5
        await gta_bench.ajudge(runs["judged"], make_scripted_judge(), settings=SETTINGS)

    asyncio.run(main())
    assert gta_bench.__version__ == version("gta-bench")
