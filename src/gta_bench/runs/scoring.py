"""Scores a stored run and reads it for comparisons; no model is called."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from math import inf, isfinite
from statistics import fmean
from typing import Any, Final, cast

from gta_bench.errors import UsageError
from gta_bench.metrics.run_scores import UnitSink, count_tool_uses
from gta_bench.metrics.workflow_scores import TaskSink, Thresholds, UnitRows, score_units
from gta_bench.own_code import NoDigestError, digest_code
from gta_bench.packages import require_packages
from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.comparison import ComparedRun, UnitFacts
from gta_bench.records.digests import TaskDigests
from gta_bench.records.failures import Failure
from gta_bench.records.scores import Measured, UnitScore
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
from gta_bench.runs.directory import (
    FAILURES,
    RESULTS,
    SCORES,
    UNITS,
    log_folder,
    progress_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
    write_scores,
)
from gta_bench.runs.logs import UnitStream
from gta_bench.runs.rows import judged_row, scored_row
from gta_bench.runs.store import StorePath, lock_folder, remove_folder
from gta_bench.runs.verdicts import StoredUnitRows, read_judges, read_unit_rows
from gta_bench.settings import Settings

ENTRY_POINTS = "gta_bench.metrics"
# The most units that `scores.json` lists; those of a longer run are in `results/`.
LISTED: Final = 20_000

# Returns a number for a unit, or None if the metric does not apply to it.
UnitMetric = Callable[[Any], float | None]


def load_metric(name: str) -> UnitMetric:
    """Load a metric of an installed package, or `pkg.mod:function`."""
    known = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    module, colon, attribute = known.get(name, name).partition(":")
    choices = ", ".join([*sorted(known), "`pkg.mod:function`"])
    if not (module and colon and attribute):
        raise UsageError(f"Unknown metric {name!r}. Use one of: {choices}.")
    try:
        return cast(UnitMetric, getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as exc:
        raise UsageError(f"Cannot load metric {name!r}: {exc}. Known: {choices}.") from exc


def measure(
    units: Sequence[AtomicUnit] | Sequence[WorkflowUnit],
    metric: UnitMetric,
    *,
    name: str,
    n_units: int,
) -> Measured:
    """Return the metric's mean over the units that it applies to.

    Units that failed through no fault of the system are left out. A metric without a digest is
    used as well, because nothing is resumed from it.
    """
    try:
        code = digest_code(metric, "metric")
    except NoDigestError:
        code = None
    found: dict[str, float] = {}
    for unit in units:
        try:
            value = None if unit.failure is not None else metric(unit)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
            raise UsageError(
                f"Metric {name!r} failed on task {unit.task.id}: {type(exc).__name__}: {exc}"
            ) from exc
        if value is None:
            continue
        if (problem := _find_problem(value)) is not None:
            raise UsageError(
                f"Metric {name!r} returned {problem} for task {unit.task.id}: return a finite "
                "number, or None if it does not apply."
            )
        found[f"{unit.task.id}.{unit.epoch}"] = value
    mean = fmean(found.values()) if found else None
    return Measured(name=name, value=mean, n=len(found), n_units=n_units, units=found, code=code)


def _find_problem(value: object) -> str | None:
    """Return what is wrong with a metric's value; None if it is a finite number."""
    try:
        if isinstance(value, int | float) and isfinite(value):
            return None
    except OverflowError:
        return "an integer that is too large"
    return f"{value!r:.80}"


@contextmanager
def collect_rows(run: StorePath, units: int) -> Iterator[UnitSink | None]:
    """Yield what takes the rows of a long Atomic run; None if its scores can list them.

    Rows can be read while they are written. The run has no scores until all are there.
    """
    if units <= LISTED:
        yield None
        _remove_rows(run)
        return
    _begin_rows(run, f"more than {LISTED:,} units")
    from gta_bench.runs.tables import TABLES, RowWriter

    name = str(run)
    with (
        RowWriter(run / RESULTS / UNITS, TABLES["samples"]) as rows,
        RowWriter(run / RESULTS / FAILURES, TABLES["failures"]) as failures,
    ):

        def sink(unit: AtomicUnit, score: UnitScore | None, failed: Sequence[Failure]) -> None:
            rows.add(scored_row(unit, name, score, failed), score)
            for one in failed:
                failures.add({"run": name, **one.model_dump()}, one)

        yield sink


@contextmanager
def collect_tasks(run: StorePath, *, listed: bool) -> Iterator[TaskSink | None]:
    """Yield what takes the rows of a long Workflow run; None if its scores list them."""
    if listed:
        yield None
        _remove_rows(run)
        return
    _begin_rows(run, f"more than {LISTED:,} units, or so many verdicts,")
    from gta_bench.runs.tables import JUDGED, TABLES, RowWriter

    name = str(run)
    with (
        RowWriter(run / RESULTS / UNITS, JUDGED) as rows,
        RowWriter(run / RESULTS / FAILURES, TABLES["failures"]) as failures,
    ):

        def sink(
            judge: str, unit: WorkflowUnit, task: TaskScore, failed: Sequence[Failure]
        ) -> None:
            rows.add(judged_row(unit, name, judge, task), task)
            for one in failed:
                failures.add({"run": name, "judge": judge, **one.model_dump()}, one)

        yield sink


def _begin_rows(run: StorePath, what: str) -> None:
    require_packages(f"Scoring {what}", "duckdb", extra="report")
    (run / SCORES).unlink(missing_ok=True)
    _remove_rows(run)


def _remove_rows(run: StorePath) -> None:
    if (run / RESULTS).is_dir():
        remove_folder(run / RESULTS)


def score_workflow_run(run: StorePath, settings: Settings) -> WorkflowScores:
    """Score the run by every judge that was asked, and write the scores.

    Of several commands that end at once, the last one writes what all of them found.
    """
    with lock_folder(progress_folder(run), patience=inf):
        scores = _score_by_judges(run, settings)
        write_scores(run, scores)
        return scores if _lists(scores) else read_workflow_scores(run)


def _lists(scores: WorkflowScores) -> bool:
    """Whether scores list their tasks; those of a long run are in `results/`."""
    return all(judge.tasks for judge in scores.judges)


def _score_by_judges(run: StorePath, settings: Settings) -> WorkflowScores:
    spec, rows = read_manifest(run).spec, read_unit_rows(run)
    units = UnitStream(log_folder(run), spec.tasks, spec.epochs, WorkflowUnit)
    listed = spec.units <= LISTED and not isinstance(rows, StoredUnitRows)
    with collect_tasks(run, listed=listed) as sink:
        return score_units(
            units,
            rows,
            thresholds=Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold),
            not_run=units.not_run,
            asked=[entry.name for entry in read_judges(run).judges],
            repeats=rows.repeats if isinstance(rows, StoredUnitRows) else None,
            pooling=settings.judge.panel,
            sink=sink,
        )


def read_compared(run: StorePath) -> ComparedRun:
    """Read what a comparison needs; `gta score` must have scored the run."""
    manifest = read_manifest(run)
    spec, logs = manifest.spec, log_folder(run)
    if spec.dataset == "atomic":
        done = UnitStream(logs, spec.tasks, spec.epochs, AtomicUnit)
        found = ComparedRun(name=str(run), manifest=manifest, scores=read_scores(run), units={})
        return found.model_copy(update={"units": PackedFacts(done, {})})
    rows = read_unit_rows(run)
    prompts: dict[str, set[str]] = {}
    for own in rows.values():
        for row in own:
            if row.key.judge != CHECK:
                prompts.setdefault(row.key.judge, set()).add(row.prompts)
    judged = ComparedRun(
        name=str(run),
        manifest=manifest,
        scores=read_workflow_scores(run),
        units={},
        judge_prompts={judge: tuple(sorted(seen)) for judge, seen in sorted(prompts.items())},
    )
    work = UnitStream(logs, spec.tasks, spec.epochs, WorkflowUnit)
    return judged.model_copy(update={"units": PackedFacts(work, rows)})


class PackedFacts(Mapping[UnitKey, UnitFacts]):
    """The facts of all units with a result, packed: a tenth of the memory of records."""

    def __init__(
        self, units: Iterable[AtomicUnit] | Iterable[WorkflowUnit], rows: UnitRows
    ) -> None:
        self._packed: dict[UnitKey, tuple[bytes, TaskDigests | None]] = {}
        for unit in units:
            if unit.failure is None:
                key = (sys.intern(unit.task.id), unit.epoch)
                facts = UnitFacts(
                    usage=unit.usage,
                    tools=count_tool_uses(unit.calls),
                    # Verdicts of checks are part of every judge's table, and the same for all.
                    evidence={
                        row.key.judge: row.evidence
                        for row in rows.get(key, ())
                        if row.key.judge != CHECK
                    },
                )
                # The epochs of a task share one record of its digests.
                packed = facts.model_dump_json(exclude_defaults=True).encode()
                self._packed[key] = packed, unit.digests

    def __getitem__(self, key: UnitKey) -> UnitFacts:
        packed, digests = self._packed[key]
        facts = UnitFacts.model_validate_json(packed)
        return facts if digests is None else facts.model_copy(update={"digests": digests})

    def __iter__(self) -> Iterator[UnitKey]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
