"""The names that notebooks use, from the data to the report, on the demo's tasks."""

import asyncio
import doctest
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import gta_bench
from gta_bench import api, errors, packages, prompting, redaction, settings
from gta_bench.datasets.model import AtomicDataset, WorkflowDataset
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.script import make_scripted_judge, make_scripted_model
from gta_bench.errors import GtaError
from gta_bench.records.progress import RunProgress
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit
from gta_bench.records.workflow_scores import WorkflowScores
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
    assert gta_bench.__all__ == dir(gta_bench)
    for name in gta_bench.__all__:
        found = getattr(gta_bench, name)
        assert inspect.getdoc(found), name
        if inspect.isfunction(found):
            hints = get_type_hints(found)
            assert {*inspect.signature(found).parameters, "return"} <= {*hints}, name


def test_the_examples_in_the_docstrings_work(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, run in runs.items():
        shutil.copytree(run, tmp_path / "runs" / name.replace("judged", "workflow"))
    (tmp_path / "gta.toml").write_text("scoring.similarity = 'exact-or-half'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for module in (api, errors, packages, prompting, redaction, settings):
        found = doctest.testmod(module)
        assert found.attempted > 0 and found.failed == 0, module


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys, gta_bench; print({'inspect_ai', 'pydantic'} & {*sys.modules})"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


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
    assert again.strict.tool_acc == 100  # type: ignore[union-attr]
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
        options = {"agent": "gold", "mode": "step", "data": ATOMIC, "settings": SETTINGS}
        scores = gta_bench.run("atomic", tmp_path / "run", tasks="chart", **options)  # type: ignore[arg-type]
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
def test_mistakes_are_one_line(arguments: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(gta_bench.GtaError, match=said):
        gta_bench.run("atomic", tmp_path / "x", data=ATOMIC, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"dataset": "foo"}, "Unknown dataset 'foo'"),
        ({"mode": "stp"}, "Unknown mode 'stp'"),
        ({"tasks": [0, 1]}, "`tasks` must be a string"),
        ({"epochs": 0}, "must be at least 1"),
        ({"max_turns": 0}, "must be at least 1"),
    ],
)
def test_a_wrong_argument_is_told_before_anything_is_made(
    options: dict[str, object], told: str, tmp_path: Path
) -> None:
    wanted = {"dataset": "atomic", "agent": "silent", "data": ATOMIC, "settings": SETTINGS}
    with pytest.raises(gta_bench.GtaError, match=told):
        gta_bench.run(out=tmp_path / "run", **{**wanted, **options})  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_page_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gta_bench.GtaError, match="A report needs at least one run"):
        gta_bench.report(tmp_path / "page.html")
