"""Compares two runs task by task: differences with intervals, usage, flips, self-test."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.errors import RunError
from gta_bench.metrics import table
from gta_bench.metrics.comparability import (
    describe_shared,
    find_cautions,
    find_changed_tasks,
    find_common_judges,
    find_refusals,
    find_shared_tasks,
)
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.metrics.table import Metric
from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.comparison import (
    ComparedRun,
    Comparison,
    EvidenceDifference,
    Flip,
    MetricDifference,
    Role,
    SelfTest,
    ToolDifference,
)
from gta_bench.records.cost import Cost, make_cost, read_cost, sum_costs
from gta_bench.records.run import RunMode
from gta_bench.records.scores import RunScores
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
from gta_bench.reports.estimates import (
    Paired,
    Part,
    Parts,
    PartTable,
    RunSums,
    make_atomic_parts,
    make_judged_parts,
    pair_tasks,
)
from gta_bench.reports.gains import GAINED
from gta_bench.reports.summary import is_foreign
from gta_bench.statistics.missing import Side, find_envelope
from gta_bench.statistics.pooled import Ratio, compute_difference
from gta_bench.statistics.proportions import holm

# How often the self-test swaps the systems.
ROUNDS: Final = 1000
# Any fixed number: the same runs give the same figures.
SEED: Final = 20261116
ROUNDING: Final = 1e-9
_Array = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]


class MeasuredPair(NamedTuple):
    """A metric of both runs, unit by unit; `top` is its highest value before scaling, if any."""

    name: str
    role: Role
    first: Parts
    second: Parts
    top: float | None = 1.0
    scale: float = 100.0


def compare(runs: Sequence[ComparedRun]) -> tuple[Comparison, ...]:
    """Compare the first run with each other one; raises if they do not measure the same."""
    first, *others = runs
    for other in others:
        if reasons := find_refusals(first, other):
            raise RunError(
                f"{first.name} and {other.name} cannot be compared: {'; '.join(reasons)}."
            )
    compared = [_compare(first, other) for other in others]
    corrected = correct_tests([one.metrics for one in compared])
    return tuple(
        one.model_copy(update={"metrics": own})
        for one, own in zip(compared, corrected, strict=True)
    )


def pair_metrics(
    first: ComparedRun, second: ComparedRun
) -> tuple[list[MeasuredPair], list[Paired]]:
    """Return all metrics that are tested, each on the tasks that are the same in both runs."""
    shared = find_shared_tasks(first, second)
    epochs = first.manifest.spec.epochs, second.manifest.spec.epochs
    scores = list(list_measured(_only(first, shared), _only(second, shared)))
    both = sorted(shared, key=natural_order)
    return scores, [pair_tasks(one.first, one.second, both, epochs=epochs) for one in scores]


def _compare(first: ComparedRun, second: ComparedRun) -> Comparison:
    """Compare two runs on the tasks that are the same in both."""
    scores, pairs = pair_metrics(first, second)
    shared, changed = find_shared_tasks(first, second), find_changed_tasks(first, second)
    both = sorted(shared, key=natural_order)
    versions = describe_shared(first, second)
    first, second = _only(first, shared), _only(second, shared)
    epochs = first.manifest.spec.epochs, second.manifest.spec.epochs
    tasks = {both[index] for pair in pairs for index in pair.common}
    if not tasks:
        raise RunError(
            f"{first.name} and {second.name} cannot be compared: no task has a score in both."
        )
    decided = {both[index] for index in pairs[0].common} or tasks
    # Units of these tasks; if both runs have as many epochs, those that both have.
    left, right = ({key for key in run.units if key[0] in decided} for run in (first, second))
    keys = left & right if epochs[0] == epochs[1] else left | right
    took = list(_took(first, second, keys))
    given = {*first.manifest.spec.tasks}, {*second.manifest.spec.tasks}
    left_out = (given[0] | given[1]) - tasks - {*changed}
    return Comparison(
        first=first.name,
        second=second.name,
        tasks=len(tasks),
        left_out=tuple(sorted(left_out, key=natural_order)),
        one_sided=tuple(sorted(given[0] ^ given[1], key=natural_order)),
        changed=tuple(sorted(changed, key=natural_order)),
        shared=versions,
        cautions=tuple(find_cautions(first, second)),
        metrics=find_differences(scores, pairs),
        took=find_differences(
            took, [pair_tasks(one.first, one.second, both, epochs=epochs) for one in took]
        ),
        per_dollar=(
            _per_dollar(first, scores[0].first, keys),
            _per_dollar(second, scores[0].second, keys),
        ),
        tools=_tools(first, second, tasks),
        evidence=tuple(_evidence(first, second)),
        flips=find_flips(first, second),
    )


def _only(run: ComparedRun, tasks: set[str]) -> ComparedRun:
    """Return the run with only these tasks."""
    if tasks >= {*run.manifest.spec.tasks}:
        return run
    scores: RunScores | WorkflowScores
    if isinstance(run.scores, WorkflowScores):
        judges = tuple(
            judge.model_copy(
                update={"tasks": tuple(one for one in judge.tasks if one.task in tasks)}
            )
            for judge in run.scores.judges
        )
        scores = run.scores.model_copy(update={"judges": judges})
    else:
        units = tuple(one for one in run.scores.units if one.task in tasks)
        scores = run.scores.model_copy(update={"units": units})
    kept = {key: unit for key, unit in run.units.items() if key[0] in tasks}
    return run.model_copy(update={"scores": scores, "units": kept})


def natural_order(task: str) -> tuple[int, str]:
    """Return a key that sorts the names of tasks by length first: 9 before 10."""
    return len(task), task


def list_measured(first: ComparedRun, second: ComparedRun) -> Iterator[MeasuredPair]:
    """Yield the primary metric first, of each judge if there are several."""
    one, two = first.scores, second.scores
    if isinstance(one, WorkflowScores) and isinstance(two, WorkflowScores):
        pairs = []
        for name in find_common_judges(first, second):
            # Both sides by the thresholds of the first.
            tables = [scores.table(name) for scores in (one, two)]
            sides = [make_judged_parts(own.tasks, one) for own in tables if own is not None]
            for row in table.JUDGED.values():
                left, right = (side[row.name] for side in sides)
                pairs.append(_row(row, "workflow", left, right, name))
        yield from sorted(pairs, key=lambda pair: pair.role != "primary")
        yield _row(table.TOOL_SR, "workflow", _tool_parts(first), _tool_parts(second))
        return
    assert not isinstance(one, WorkflowScores) and not isinstance(two, WorkflowScores)
    rows = [row for row in table.score_metrics(one.mode) if row.denominator is not None]
    names = [row.name for row in rows]
    sides = [make_atomic_parts(scores.units, names) for scores in (one, two)]
    for row in sorted(rows, key=lambda row: not row.primary):
        yield _row(row, one.mode, sides[0][row.name], sides[1][row.name])


def _row(
    row: Metric[Any], mode: RunMode, first: Parts, second: Parts, judge: str = ""
) -> MeasuredPair:
    name = f"{row.label}, {judge}" if judge else row.label
    role: Role = "primary" if row is table.primary(mode) else "secondary"
    return MeasuredPair(name, role, first, second, top=row.top, scale=row.factor)


def _tool_parts(run: ComparedRun) -> Parts:
    parts = ((key, Part(*table.TOOL_SR.part(unit.tools))) for key, unit in run.units.items())
    return PartTable(parts)


def _took(first: ComparedRun, second: ComparedRun, keys: set[UnitKey]) -> Iterator[MeasuredPair]:
    """Yield usage per unit, over the units that the scores are from; cost only if all is priced.

    Usage that is zero in every unit of a run was not recorded, as with imported results.
    """
    for row in table.TAKEN.values():
        sides = [
            PartTable(
                (key, Part(float(value), 1.0))
                for key, unit in run.units.items()
                if key in keys
                for value, whole in (row.part(unit.usage),)
                if whole and not (row is table.COST and _cost(run, unit.usage).unknown)
            )
            for run in (first, second)
        ]
        most = [max((part.value for _, part in side.items()), default=0.0) for side in sides]
        whole = [keys & run.units.keys() for run in (first, second)]
        if min(most) > 0 and [side.keys() for side in sides] == whole:
            yield MeasuredPair(row.label, "amount", sides[0], sides[1], top=None, scale=row.factor)


def find_differences(
    measured: Iterable[MeasuredPair], pairs: Iterable[Paired]
) -> tuple[MetricDifference, ...]:
    """Test every metric that both runs have, without correction."""
    found = (_difference(one, pair) for one, pair in zip(measured, pairs, strict=True))
    return tuple(one for one in found if one is not None)


def _difference(one: MeasuredPair, pair: Paired) -> MetricDifference | None:
    """Test one metric; None if no task has it in both runs, or usage is known for one task only."""
    ratios = pair.ratios()
    if not all(np.sum(ratio.denominators) for ratio in ratios):
        return None
    if one.top is None and len(pair.common) < 2:
        return None
    found = compute_difference(*ratios, top=one.top)
    envelope = None
    if one.top is not None and pair.lacking:
        envelope = find_envelope(pair.first.side, pair.second.side, found, top=one.top)
        envelope = envelope.scaled(one.scale)
    return MetricDifference(
        metric=one.name,
        role=one.role,
        first=ratios[0].value * one.scale,
        second=ratios[1].value * one.scale,
        difference=found.interval.scaled(one.scale),
        p_value=found.p_value,
        p_holm=None,
        effective=found.effective,
        detectable=found.detectable * one.scale,
        most=None if one.top is None else one.top * one.scale,
        envelope=envelope,
    )


def _per_dollar(run: ComparedRun, parts: Parts, keys: set[UnitKey]) -> float | None:
    used = (run.units[key].usage for key in keys if key in run.units)
    cost = sum_costs(_cost(run, one) for one in used).total
    return sum(parts[key].value for key in keys if key in parts) / cost if cost else None


def _cost(run: ComparedRun, usage: Usage) -> Cost:
    """Return what a unit cost; a harness that states nothing may still have paid."""
    foreign = is_foreign(run.manifest.spec.system)
    return make_cost(usage.cost_usd) if foreign else read_cost(usage)


def _tools(first: ComparedRun, second: ComparedRun, tasks: set[str]) -> tuple[ToolDifference, ...]:
    counts: dict[str, dict[str, int]] = {}
    for side, run in (("first", first), ("second", second)):
        for (task, _), unit in run.units.items():
            for use in unit.tools if task in tasks else ():
                own = counts.setdefault(
                    use.tool,
                    {"first_done": 0, "first_failed": 0, "second_done": 0, "second_failed": 0},
                )
                own[f"{side}_done"] += use.done
                own[f"{side}_failed"] += use.error + use.unavailable
    found = [ToolDifference(tool=name, **counts[name]) for name in sorted(counts)]
    return tuple(sorted(found, key=lambda one: -one.first_done - one.second_done))


def _evidence(first: ComparedRun, second: ComparedRun) -> Iterator[EvidenceDifference]:
    one, two = first.scores, second.scores
    if not isinstance(one, WorkflowScores) or not isinstance(two, WorkflowScores):
        return
    for judge in find_common_judges(first, second):
        if judge == CHECK:
            continue  # checks read the deliverables, not the evidence
        common, same = 0, set()
        for key, unit in first.units.items():
            shown = unit.evidence.get(judge)
            other = second.units[key].evidence.get(judge) if key in second.units else None
            # Stored verdicts whose evidence was not kept have an empty digest.
            if shown and other:
                common += 1
                if shown == other:
                    same.add(key)
        roots = [
            {key: task.root for task in table.tasks if (key := (task.task, task.epoch)) in same}
            for scores in (one, two)
            if (table := scores.table(judge)) is not None
        ]
        yield EvidenceDifference(
            judge=judge,
            units=common,
            same=len(same),
            same_but_scored_otherwise=sum(roots[0].get(key) != roots[1].get(key) for key in same),
        )


def correct_tests(
    tables: Sequence[Sequence[MetricDifference]],
) -> list[tuple[MetricDifference, ...]]:
    """Apply Holm's correction over all pairs: to the primary metrics, and to the secondary ones."""
    adjusted: dict[Role, Iterator[float]] = {}
    for role in ("primary", "secondary"):
        tests = [one for own in tables for one in own if one.role == role]
        largest = [one.p_value if one.envelope is None else one.envelope.p_value for one in tests]
        adjusted[role] = iter(holm(largest))
    return [
        tuple(one.model_copy(update={"p_holm": next(adjusted[one.role])}) for one in own)
        for own in tables
    ]


def find_flips(first: ComparedRun, second: ComparedRun) -> tuple[Flip, ...]:
    """Find every task and leaf that flipped, the worst first.

    A task of GTA-Atomic flips if its score differs, a task or leaf of GTA-Workflow if it succeeds
    in one run only. Several epochs count by their mean.
    """
    one, two = first.scores, second.scores
    if isinstance(one, WorkflowScores) and isinstance(two, WorkflowScores):
        found = _judged_flips(one, two, find_common_judges(first, second))
    else:
        assert isinstance(one, RunScores) and isinstance(two, RunScores)
        found = _counted_flips(one, two)

    def order(flip: Flip) -> tuple[float, int, str]:
        return (round(flip.second - flip.first, 6), *natural_order(flip.task))

    return tuple(sorted(found, key=order))


def _counted_flips(one: RunScores, two: RunScores) -> Iterator[Flip]:
    parts = [make_atomic_parts(scores.units, GAINED[one.mode]) for scores in (one, two)]
    for name in GAINED[one.mode]:
        row = table.metric(name)
        sides = []
        for found in parts:
            sums: dict[str, list[float]] = {}
            for (task, _), part in found[name].items():
                own = sums.setdefault(task, [0.0, 0.0])
                own[0] += part.value
                own[1] += part.seen
            sides.append({task: row.factor * a / b for task, (a, b) in sums.items() if b})
        for task, left in sides[0].items():
            right = sides[1].get(task)
            if right is not None and abs(left - right) > ROUNDING:
                yield Flip(task=task, metric=row.label, first=left, second=right)


def _judged_flips(
    one: WorkflowScores, two: WorkflowScores, judges: Sequence[str]
) -> Iterator[Flip]:
    for judge in judges:
        tables = [own for scores in (one, two) if (own := scores.table(judge)) is not None]
        sides = [_means(_list_scores(own.tasks)) for own in tables]
        for root in (True, False):
            threshold = one.root_threshold if root else one.leaf_threshold
            metric = table.ROOT_SCORE.label if root else "leaf score"
            for (task, leaf), left in sides[0].items():
                right = sides[1].get((task, leaf))
                if (leaf is None) is not root or right is None:
                    continue
                if succeeds(left, threshold) != succeeds(right, threshold):
                    yield Flip(
                        task=task, leaf=leaf, judge=judge, metric=metric, first=left, second=right
                    )


def _list_scores(
    tasks: Iterable[TaskScore],
) -> Iterator[tuple[tuple[str, str | None], float | None]]:
    """Yield the scores of all roots, which have no leaf, and of all leaves."""
    for task in tasks:
        yield (task.task, None), task.root
        for leaf in task.leaves:
            yield (task.task, leaf.leaf), leaf.value


def _means(
    found: Iterable[tuple[tuple[str, str | None], float | None]],
) -> Mapping[tuple[str, str | None], float]:
    values: dict[tuple[str, str | None], array[float]] = {}
    for key, value in found:
        if value is not None:
            values.setdefault(key, array("d")).append(value)
    return {key: sum(own) / len(own) for key, own in values.items()}


def self_test(first: ComparedRun, second: ComparedRun, *, rounds: int = ROUNDS) -> SelfTest:
    """Measure how often this comparison would raise a false alarm on these data.

    The systems are swapped task by task at random, many times, and compared each time. Then a lead
    of known size is planted, to see how often it is found.
    """
    measured, pairs = pair_metrics(first, second)
    if not find_differences(measured[:1], pairs[:1]):
        raise RunError(
            f"{first.name} and {second.name} cannot be compared: no task has a score in both."
        )
    random = np.random.default_rng(SEED)
    alarms = others = 0
    shown: list[float] = []
    unequal: list[MetricDifference] = []
    masks = random.random((rounds, len(pairs[0].tasks))) < 0.5
    for mask in masks:
        equal = _tested(measured, [_swap(pair, mask) for pair in pairs])
        alarms += all(one.apart for one in equal if one.role == "primary")
        others += any(one.apart for one in equal if one.role == "secondary")
        shown.append(equal[0].detectable)
    top = measured[0].top or 1.0
    room = _room(pairs[0], top)
    # The same chance in all rounds keeps tasks independent of each other.
    chance = min(1.0, median(shown) / measured[0].scale / room) if room > 0 else 0.0
    for mask in masks:
        better = _plant(_swap(pairs[0], mask), chance, top, random)
        unequal += _tested(measured[:1], [better])
    truth = chance * room * measured[0].scale
    return SelfTest(
        metric=measured[0].name,
        tasks=len(pairs[0].common),
        rounds=rounds,
        alarms=alarms / rounds,
        secondary_alarms=others / rounds,
        planted=truth,
        covered=fmean(one.difference.low <= truth <= one.difference.high for one in unequal),
        found=fmean(one.apart for one in unequal),
    )


def _tested(measured: list[MeasuredPair], pairs: list[Paired]) -> tuple[MetricDifference, ...]:
    return correct_tests([find_differences(measured, pairs)])[0]


def _swap(pair: Paired, mask: _Mask) -> Paired:
    one, two = pair.first, pair.second
    return pair._replace(first=_mixed(one, two, mask), second=_mixed(two, one, mask))


def _mixed(own: RunSums, other: RunSums, mask: _Mask) -> RunSums:
    side = Side(*(np.where(mask, two, one) for one, two in zip(own.side, other.side, strict=True)))
    means = (
        np.where(mask, np.asarray(two), np.asarray(one))
        for one, two in zip(own.means, other.means, strict=True)
    )
    return RunSums(side, Ratio(*means))


def _room(pair: Paired, top: float) -> float:
    """Return how much both could still gain, on average."""
    return fmean(top - ratio.value for ratio in pair.ratios())


def _plant(pair: Paired, chance: float, top: float, random: np.random.Generator) -> Paired:
    """Give the first system a part of what it lacks, one count at a time."""
    values, seen = (np.asarray(column, dtype=np.float64) for column in pair.first.means)
    lacking = top * seen - values
    whole = np.round(lacking)
    counts = bool(np.all(np.abs(lacking - whole) < 1e-9))
    drawn = random.binomial(whole.astype(int), chance) if counts else chance * lacking
    gained: _Array = np.asarray(drawn, dtype=np.float64)
    better = RunSums(
        pair.first.side._replace(values=pair.first.side.values + _of_side(pair, gained)),
        Ratio(values + gained, seen),
    )
    return pair._replace(first=better)


def _of_side(pair: Paired, gained: _Array) -> _Array:
    """Return the same gain in the sums over all planned epochs."""
    seen = np.asarray(pair.first.means.denominators, dtype=np.float64)
    share = np.divide(pair.first.side.seen, seen, out=np.zeros(len(seen)), where=seen > 0)
    scaled: _Array = gained * share
    return scaled
