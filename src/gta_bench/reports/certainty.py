"""How certain a run's scores are: intervals, missing units, and repeats."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.errors import format_count
from gta_bench.metrics import table
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure, GroupedFailures
from gta_bench.records.run import RunMode, RunSpec
from gta_bench.records.statistics import Bounds, Interval, RunVariance
from gta_bench.reports.estimates import (
    Estimate,
    Parts,
    PartTable,
    estimates,
    make_atomic_parts,
    make_workflow_parts,
    split_tasks,
)
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.tables import Table
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.statistics.pooled import pass_at_k, pass_hat_k, run_variance

REPEATS: Final = "Repeated runs: the chance that at least one of k succeeds, and that all do"
# Sums of similarities may be slightly too low because of rounding.
FULL = 1 - 1e-9
# Computes pass@k or pass^k from successes, repeats and k.
_Way = Callable[[Sequence[int], Sequence[int], int], Interval]


class RunMetrics(NamedTuple):
    """The metrics of one run, by one judge if it is a Workflow run.

    `broken` are units that failed through no fault of the system.
    """

    run: str
    judge: str
    mode: RunMode
    spec: RunSpec
    parts: Mapping[str, Parts]
    broken: frozenset[UnitKey]

    @property
    def of(self) -> str:
        """The run and its judge."""
        return f"{self.run}, judged by {self.judge}" if self.judge else self.run

    def estimates(self) -> list[Estimate]:
        """Return all estimates, the primary metric first."""
        found = estimates(self.parts, self.spec.tasks, epochs=self.spec.epochs)
        primary = table.primary(self.mode).name
        return sorted(found.values(), key=lambda one: one.metric != primary)


class Repeated(NamedTuple):
    """The repeats of one run, by its primary metric.

    `successes` of `tried` repeats of each task that has any; other tasks were never scored.
    """

    of: str
    metric: str
    tasks: int
    epochs: int
    successes: tuple[int, ...]
    tried: tuple[int, ...]
    variance: RunVariance

    @property
    def ks(self) -> list[int]:
        """All k up to 10, then 20, 50, 100 and so on, and the number of epochs."""
        series = {step * 10**power for power in range(len(str(self.epochs))) for step in (1, 2, 5)}
        return sorted(k for k in {*range(1, 11), *series, self.epochs} if k <= self.epochs)

    def shares(self, way: _Way, k: int) -> tuple[Interval, Bounds | None]:
        """Return the share over tasks with enough repeats, and bounds if any are missing."""
        enough = [one for one in zip(self.successes, self.tried, strict=True) if one[1] >= k]
        found = way([one[0] for one in enough], [one[1] for one in enough], k)
        never = self.tasks - len(self.tried)
        missing = sum(tried < self.epochs for tried in self.tried) + never
        if not missing:
            return found, None
        planned = [self.epochs] * self.tasks
        worst = [*self.successes, *[0] * never]
        gained = [self.epochs - tried for tried in (*self.tried, *[0] * never)]
        best = [low + more for low, more in zip(worst, gained, strict=True)]
        low, high = (way(one, planned, k).estimate for one in (worst, best))
        return found, Bounds(missing=missing, low=low, high=high)


def collect_metrics(summaries: Sequence[RunSummary | WorkflowSummary]) -> Iterator[RunMetrics]:
    """Yield the metrics of every run, for Workflow runs by every judge."""
    for summary in summaries:
        spec = summary.manifest.spec
        if isinstance(summary, RunSummary):
            scores = summary.scores
            rows = table.score_metrics(scores.mode)
            names = [row.name for row in rows if row.denominator is not None]
            counted = make_atomic_parts(scores.units, names)
            broken = _broken(scores.failures)
            yield RunMetrics(summary.name, "", scores.mode, spec, counted, broken)
            continue
        for judge in summary.scores.judges:
            parts = make_workflow_parts(judge.tasks, summary.scores)
            broken = _broken(judge.failures)
            yield RunMetrics(summary.name, judge.judge, "workflow", spec, parts, broken)


def _broken(failures: Iterable[Failure]) -> frozenset[UnitKey]:
    if isinstance(failures, GroupedFailures):
        return frozenset(failures.find_units("infrastructure"))
    return frozenset((one.task, one.epoch) for one in failures if one.cause == "infrastructure")


def interval_table(runs: Sequence[RunMetrics]) -> Table:
    """Return each metric with its interval, and the worst and best case of what is missing."""
    found = [(run, one) for run in runs for one in run.estimates()]
    lacking = any(one.bounds is not None for _, one in found)
    return Table(
        (
            *("run", "judge", "metric", "value", "95 % interval", "tasks", "worth"),
            *(("missing", "if they fail or pass") if lacking else ()),
        ),
        tuple(
            (
                run.run,
                run.judge or "-",
                table.label(one.metric),
                one.text,
                one.span,
                str(one.n),
                f"{one.effective:.0f}",
                *(
                    (str(one.bounds.missing if one.bounds else 0), one.cases or "-")
                    if lacking
                    else ()
                ),
            )
            for run, one in found
        ),
    )


def intervals_json(runs: Sequence[RunMetrics]) -> list[JsonValue]:
    """Return the same as JSON."""
    return [
        {
            "judge": run.judge or None,
            **one._replace(bounds=None)._asdict(),
            "bounds": None if one.bounds is None else one.bounds.model_dump(mode="json"),
        }
        for run in runs
        for one in run.estimates()
    ]


def describe_broken(runs: Sequence[RunMetrics]) -> Iterator[str]:
    """Describe scores without the units that a provider or we broke, if they were scored."""
    for run in runs:
        scored = {
            key
            for key in run.broken
            if any(key in own and own[key].seen > 0 for own in run.parts.values())
        }
        if not scored:
            continue
        kept = {
            name: PartTable(pair for pair in own.items() if pair[0] not in scored)
            for name, own in run.parts.items()
        }
        rest = run._replace(parts=kept)
        others = {one.metric: one for one in rest.estimates()}
        changes = [
            f"{table.label(one.metric)} {others[one.metric].text} instead of {one.text}"
            for one in run.estimates()
            if one.metric in others and others[one.metric].text != one.text
        ]
        tasks = sorted({task for task, _ in scored}, key=lambda task: (len(task), task))
        yield (
            f"{run.of}: {format_count(len(tasks), 'task')} failed through no fault of the system "
            f"({', '.join(tasks[:10])}{' …' if len(tasks) > 10 else ''}); without them: "
            f"{', '.join(changes) or 'the same'}."
        )


def collect_repeats(runs: Sequence[RunMetrics]) -> list[Repeated]:
    """Return the runs whose tasks were run more than once."""
    found = []
    for run in runs:
        row = table.primary(run.mode)
        tasks = split_tasks(run.parts[row.name])
        measured = (own.measured() for own in tasks.values())
        values = [value / seen / row.top for value, seen in measured if len(seen)]
        whole = [own.tolist() for own in values if len(own) == run.spec.epochs]
        if run.spec.epochs > 1 and len(whole) > 1:
            measurable = {task for task, own in tasks.items() if any(own.seen) or any(own.missing)}
            absent = {*run.spec.tasks} - tasks.keys()
            found.append(
                Repeated(
                    of=run.of,
                    metric=row.label,
                    tasks=len(measurable | absent),
                    epochs=run.spec.epochs,
                    successes=tuple(sum((own >= FULL).tolist()) for own in values),
                    tried=tuple(map(len, values)),
                    variance=run_variance(whole),
                )
            )
    return found


def repeat_table(found: Sequence[Repeated]) -> Table:
    """Return a row for each of `ks`: the chance that at least one of k repeats succeeds, or all."""
    lacking = any(one.shares(pass_at_k, 1)[1] for one in found)
    rows = []
    for one in found:
        for k in one.ks:
            cells = [cell for way in (pass_at_k, pass_hat_k) for cell in _cells(one, way, k)]
            kept = [cell for cell in cells if lacking or cell is not None]
            tasks = sum(tried >= k for tried in one.tried)
            rows.append((one.of, str(k), f"{tasks}/{one.tasks}", *(cell or "-" for cell in kept)))
    cases = ("if the missing fail or pass",) if lacking else ()
    heads = [("pass@k", "95 % interval", *cases), ("pass^k", "95 % interval", *cases)]
    return Table(("run", "k", "tasks", *heads[0], *heads[1]), tuple(rows))


def _cells(one: Repeated, way: _Way, k: int) -> tuple[str, str, str | None]:
    found, bounds = one.shares(way, k)
    return (
        f"{100 * found.estimate:.2f}",
        f"{100 * found.low:.2f} to {100 * found.high:.2f}",
        f"{100 * bounds.low:.2f} to {100 * bounds.high:.2f}" if bounds else None,
    )


def repeats_json(found: Sequence[Repeated]) -> list[JsonValue]:
    """Return the same as JSON."""
    return [
        {
            "of": one.of,
            "k": k,
            "tasks": sum(tried >= k for tried in one.tried),
            "all_tasks": one.tasks,
            "pass_at_k": _share_json(one, pass_at_k, k),
            "pass_hat_k": _share_json(one, pass_hat_k, k),
        }
        for one in found
        for k in one.ks
    ]


def _share_json(one: Repeated, way: _Way, k: int) -> JsonValue:
    found, bounds = one.shares(way, k)
    return {
        **{end: 100 * getattr(found, end) for end in ("estimate", "low", "high")},
        "bounds": None if bounds is None else bounds.scaled(100).model_dump(mode="json"),
    }


def repeat_remarks(found: Sequence[Repeated]) -> list[str]:
    """Describe how much of a score is chance, and what would make it more certain."""
    return [
        f"{one.of}: {one.metric} varies from run to run by {100 * one.variance.run_sd:.2f} points "
        f"(standard deviation of {one.variance.runs} runs"
        f"{_of_tasks(one)}); "
        f"{100 * one.variance.unstable:.0f} % of the tasks do not end the same each time. Halving "
        f"the interval takes four times as many tasks; more epochs narrow it by "
        f"{100 * _luck(one.variance):.0f} % at most."
        for one in found
    ]


def _of_tasks(one: Repeated) -> str:
    whole = one.variance.tasks
    return (
        "" if whole == one.tasks else f" of the {format_count(whole, 'task')} that have all of them"
    )


def _luck(variance: RunVariance) -> float:
    """Return by which share the interval would shrink if nothing were left to chance."""
    noise = variance.within_tasks / variance.runs
    whole = variance.between_tasks + noise
    return 1 - (variance.between_tasks / whole) ** 0.5 if whole else 0.0
