"""The Python API: the same work as the commands, with typed records as results.

`gta_bench.load`, `gta_bench.run` and the others are these functions; `gta_bench.arun` and so on are
the same as coroutines. Everything they return is a frozen record. Failures that are not bugs are
`gta_bench.GtaError`s with one line of text. An interrupt stops the work and keeps what is finished:
KeyboardInterrupt, or CancelledError in a coroutine, says how to continue.
"""

import inspect
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, get_args, get_type_hints, overload

from inspect_ai.model import Model
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.workflow import is_workflow
from gta_bench.errors import GtaError as GtaError
from gta_bench.errors import RunError, UsageError
from gta_bench.harnesses.choice import CellLimits as CellLimits
from gta_bench.harnesses.choice import Harness as Harness
from gta_bench.judging.options import judge_options
from gta_bench.judging.own import make_own_judge
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.own_code import name_function
from gta_bench.packages import require_packages
from gta_bench.records.base import is_json
from gta_bench.records.calls import ToolResult
from gta_bench.records.comparison import Comparisons
from gta_bench.records.run import DatasetName, Mode, RunManifest, RunSpec
from gta_bench.records.scores import (
    EndToEndScores,
    Measured,
    RunScores,
    StepScores,
    StrictEndToEndScores,
    StrictStepScores,
)
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.views import use_renderer
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.backends.backend import (
    INLINE,
    Backend,
    open_backend,
    refuse_import_by_worker,
)
from gta_bench.running.calling import offer, offer_async
from gta_bench.running.feedback import Judged, run_rounds
from gta_bench.running.planning import (
    DEFAULTS,
    AnyJudge,
    Folder,
    PlannedRun,
    RunOptions,
    check_options,
    describe_model,
    flatten_settings,
    plan_own_run,
    to_local_path,
)
from gta_bench.running.preflight import check_start
from gta_bench.running.shards import Listener
from gta_bench.running.stopping import run_async, use_engine
from gta_bench.running.system_run import execute, read_dataset
from gta_bench.runs.directory import (
    log_folder,
    progress_folder,
    read_manifest,
    read_scores,
    write_scores,
)
from gta_bench.runs.logs import UnitStream, read_units
from gta_bench.runs.rows import RunUnits, Verdicts
from gta_bench.runs.scoring import UnitMetric, collect_rows, load_metric, score_workflow_run
from gta_bench.runs.scoring import measure as measure_units
from gta_bench.runs.store import RemotePath, StorePath, lock_folder, store_path
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings as Settings
from gta_bench.settings import read_settings
from gta_bench.similarity.catalog import choose_similarity, load_similarity, score_units
from gta_bench.tools.catalog import tool_names as tool_names
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from gta_bench.running.judge_run import Judging

Scores = RunScores | WorkflowScores
# Settings as a record, or those that differ from gta.toml, by key: {"budget.max_connections": 8}.
SettingValues = Settings | Mapping[str, JsonValue]


def _render_html(one: object) -> str | None:
    # Imported when a notebook shows the first result, because it takes time.
    from gta_bench.web.notebook import render_html

    return render_html(one)


use_renderer(_render_html)


@overload
def load(dataset: Literal["atomic"]) -> AtomicDataset: ...
@overload
def load(dataset: Literal["workflow"]) -> WorkflowDataset: ...
@overload
def load(dataset: str | Path) -> Dataset: ...
@offer
def load(dataset: str | Path) -> Dataset:
    """Load a dataset: `atomic` or `workflow` of gta.toml, an installed dataset, or a folder.

    >>> import gta_bench
    >>> from gta_bench.demo import ATOMIC
    >>> len(gta_bench.load(ATOMIC).tasks)
    5
    """
    if not isinstance(dataset, str | Path):
        raise UsageError(f"{dataset!r} is not a dataset: use 'atomic', 'workflow' or a folder.")
    settings = read_settings().settings
    named = {"atomic": settings.data.atomic, "workflow": settings.data.workflow}
    root = dataset_root(named.get(str(dataset), str(dataset)), settings.datasets)
    as_workflow = dataset == "workflow" or (dataset != "atomic" and is_workflow(root))
    return read_dataset("workflow" if as_workflow else "atomic", root)


@offer
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
    if not isinstance(tool, str):
        raise UsageError(f"{tool!r} is not the name of a tool: `gta_bench.tool_names()` has all.")
    if isinstance(files, str | Path) or not isinstance(files, Iterable):
        raise UsageError("`files` must be a list of paths, such as files=['chart.png'].")
    paths = [to_local_path("files", file) for file in files]
    sources = {f"inputs/{path.name}": path for path in paths}
    for name, value in arguments.items():
        if not is_json(value):
            raise UsageError(f"{tool}: `{name}` must be a value that JSON has, but is {value!r}.")

    async def call_tool(folder: Path) -> ToolResult:
        workspace = Workspace.create(folder, sources, follow_links=True)
        async with use_equipment(read_settings().settings) as equipment:
            return await Toolbox(equipment, [tool]).call(workspace, tool, arguments)

    kept = None if keep is None else to_local_path("keep", keep)
    with tempfile.TemporaryDirectory() if kept is None else nullcontext(kept) as folder:
        return run_async(call_tool(Path(folder)))


@overload
def run(
    dataset: Literal["atomic"],
    out: Folder,
    *,
    mode: Literal["end-to-end"] = ...,
    **options: Unpack[RunOptions],
) -> RunScores[StrictEndToEndScores, EndToEndScores]: ...
@overload
def run(
    dataset: Literal["atomic"],
    out: Folder,
    *,
    mode: Literal["step"],
    **options: Unpack[RunOptions],
) -> RunScores[StrictStepScores, StepScores]: ...
@overload
def run(
    dataset: Literal["workflow"], out: Folder, **options: Unpack[RunOptions]
) -> WorkflowScores: ...
@offer
def run(
    dataset: DatasetName,
    out: Folder,
    *,
    mode: Mode = "end-to-end",
    **options: Unpack[RunOptions],
) -> Scores:
    """Run a system on a dataset and score it; `gta run` describes the options.

    Finished units in `out` are not repeated, and more tasks or epochs extend the run. Only one run
    is at work in a process; another one waits for it.

    The system is a `model` with an `agent`, or a `harness`: a command, or a `Harness`. `model` and
    `judges` are Inspect model names, names from gta.toml, or Inspect models. `generate` has options
    of Inspect's GenerateConfig and `model_args` arguments of the provider; an Inspect model already
    has both. `agent` and `judges` may be your own functions: the manifest has the digests of their
    code, and a run does not continue with a changed agent. `tasks` is a range such as "0:10", or a
    list of ids. `settings` replaces gta.toml, or only some of its values:
    {"budget.max_connections": 8}. With `feedback_rounds`, the `feedback` of the judge goes back to
    the system, and the scores are those of the last round. `listener` is called with the progress
    whenever a unit starts or ends. Unless `preflight` is False, each model and judge given by name
    first gets a test request.

    >>> import gta_bench
    >>> from gta_bench.demo import ATOMIC
    >>> scores = gta_bench.run("atomic", "runs/gold", agent="gold", mode="step", data=ATOMIC)
    >>> scores.n, scores.strict.tool_acc
    (5, 100.0)
    """
    refuse_import_by_worker()
    _check_names(dataset, mode)
    chosen = check_options(options)
    settings = _settings(chosen["settings"])
    if chosen["data"] is not None:
        moved = settings.data.model_copy(update={dataset: str(chosen["data"])})
        settings = settings.model_copy(update={"data": moved})
    judges = _open_functions(chosen["judges"])
    planned = plan_own_run(dataset, mode, _to_path(out), settings, chosen, judges)
    opened = chosen["model"] if isinstance(chosen["model"], Model) else None
    if opened is not None and (chosen["workers"] or chosen["cluster"]):
        raise UsageError("An opened model works in this process only: give its name to `workers`.")
    named = [one for one in judges if isinstance(one, str)]
    judging = _plan_judging(named, settings) if named else None
    with use_engine(), open_backend(chosen["workers"], chosen["cluster"]) as backend:
        check_start([planned], judging, ask=chosen["preflight"], model=opened)
        return _execute(planned, chosen, judges, settings, opened, backend)


arun = offer_async(run)


def _execute(
    planned: PlannedRun,
    options: RunOptions,
    judges: Sequence[str | Model],
    settings: Settings,
    model: Model | None,
    backend: Backend,
) -> Scores:
    """Run and score, in one round or in several."""
    out, manifest, resources = planned
    listener = options["listener"] or (lambda _: None)
    if manifest.spec.dataset == "atomic":
        execute(manifest, resources, out, listener, model=model, backend=backend)
        return _score(out, settings)

    def judge_round(folder: StorePath) -> Judged:
        _check(folder, settings, manifest.spec.tasks)
        found = _judge(folder, judges, settings, manifest.spec.tasks, backend)
        return Judged(found[0] if found else "", score_workflow_run(folder, settings))

    rounds = run_rounds(
        manifest,
        resources,
        out,
        lambda _: nullcontext(listener),
        judge_round,
        rounds=options["feedback_rounds"],
        level=options["feedback"],
        model=model,
        backend=backend,
    )
    return [judged.scores for _, judged in rounds][-1]


def _check_names(dataset: object, mode: object) -> None:
    if dataset not in get_args(DatasetName):
        raise UsageError(f"Unknown dataset {dataset!r}: use 'atomic' or 'workflow'.")
    if mode not in get_args(Mode):
        raise UsageError(f"Unknown mode {mode!r}: use 'step' or 'end-to-end'.")


@offer
def judge(out: Folder, *judges: AnyJudge, settings: SettingValues | None = None) -> None:
    """Ask judges about every leaf of a Workflow run that they have not scored yet.

    A judge is a model or your own function. Call `score` afterwards to compute the scores.

    >>> import gta_bench
    >>> from gta_bench.demo.script import make_scripted_judge
    >>> gta_bench.judge("runs/workflow", make_scripted_judge())
    >>> gta_bench.score("runs/workflow").complete
    True
    """
    refuse_import_by_worker()
    if not judges:
        raise UsageError("Name at least one judge: judge(out, 'provider/model').")
    with use_engine():
        _judge(_to_path(out), _open_functions(judges), _settings(settings), None, INLINE)


ajudge = offer_async(judge)


@overload
def score(
    out: Folder, dataset: Literal["atomic"], *, settings: SettingValues | None = None
) -> RunScores: ...
@overload
def score(
    out: Folder, dataset: Literal["workflow"], *, settings: SettingValues | None = None
) -> WorkflowScores: ...
@overload
def score(
    out: Folder, dataset: DatasetName | None = None, *, settings: SettingValues | None = None
) -> Scores: ...
@offer
def score(
    out: Folder, dataset: DatasetName | None = None, *, settings: SettingValues | None = None
) -> Scores:
    """Score a stored run again, without calling a model or a tool, and store the scores.

    If you name its dataset, the type of the scores is known, and a run of another one is refused.

    >>> import gta_bench
    >>> gta_bench.score("runs/gold").n
    5
    """
    _read_spec(out, dataset)
    return _score(_to_path(out), _settings(settings))


ascore = offer_async(score)


def _check(folder: StorePath, settings: Settings, tasks: tuple[str, ...] | None = None) -> None:
    # Imported when a run may have checks, because it imports all readers of files.
    from gta_bench.running.check_run import check_run

    check_run(folder, settings, tasks)


def _score(folder: StorePath, settings: Settings) -> Scores:
    spec = read_manifest(folder).spec
    if spec.mode == "workflow":
        _check(folder, settings)
        return score_workflow_run(folder, settings)
    found = UnitStream(log_folder(folder), spec.tasks, spec.epochs, AtomicUnit)
    similarity = load_similarity(choose_similarity(settings.scoring))
    # Rows of two commands must not be mixed.
    with lock_folder(progress_folder(folder), patience=inf):
        with collect_rows(folder, spec.units) as sink:
            scores = score_units(found, spec.mode, similarity, found.not_run, sink)
        write_scores(folder, scores)
        return scores if sink is None else read_scores(folder)


@offer
def manifest(out: Folder) -> RunManifest:
    """Return a run's manifest: its system, tasks, options, digests and versions.

    >>> import gta_bench
    >>> gta_bench.manifest("runs/gold").spec.system.agent
    'gold'
    """
    return read_manifest(_to_path(out))


@overload
def units(out: Folder, dataset: Literal["atomic"]) -> RunUnits[AtomicUnit]: ...
@overload
def units(out: Folder, dataset: Literal["workflow"]) -> RunUnits[WorkflowUnit]: ...
@overload
def units(
    out: Folder, dataset: DatasetName | None = None
) -> RunUnits[AtomicUnit] | RunUnits[WorkflowUnit]: ...
@offer
def units(
    out: Folder, dataset: DatasetName | None = None
) -> RunUnits[AtomicUnit] | RunUnits[WorkflowUnit]:
    """Return what the system did in every task: its trace, calls, usage and files.

    If you name its dataset, the type of the units is known, and a run of another one is refused.

    >>> import gta_bench
    >>> gta_bench.units("runs/gold")[0].task.id
    'receipt'
    """
    spec, logs = _read_spec(out, dataset), log_folder(_to_path(out))
    if spec.mode == "workflow":
        done = read_units(logs, spec.tasks, spec.epochs, WorkflowUnit)
        return RunUnits(done.units, str(out))
    found = read_units(logs, spec.tasks, spec.epochs, AtomicUnit)
    return RunUnits(found.units, str(out))


@offer
def verdicts(out: Folder) -> Verdicts:
    """Return every judge's verdict on every leaf of a Workflow run.

    >>> import gta_bench
    >>> {key.task for key in gta_bench.verdicts("runs/workflow")}
    {'sales'}
    """
    spec = _read_spec(out, None)
    if spec.mode != "workflow":
        raise RunError(f"{out} is a run of GTA-Atomic, which has no judge and so no verdicts.")
    return Verdicts(read_verdicts(_to_path(out)), str(out))


@offer
def measure(out: Folder, metric: UnitMetric | str) -> Measured:
    """Apply your own metric to a stored run: a function of a unit, or the name of a metric.

    >>> import gta_bench
    >>> from gta_bench.records.units import AtomicUnit
    >>> def turns(unit: AtomicUnit) -> float:
    ...     return len(unit.trace or ())
    >>> gta_bench.measure("runs/silent", turns).n
    5
    """
    function = load_metric(metric) if isinstance(metric, str) else metric
    name = metric if isinstance(metric, str) else name_function(metric)
    return measure_units(units(out), function, name=name, n_units=manifest(out).spec.units)


@offer
def compare(first: Folder, second: Folder, *others: Folder) -> Comparisons:
    """Compare the first run with each of the others, paired by task (extra `report`).

    >>> import gta_bench
    >>> gta_bench.compare("runs/gold", "runs/silent")[0].second
    'runs/silent'
    """
    require_packages("A comparison", "scipy", extra="report")
    from gta_bench.decisions.comparison import compare as compare_runs
    from gta_bench.runs.scoring import read_compared

    runs = [read_compared(_to_path(one)) for one in (first, second, *others)]
    return Comparisons(compare_runs(runs))


@offer
def report(file: str | Path, *runs: Folder) -> Path:
    """Write runs as one self-contained HTML page and return its path (extra `report`).

    >>> import gta_bench
    >>> gta_bench.report("report.html", "runs/gold", "runs/silent").name
    'report.html'
    """
    from gta_bench.web.reading import write_report_page

    if not runs:
        raise UsageError("A report needs at least one run: name its folder.")
    page = to_local_path("file", file)
    write_report_page([_to_path(one) for one in runs], page)
    return page


@offer
def export(
    out: Folder,
    *runs: Folder,
    shape: Literal["parquet", "csv"] = "parquet",
    settings: SettingValues | None = None,
) -> Mapping[str, int]:
    """Write runs as tables for pandas, Polars or DuckDB (extra `report`).

    Returns the number of rows in each table.

    >>> import gta_bench
    >>> gta_bench.export("tables", "runs/gold")["samples"]
    5
    """
    require_packages("An export", "duckdb", extra="report")
    from gta_bench.runs.results_table import export_results

    if shape not in ("parquet", "csv"):
        raise UsageError(f"Unknown shape {shape!r}: use 'parquet' or 'csv'.")
    if not runs:
        raise UsageError("An export needs at least one run: name its folder.")
    judge = _settings(settings).judge
    thresholds = Thresholds(judge.leaf_threshold, judge.root_threshold)
    folders = [_to_path(one) for one in runs]
    return export_results(folders, _to_path(out), thresholds=thresholds, shape=shape)


acall = offer_async(call)
ameasure = offer_async(measure)
acompare = offer_async(compare)
areport = offer_async(report)
aexport = offer_async(export)


def _settings(given: SettingValues | None) -> Settings:
    if isinstance(given, Settings):
        return given
    return read_settings(overrides=None if given is None else flatten_settings(given)).settings


def _read_spec(out: Folder, dataset: DatasetName | None) -> RunSpec:
    """Return the spec of a run; raise RunError if it is a run of another dataset."""
    spec = read_manifest(_to_path(out)).spec
    if dataset not in (None, spec.dataset):
        raise RunError(f"{out} is a run of the dataset {spec.dataset!r}, not of {dataset!r}.")
    return spec


def _open_functions(judges: Sequence[AnyJudge]) -> list[str | Model]:
    """Return the judges, with models in the place of functions."""
    return [one if isinstance(one, str | Model) else make_own_judge(one) for one in judges]


def _to_path(folder: Folder) -> StorePath:
    if not isinstance(folder, str | Path | RemotePath) or "\0" in str(folder):
        raise UsageError(f"{folder!r} is not a folder: use a string or a Path.")
    return store_path(folder) if isinstance(folder, str) else folder


def _judge(
    folder: StorePath,
    judges: Sequence[str | Model],
    settings: Settings,
    tasks: tuple[str, ...] | None,
    backend: Backend,
) -> list[str]:
    """Ask the judges, and return the names under which their verdicts are stored."""
    named = [one for one in judges if isinstance(one, str)]
    opened = [one for one in judges if isinstance(one, Model)]
    asked = []
    if named:
        asked += ask_judges(folder, _plan_judging(named, settings, tasks), backend=backend)
    if opened:
        from gta_bench.running.judge_run import Judging

        models = tuple(describe_model(one) for one in opened)
        options = judge_options(settings.judge)
        judging = Judging(models, options, settings.judge.repeats, settings, tasks=tasks)
        asked += ask_judges(folder, judging, opened)
    return asked


def _plan_judging(
    judges: Sequence[str], settings: Settings, tasks: tuple[str, ...] | None = None
) -> "Judging":
    from gta_bench.running.judge_run import plan_judging

    return plan_judging(judges, settings, tasks=tasks)


def ask_judges(
    folder: StorePath,
    judging: "Judging",
    models: Sequence[Model] | None = None,
    *,
    backend: Backend = INLINE,
) -> list[str]:
    """Ask the judges without reporting progress; `models` are used instead of opening them."""
    from gta_bench.running.judge_run import judge_run

    def ignore(_: str) -> AbstractContextManager[Listener]:
        return nullcontext(lambda _: None)

    return [one.judge for one in judge_run(folder, judging, ignore, backend, models=models)]


def _show_options() -> inspect.Signature:
    """Return the signature of `run` with every option, for `help` and for notebooks."""
    shown = inspect.signature(run)
    own = [one for one in shown.parameters.values() if one.kind is not one.VAR_KEYWORD]
    keyword = inspect.Parameter.KEYWORD_ONLY
    types = get_type_hints(RunOptions)
    options = [
        inspect.Parameter(name, keyword, default=value, annotation=types[name])
        for name, value in DEFAULTS.items()
    ]
    return shown.replace(parameters=[*own, *options])


vars(run)["__signature__"] = vars(arun)["__signature__"] = _show_options()
