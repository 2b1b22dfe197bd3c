"""What a notebook needs: a dozen names that do what the commands do, and return records.

`gta_bench.load`, `gta_bench.run` and the others are these functions. Everything they return is a
frozen, typed record; failures that are not bugs are `gta_bench.GtaError`s with one line of text.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar, get_args

from inspect_ai.model import Model
from pydantic import JsonValue

from gta_bench.agents.catalog import DEFAULT_AGENT, WITHOUT_MODEL
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import WORKFLOW_FILE, load_workflow
from gta_bench.errors import GtaError, UsageError
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.comparison import Comparison
from gta_bench.records.progress import RunProgress
from gta_bench.records.results import ToolResult
from gta_bench.records.run import DatasetName, Images, Mode, RunManifest, Unit, WorkflowUnit
from gta_bench.records.scores import Measured, RunScores
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.needs import needs_report_extra
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.logs import ReadUnits, ReadWorkflowUnits, read_units, read_workflow_units
from gta_bench.runs.measuring import Metric, load_metric
from gta_bench.runs.measuring import measure as measured
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.runs.workflow_scoring import score_workflow_run
from gta_bench.settings import ModelSettings, Settings, read_settings
from gta_bench.similarity.catalog import load_similarity
from gta_bench.similarity.scoring import scored
from gta_bench.tasks import atomic_run, workflow_run
from gta_bench.tasks.judge_run import Judging, judge_options, judge_run, plan_judging
from gta_bench.tasks.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.tasks.shards import Listener
from gta_bench.tasks.system_run import SystemRun
from gta_bench.tasks.tooling import PLAIN, Tooling
from gta_bench.tools.catalog import tool_names
from gta_bench.tools.equipment import equipped
from gta_bench.tools.toolbox import Toolbox

__all__ = [
    "GtaError",
    "Settings",
    "call",
    "compare",
    "export",
    "judge",
    "load",
    "manifest",
    "measure",
    "report",
    "run",
    "score",
    "tool_names",
    "units",
    "verdicts",
]

Folder = str | Path
Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
Scores = RunScores | WorkflowScores


def _from_anywhere(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """The function, in a thread of its own where an event loop runs, as it does in notebooks."""

    @wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return function(*args, **kwargs)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *args, **kwargs).result()

    return called


def load(dataset: Folder) -> Dataset:
    """A dataset: `atomic` or `workflow` of gta.toml, an installed dataset's name, or a folder."""
    data = read_settings().settings.data
    named = {"atomic": data.atomic, "workflow": data.workflow}
    root = dataset_root(named.get(str(dataset), str(dataset)))
    if dataset != "atomic" and (dataset == "workflow" or (root / WORKFLOW_FILE).is_file()):
        return load_workflow(root)
    return load_atomic(root)


@_from_anywhere
def call(
    tool: str,
    /,
    *,
    files: Iterable[Folder] = (),
    keep: Folder | None = None,
    **arguments: JsonValue,
) -> ToolResult:
    """Call a tool once; `files` lie in its `inputs/`, what it makes in `outputs/` of `keep`."""
    sources = {f"inputs/{Path(file).name}": Path(file) for file in files}

    async def called(folder: Path) -> ToolResult:
        workspace = Workspace.create(folder, sources, follow_links=True)
        async with equipped(read_settings().settings) as equipment:
            return await Toolbox(equipment, [tool]).call(workspace, tool, arguments)

    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        return asyncio.run(called(Path(folder)))


@_from_anywhere
def run(
    dataset: DatasetName,
    out: Folder,
    *,
    model: str | Model | None = None,
    agent: str = DEFAULT_AGENT,
    mode: Mode = "end-to-end",
    data: Folder | None = None,
    tasks: str | None = None,
    epochs: int = 1,
    images: Images = "path",
    max_turns: int = MAX_TURNS,
    tape: Folder | None = None,
    judges: Sequence[str | Model] = (),
    settings: Settings | None = None,
    listener: Listener | None = None,
) -> Scores:
    """Measure a model with an agent; what `out` holds of the run already is not done again.

    `model` and `judges` are Inspect's names, short names of gta.toml, or Inspect's models. `mode`
    is for GTA-Atomic, `judges` for GTA-Workflow. `listener` is told how far the run is
    whenever a unit begins or ends. `gta run` has the same options, described in
    docs/reference/cli.md.
    """
    if dataset not in get_args(DatasetName):
        raise UsageError(f"There is no dataset {dataset!r}: say 'atomic' or 'workflow'.")
    if mode not in get_args(Mode):
        raise UsageError(f"There is no mode {mode!r}: say 'step' or 'end-to-end'.")
    if tasks is not None and not isinstance(tasks, str):
        raise UsageError("`tasks` is a text: a range like '0:10', or ids like '3,5,7'.")
    if min(epochs, max_turns) < 1:
        raise UsageError("`epochs` and `max_turns` are at least 1.")
    held = settings or read_settings().settings
    folder = Path(out)
    wanted: dict[str, object] = {
        "data": dataset_root(str(data or getattr(held.data, dataset))),
        "model": _chosen(model, agent, held),
        "agent": agent,
        "images": images,
        "tasks": tasks,
        "epochs": epochs,
        "settings": held,
        "max_turns": max_turns,
        "tooling": PLAIN if tape is None else Tooling(tape=Path(tape)),
    }
    asked = model if isinstance(model, Model) else None
    told = listener or _nobody
    if dataset == "atomic":
        if judges:
            raise UsageError("GTA-Atomic has no judge: leave `judges` out.")
        similarity = held.scoring.similarity
        atomic = atomic_run.AtomicRun(**wanted, mode=mode, similarity=similarity)  # type: ignore[arg-type]
        atomic_run.execute(atomic, atomic_run.plan(atomic), folder, told, model=asked)
    else:
        workflow = SystemRun(**wanted)  # type: ignore[arg-type]
        workflow_run.execute(workflow, workflow_run.plan(workflow), folder, told, model=asked)
        judge(folder, *judges, settings=held)
    return score(folder, settings=held)


@_from_anywhere
def judge(out: Folder, *judges: str | Model, settings: Settings | None = None) -> None:
    """Ask judges for every leaf of a Workflow run that has no score of them yet."""
    held = settings or read_settings().settings
    named = [one for one in judges if isinstance(one, str)]
    opened = [one for one in judges if isinstance(one, Model)]
    if named:
        _judge(Path(out), plan_judging(named, held), None)
    if opened:
        options = judge_options(held.judge)
        stated = tuple(_stated(one) for one in opened)
        _judge(Path(out), Judging(stated, options, held.judge.repeats, held), opened)


def score(out: Folder, *, settings: Settings | None = None) -> Scores:
    """Score a stored run (again): no model is asked and no tool is called."""
    held = settings or read_settings().settings
    folder = Path(out)
    stated = read_manifest(folder)
    if stated.mode == "workflow":
        return score_workflow_run(folder, held)
    found = _read(folder, stated)
    assert isinstance(found, ReadUnits)
    similarity = load_similarity(held.scoring.similarity)
    scores = scored(found.units, stated.mode, similarity, found.not_run)
    write_scores(folder, scores)
    return scores


def manifest(out: Folder) -> RunManifest:
    """What held while a run was made."""
    return read_manifest(Path(out))


def units(out: Folder) -> tuple[Unit, ...] | tuple[WorkflowUnit, ...]:
    """What the system did in every task: its trace, calls, usage and files."""
    folder = Path(out)
    return _read(folder, read_manifest(folder)).units


def verdicts(out: Folder) -> Mapping[VerdictKey, VerdictRow]:
    """Every judge's verdict on every leaf of a Workflow run."""
    return read_verdicts(Path(out))


def measure(out: Folder, metric: Metric | str) -> Measured:
    """A metric of your own over a stored run: a function of a unit, or an installed one's name."""
    function = load_metric(metric) if isinstance(metric, str) else metric
    name = metric if isinstance(metric, str) else metric.__name__
    stated = read_manifest(Path(out))
    n_units = len(stated.tasks) * stated.epochs
    return measured(units(out), function, name=name, n_units=n_units)


def compare(first: Folder, second: Folder, *others: Folder) -> list[Comparison]:
    """The first run against each other one, paired by task (extra `report`)."""
    needs_report_extra("scipy")
    from gta_bench.reports.comparison import compare as compared
    from gta_bench.runs.comparing import read_compared

    return list(compared([read_compared(Path(one)) for one in (first, second, *others)]))


def report(file: Folder, *runs: Folder) -> Path:
    """Runs as one HTML page that needs nothing else (extra `report`)."""
    from gta_bench.tasks.pages import write_page

    if not runs:
        raise UsageError("A report needs a run: name the folders of one or more.")
    write_page([Path(one) for one in runs], Path(file))
    return Path(file)


def export(
    out: Folder, *runs: Folder, shape: Literal["parquet", "csv"] = "parquet"
) -> Mapping[str, int]:
    """Runs as tables for pandas, Polars or DuckDB; the rows of each table (extra `report`)."""
    needs_report_extra("duckdb")
    from gta_bench.runs.results_table import export_results

    held = read_settings().settings.judge
    thresholds = Thresholds(held.leaf_threshold, held.root_threshold)
    folders = [Path(one) for one in runs]
    return export_results(folders, Path(out), thresholds=thresholds, shape=shape).rows


def _read(folder: Path, stated: RunManifest) -> ReadUnits | ReadWorkflowUnits:
    reader = read_workflow_units if stated.mode == "workflow" else read_units
    return reader(log_folder(folder), stated.tasks, stated.epochs)


def _judge(folder: Path, judging: Judging, models: Sequence[Model] | None) -> None:
    for _ in judge_run(folder, judging, lambda _: nullcontext(_nobody), models=models):
        pass


def _chosen(model: str | Model | None, agent: str, settings: Settings) -> ChosenModel:
    if isinstance(model, Model):
        return _stated(model)
    if model is not None:
        return choose_model(model, settings)
    if agent not in WITHOUT_MODEL:
        raise UsageError(f"Agent {agent!r} needs a model: model='provider/model'.")
    return NO_MODEL


def _stated(model: Model) -> ChosenModel:
    """An open model, as a manifest states it."""
    config = model.config
    return ChosenModel(
        str(model),
        ModelSettings(
            model=str(model),
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            seed=config.seed,
        ),
    )


def _nobody(_: RunProgress) -> None:
    """Told how far a run is, tells nobody."""
