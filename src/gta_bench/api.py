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
from gta_bench.agents.generation import add_generation, state_generation
from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.selection import Selection, choose_tasks
from gta_bench.datasets.workflow import WORKFLOW_FILE, load_workflow
from gta_bench.errors import GtaError, UsageError
from gta_bench.judging.options import judge_options
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.packages import require_packages
from gta_bench.records.calls import ToolResult
from gta_bench.records.comparison import Comparison
from gta_bench.records.progress import RunProgress
from gta_bench.records.run import (
    DEFAULT_CALLS,
    DEFAULT_TURNS,
    DatasetName,
    Images,
    LoopLimits,
    Mode,
    RunManifest,
    RunSpec,
)
from gta_bench.records.scores import Measured, RunScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.judge_run import Judging, judge_run, plan_judging
from gta_bench.running.preflight import check_start
from gta_bench.running.shards import Listener
from gta_bench.running.system_run import (
    Resources,
    describe_system,
    execute,
    plan_run,
    read_dataset,
)
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.logs import read_units
from gta_bench.runs.scoring import UnitMetric, load_metric, score_workflow_run
from gta_bench.runs.scoring import measure as measured
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings, read_settings
from gta_bench.similarity.catalog import chosen_similarity, load_similarity, scored
from gta_bench.tape.storage import tape_use
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
_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")
Scores = RunScores | WorkflowScores


def _from_anywhere(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
    """The function, in a thread of its own where an event loop runs, as it does in notebooks."""

    @wraps(function)
    def called(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
        if not _loop_runs():
            return function(*args, **kwargs)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *args, **kwargs).result()

    return called


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
    limit: int | None = None,
    sample: int | None = None,
    sample_seed: int | None = None,
    epochs: int = 1,
    images: Images = "path",
    max_turns: int = DEFAULT_TURNS,
    max_calls: int = DEFAULT_CALLS,
    tape: Folder | None = None,
    judges: Sequence[str | Model] = (),
    generate: Mapping[str, JsonValue] | None = None,
    model_args: Mapping[str, JsonValue] | None = None,
    settings: Settings | None = None,
    listener: Listener | None = None,
    preflight: bool = True,
) -> Scores:
    """Measure a model with an agent; what `out` holds of the run already is not done again.

    More tasks or epochs than `out` has extend the run, and all of it is scored. `model` and
    `judges` are Inspect's names, short names of gta.toml, or Inspect's models. `mode`
    is for GTA-Atomic, `judges` for GTA-Workflow. `generate` has options of Inspect's
    GenerateConfig, such as `{"temperature": 0}`, and `model_args` arguments of the model's
    provider; an Inspect model has both already. `listener` is told how far the run is
    whenever a unit begins or ends. Models and judges that are named are asked once before anything
    is written, unless `preflight` is off. `gta run` has the same options, described in
    docs/reference/cli.md.
    """
    if dataset not in get_args(DatasetName):
        raise UsageError(f"There is no dataset {dataset!r}: say 'atomic' or 'workflow'.")
    if mode not in get_args(Mode):
        raise UsageError(f"There is no mode {mode!r}: say 'step' or 'end-to-end'.")
    if tasks is not None and not isinstance(tasks, str):
        raise UsageError("`tasks` is a text: a range like '0:10', or ids like '3,5,7'.")
    counts = (epochs, max_turns, max_calls, limit, sample)
    if any(count is not None and count < 1 for count in counts):
        raise UsageError("`epochs`, `max_turns`, `max_calls`, `limit` and `sample` are at least 1.")
    held = settings or read_settings().settings
    folder = Path(out)
    if judges and dataset == "atomic":
        raise UsageError("GTA-Atomic has no judge: leave `judges` out.")
    chosen = _chosen(model, agent, held, generate, model_args)
    resources = Resources(
        data=dataset_root(str(data or getattr(held.data, dataset))),
        settings=held,
        model=chosen,
        tape=None if tape is None else Path(tape),
    )
    loaded = read_dataset(dataset, resources.data)
    spec = RunSpec(
        dataset=dataset,
        mode=mode if dataset == "atomic" else "workflow",
        system=describe_system(resources, agent, images),
        tasks=choose_tasks(loaded, Selection(tasks, (), limit, sample, sample_seed)),
        epochs=epochs,
        loop=LoopLimits(max_turns=max_turns, max_calls=max_calls),
        tape=None if tape is None else tape_use(Path(tape), "replay"),
        judges=tuple(_judge_name(one, held) for one in judges),
        similarity=chosen_similarity(held.scoring),
    )
    planned = plan_run(spec, resources, loaded, out=folder)
    asked = model if isinstance(model, Model) else None
    named = [one for one in judges if isinstance(one, str)]
    judging = plan_judging(named, held) if named else None
    check_start([(folder, planned, resources)], judging, ask=preflight, model=asked)
    execute(planned, resources, folder, listener or _nobody, model=asked)
    if dataset == "workflow":
        _judge(folder, judges, held, spec.tasks)
    return score(folder, settings=held)


@_from_anywhere
def judge(out: Folder, *judges: str | Model, settings: Settings | None = None) -> None:
    """Ask judges for every leaf of a Workflow run that has no score of them yet."""
    _judge(Path(out), judges, settings or read_settings().settings, None)


def score(out: Folder, *, settings: Settings | None = None) -> Scores:
    """Score a stored run (again): no model is asked and no tool is called."""
    held = settings or read_settings().settings
    folder = Path(out)
    stated = read_manifest(folder)
    if stated.spec.mode == "workflow":
        return score_workflow_run(folder, held)
    found = read_units(log_folder(folder), stated.spec.tasks, stated.spec.epochs, AtomicUnit)
    similarity = load_similarity(chosen_similarity(held.scoring))
    scores = scored(found.units, stated.spec.mode, similarity, found.not_run)
    write_scores(folder, scores)
    return scores


def manifest(out: Folder) -> RunManifest:
    """What held while a run was made."""
    return read_manifest(Path(out))


def units(out: Folder) -> tuple[AtomicUnit, ...] | tuple[WorkflowUnit, ...]:
    """What the system did in every task: its trace, calls, usage and files."""
    folder = Path(out)
    stated = read_manifest(folder)
    if stated.spec.mode == "workflow":
        return read_units(
            log_folder(folder), stated.spec.tasks, stated.spec.epochs, WorkflowUnit
        ).units
    return read_units(log_folder(folder), stated.spec.tasks, stated.spec.epochs, AtomicUnit).units


def verdicts(out: Folder) -> Mapping[VerdictKey, VerdictRow]:
    """Every judge's verdict on every leaf of a Workflow run."""
    return read_verdicts(Path(out))


def measure(out: Folder, metric: UnitMetric | str) -> Measured:
    """A metric of your own over a stored run: a function of a unit, or an installed one's name."""
    function = load_metric(metric) if isinstance(metric, str) else metric
    name = metric if isinstance(metric, str) else metric.__name__
    stated = read_manifest(Path(out))
    n_units = stated.spec.units
    return measured(units(out), function, name=name, n_units=n_units)


def compare(first: Folder, second: Folder, *others: Folder) -> list[Comparison]:
    """The first run against each other one, paired by task (extra `report`)."""
    require_packages("A comparison", "scipy", extra="report")
    from gta_bench.decisions.comparison import compare as compared
    from gta_bench.runs.scoring import read_compared

    return list(compared([read_compared(Path(one)) for one in (first, second, *others)]))


def report(file: Folder, *runs: Folder) -> Path:
    """Runs as one HTML page that needs nothing else (extra `report`)."""
    from gta_bench.web.reading import write_page

    if not runs:
        raise UsageError("A report needs a run: name the folders of one or more.")
    write_page([Path(one) for one in runs], Path(file))
    return Path(file)


def export(
    out: Folder, *runs: Folder, shape: Literal["parquet", "csv"] = "parquet"
) -> Mapping[str, int]:
    """Runs as tables for pandas, Polars or DuckDB; the rows of each table (extra `report`)."""
    require_packages("An export", "duckdb", extra="report")
    from gta_bench.runs.results_table import export_results

    held = read_settings().settings.judge
    thresholds = Thresholds(held.leaf_threshold, held.root_threshold)
    folders = [Path(one) for one in runs]
    return export_results(folders, Path(out), thresholds=thresholds, shape=shape)


def _judge(
    folder: Path, judges: Sequence[str | Model], settings: Settings, tasks: tuple[str, ...] | None
) -> None:
    named = [one for one in judges if isinstance(one, str)]
    opened = [one for one in judges if isinstance(one, Model)]
    if named:
        _ask(folder, plan_judging(named, settings, tasks=tasks), None)
    if opened:
        options = judge_options(settings.judge)
        stated = tuple(_stated(one) for one in opened)
        _ask(
            folder,
            Judging(stated, options, settings.judge.repeats, settings, tasks=tasks),
            opened,
        )


def _ask(folder: Path, judging: Judging, models: Sequence[Model] | None) -> None:
    for _ in judge_run(folder, judging, lambda _: nullcontext(_nobody), models=models):
        pass


def _chosen(
    model: str | Model | None,
    agent: str,
    settings: Settings,
    generate: Mapping[str, JsonValue] | None,
    args: Mapping[str, JsonValue] | None,
) -> ChosenModel:
    if isinstance(model, str):
        chosen = choose_model(model, settings)
        held = add_generation(chosen.settings, "run()", generate=generate, args=args)
        return chosen._replace(settings=held)
    if generate or args:
        raise UsageError(
            "`generate` and `model_args` are for a model that is given by its name: "
            "model='provider/model'."
        )
    if model is not None:
        return _stated(model)
    if agent not in WITHOUT_MODEL:
        raise UsageError(f"Agent {agent!r} needs a model: model='provider/model'.")
    return NO_MODEL


def _judge_name(judge: str | Model, settings: Settings) -> str:
    return str(judge) if isinstance(judge, Model) else choose_model(judge, settings).name


def _stated(model: Model) -> ChosenModel:
    """An open model, as a manifest states it."""
    return ChosenModel(str(model), state_generation(model))


def _nobody(_: RunProgress) -> None:
    """Told how far a run is, tells nobody."""
