"""The Python API: the same work as the commands, with typed records as results.

`gta_bench.load`, `gta_bench.run` and the others are these functions. Everything they return is a
frozen record. Failures that are not bugs are `gta_bench.GtaError`s with one line of text.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar, get_args

from inspect_ai.model import Model
from pydantic import JsonValue

from gta_bench.agents.catalog import DEFAULT_AGENT, WITHOUT_MODEL
from gta_bench.agents.generation import add_generation, state_generation
from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.selection import Selection, choose_tasks
from gta_bench.datasets.workflow import WORKFLOW_FILE
from gta_bench.errors import GtaError as GtaError
from gta_bench.errors import UsageError
from gta_bench.judging.options import judge_options
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.packages import require_packages
from gta_bench.records.calls import ToolResult
from gta_bench.records.comparison import Comparison
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
from gta_bench.running.preflight import check_start
from gta_bench.running.shards import Listener
from gta_bench.running.system_run import Resources, describe_system, execute, plan_run, read_dataset
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.logs import read_units
from gta_bench.runs.scoring import UnitMetric, load_metric, score_workflow_run
from gta_bench.runs.scoring import measure as measure_units
from gta_bench.runs.store import StorePath, store_path
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings as Settings
from gta_bench.settings import read_settings
from gta_bench.similarity.catalog import choose_similarity, load_similarity, score_units
from gta_bench.tape.storage import tape_use
from gta_bench.tools.catalog import tool_names as tool_names
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from gta_bench.running.judge_run import Judging

# A local folder or file, or an address such as s3://bucket/x.
Folder = str | StorePath
Scores = RunScores | WorkflowScores
_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


def _allow_event_loop(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
    """Run the function in its own thread if an event loop is running, as in notebooks."""

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
        if not _is_loop_running():
            return function(*args, **kwargs)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *args, **kwargs).result()

    return call


def _is_loop_running() -> bool:
    # A function of its own, so that failures of the call do not have this exception as context.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def load(dataset: str | Path) -> Dataset:
    """Load a dataset: `atomic` or `workflow` of gta.toml, an installed dataset, or a folder.

    >>> import gta_bench
    >>> from gta_bench.demo import ATOMIC
    >>> len(gta_bench.load(ATOMIC).tasks)
    5
    """
    data = read_settings().settings.data
    named = {"atomic": data.atomic, "workflow": data.workflow}
    root = dataset_root(named.get(str(dataset), str(dataset)))
    is_workflow = dataset == "workflow" or (root / WORKFLOW_FILE).is_file()
    return read_dataset("workflow" if is_workflow and dataset != "atomic" else "atomic", root)


@_allow_event_loop
def call(
    tool: str,
    /,
    *,
    files: Iterable[str | Path] = (),
    keep: str | Path | None = None,
    **arguments: JsonValue,
) -> ToolResult:
    """Call a tool once.

    `files` are copied to its `inputs/`. Files that it produces are in `outputs/` below `keep`, or
    are deleted if `keep` is not given.

    >>> import gta_bench
    >>> gta_bench.call("Calculator", expression="6 * 7").text
    '42'
    """
    sources = {f"inputs/{Path(file).name}": Path(file) for file in files}

    async def call_tool(folder: Path) -> ToolResult:
        workspace = Workspace.create(folder, sources, follow_links=True)
        async with use_equipment(read_settings().settings) as equipment:
            return await Toolbox(equipment, [tool]).call(workspace, tool, arguments)

    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        return asyncio.run(call_tool(Path(folder)))


@_allow_event_loop
def run(
    dataset: DatasetName,
    out: Folder,
    *,
    model: str | Model | None = None,
    agent: str = DEFAULT_AGENT,
    mode: Mode = "end-to-end",
    data: str | Path | None = None,
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
    """Run a model with an agent on a dataset and score it; `gta run` describes the options.

    Finished units in `out` are not repeated, and more tasks or epochs extend the run. `model` and
    `judges` are Inspect model names, names from gta.toml, or Inspect models. `generate` has options
    of Inspect's GenerateConfig and `model_args` arguments of the provider; an Inspect model already
    has both. `listener` is called with the progress whenever a unit starts or ends. Unless
    `preflight` is False, each model and judge given by name first gets a test request.

    >>> import gta_bench
    >>> from gta_bench.demo import ATOMIC
    >>> scores = gta_bench.run("atomic", "runs/gold", agent="gold", mode="step", data=ATOMIC)
    >>> scores.n, scores.strict.tool_acc
    (5, 100.0)
    """
    _check_arguments(dataset, mode, tasks, judges, epochs, max_turns, max_calls, limit, sample)
    settings = settings or read_settings().settings
    folder, taped = _to_path(out), None if tape is None else _to_path(tape)
    resources = Resources(
        data=dataset_root(str(data or getattr(settings.data, dataset))),
        settings=settings,
        model=_choose_model(model, agent, settings, generate, model_args),
        tape=taped,
    )
    loaded = read_dataset(dataset, resources.data)
    named = [one for one in judges if isinstance(one, str)]
    spec = RunSpec(
        dataset=dataset,
        mode=mode if dataset == "atomic" else "workflow",
        system=describe_system(resources, agent, images),
        tasks=choose_tasks(loaded, Selection(tasks, (), limit, sample, sample_seed)),
        epochs=epochs,
        loop=LoopLimits(max_turns=max_turns, max_calls=max_calls),
        tape=None if taped is None else tape_use(taped, "replay"),
        judges=tuple(_judge_name(one, settings) for one in judges),
        similarity=choose_similarity(settings.scoring),
    )
    planned = plan_run(spec, resources, loaded, out=folder)
    opened = model if isinstance(model, Model) else None
    judging = _plan_judging(named, settings) if named else None
    check_start([(folder, planned, resources)], judging, ask=preflight, model=opened)
    execute(planned, resources, folder, listener or (lambda _: None), model=opened)
    _judge(folder, judges, settings, spec.tasks)
    return score(folder, settings=settings)


def _check_arguments(
    dataset: object, mode: object, tasks: object, judges: Sequence[object], *counts: int | None
) -> None:
    """Raise UsageError for arguments of `run` that a notebook without type checks may pass."""
    if dataset not in get_args(DatasetName):
        raise UsageError(f"Unknown dataset {dataset!r}: use 'atomic' or 'workflow'.")
    if mode not in get_args(Mode):
        raise UsageError(f"Unknown mode {mode!r}: use 'step' or 'end-to-end'.")
    if tasks is not None and not isinstance(tasks, str):
        raise UsageError("`tasks` must be a string: a range such as '0:10', or ids such as '3,5'.")
    if any(count is not None and count < 1 for count in counts):
        raise UsageError(
            "`epochs`, `max_turns`, `max_calls`, `limit` and `sample` must be at least 1."
        )
    if judges and dataset == "atomic":
        raise UsageError("GTA-Atomic has no judge: leave `judges` out.")


@_allow_event_loop
def judge(out: Folder, *judges: str | Model, settings: Settings | None = None) -> None:
    """Ask judges about every leaf of a Workflow run that they have not scored yet.

    Call `score` afterwards to compute the scores.

    >>> import gta_bench
    >>> from gta_bench.demo.script import make_scripted_judge
    >>> gta_bench.judge("runs/workflow", make_scripted_judge())
    >>> gta_bench.score("runs/workflow").complete
    True
    """
    _judge(_to_path(out), judges, settings or read_settings().settings, None)


def score(out: Folder, *, settings: Settings | None = None) -> Scores:
    """Score a stored run again, without calling a model or a tool, and store the scores.

    >>> import gta_bench
    >>> gta_bench.score("runs/gold").n
    5
    """
    settings = settings or read_settings().settings
    folder = _to_path(out)
    spec = read_manifest(folder).spec
    if spec.mode == "workflow":
        return score_workflow_run(folder, settings)
    found = read_units(log_folder(folder), spec.tasks, spec.epochs, AtomicUnit)
    similarity = load_similarity(choose_similarity(settings.scoring))
    scores = score_units(found.units, spec.mode, similarity, found.not_run)
    write_scores(folder, scores)
    return scores


def manifest(out: Folder) -> RunManifest:
    """Return a run's manifest: its system, tasks, options, digests and versions.

    >>> import gta_bench
    >>> gta_bench.manifest("runs/gold").spec.system.agent
    'gold'
    """
    return read_manifest(_to_path(out))


def units(out: Folder) -> tuple[AtomicUnit, ...] | tuple[WorkflowUnit, ...]:
    """Return what the system did in every task: its trace, calls, usage and files.

    >>> import gta_bench
    >>> gta_bench.units("runs/gold")[0].task.id
    'receipt'
    """
    folder = _to_path(out)
    spec = read_manifest(folder).spec
    if spec.mode == "workflow":
        return read_units(log_folder(folder), spec.tasks, spec.epochs, WorkflowUnit).units
    return read_units(log_folder(folder), spec.tasks, spec.epochs, AtomicUnit).units


def verdicts(out: Folder) -> Mapping[VerdictKey, VerdictRow]:
    """Return every judge's verdict on every leaf of a Workflow run.

    >>> import gta_bench
    >>> {key.task for key in gta_bench.verdicts("runs/workflow")}
    {'sales'}
    """
    return read_verdicts(_to_path(out))


def measure(out: Folder, metric: UnitMetric | str) -> Measured:
    """Apply your own metric to a stored run: a function of a unit, or the name of a metric.

    >>> import gta_bench
    >>> def turns(unit):
    ...     return len(unit.trace)
    >>> gta_bench.measure("runs/silent", turns).n
    5
    """
    function = load_metric(metric) if isinstance(metric, str) else metric
    name = metric if isinstance(metric, str) else metric.__name__
    return measure_units(units(out), function, name=name, n_units=manifest(out).spec.units)


def compare(first: Folder, second: Folder, *others: Folder) -> list[Comparison]:
    """Compare the first run with each of the others, paired by task (extra `report`).

    >>> import gta_bench
    >>> gta_bench.compare("runs/gold", "runs/silent")[0].second
    'runs/silent'
    """
    require_packages("A comparison", "scipy", extra="report")
    from gta_bench.decisions.comparison import compare as compare_runs
    from gta_bench.runs.scoring import read_compared

    return list(compare_runs([read_compared(_to_path(one)) for one in (first, second, *others)]))


def report(file: str | Path, *runs: Folder) -> Path:
    """Write runs as one self-contained HTML page and return its path (extra `report`).

    >>> import gta_bench
    >>> gta_bench.report("report.html", "runs/gold", "runs/silent").name
    'report.html'
    """
    from gta_bench.web.reading import write_report_page

    if not runs:
        raise UsageError("A report needs at least one run: name its folder.")
    write_report_page([_to_path(one) for one in runs], Path(file))
    return Path(file)


def export(
    out: Folder,
    *runs: Folder,
    shape: Literal["parquet", "csv"] = "parquet",
    settings: Settings | None = None,
) -> Mapping[str, int]:
    """Write runs as tables for pandas, Polars or DuckDB (extra `report`).

    Returns the number of rows in each table.

    >>> import gta_bench
    >>> gta_bench.export("tables", "runs/gold")["samples"]
    5
    """
    require_packages("An export", "duckdb", extra="report")
    from gta_bench.runs.results_table import export_results

    judge = (settings or read_settings().settings).judge
    thresholds = Thresholds(judge.leaf_threshold, judge.root_threshold)
    folders = [_to_path(one) for one in runs]
    return export_results(folders, _to_path(out), thresholds=thresholds, shape=shape)


def _judge_name(judge: str | Model, settings: Settings) -> str:
    return str(judge) if isinstance(judge, Model) else choose_model(judge, settings).name


def _to_path(folder: Folder) -> StorePath:
    return store_path(folder) if isinstance(folder, str) else folder


def _judge(
    folder: StorePath,
    judges: Sequence[str | Model],
    settings: Settings,
    tasks: tuple[str, ...] | None,
) -> None:
    named = [one for one in judges if isinstance(one, str)]
    opened = [one for one in judges if isinstance(one, Model)]
    if named:
        ask_judges(folder, _plan_judging(named, settings, tasks))
    if opened:
        from gta_bench.running.judge_run import Judging

        models = tuple(_describe_model(one) for one in opened)
        options = judge_options(settings.judge)
        judging = Judging(models, options, settings.judge.repeats, settings, tasks=tasks)
        ask_judges(folder, judging, opened)


def _plan_judging(
    judges: Sequence[str], settings: Settings, tasks: tuple[str, ...] | None = None
) -> "Judging":
    from gta_bench.running.judge_run import plan_judging

    return plan_judging(judges, settings, tasks=tasks)


def ask_judges(
    folder: StorePath, judging: "Judging", models: Sequence[Model] | None = None
) -> None:
    """Ask the judges without reporting progress; `models` are used instead of opening them."""
    from gta_bench.running.judge_run import judge_run

    for _ in judge_run(folder, judging, lambda _: nullcontext(lambda _: None), models=models):
        pass


def _choose_model(
    model: str | Model | None,
    agent: str,
    settings: Settings,
    generate: Mapping[str, JsonValue] | None,
    args: Mapping[str, JsonValue] | None,
) -> ChosenModel:
    if isinstance(model, str):
        chosen = choose_model(model, settings)
        own = add_generation(chosen.settings, "run()", generate=generate, args=args)
        return chosen._replace(settings=own)
    if generate or args:
        raise UsageError(
            "`generate` and `model_args` need a model that is given by name: "
            "model='provider/model'."
        )
    if model is not None:
        return _describe_model(model)
    if agent not in WITHOUT_MODEL:
        raise UsageError(f"Agent {agent!r} needs a model: model='provider/model'.")
    return NO_MODEL


def _describe_model(model: Model) -> ChosenModel:
    """Describe an open model as a manifest does."""
    return ChosenModel(str(model), state_generation(model))
