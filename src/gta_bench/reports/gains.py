"""What went wrong in a run, sorted by the points that fixing it would gain."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final, NamedTuple

from gta_bench.metrics import table
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import FailureCause
from gta_bench.records.scores import RunScores, StrictStepCounts, UnitScore
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import AtomicUnit
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import JudgeScores
from gta_bench.reports.estimates import make_atomic_parts
from gta_bench.reports.tables import line

# Finds some units of a run.
PickUnits = Callable[[Collection[UnitKey]], Mapping[UnitKey, AtomicUnit]]
# The metrics whose points count as gains: in step mode, all that both scorings have.
GAINED: Final[Mapping[str, tuple[str, ...]]] = {
    "step": tuple(name for name, row in table.STEP.items() if row.scale == "percent"),
    "end-to-end": (table.ANS_ACC_I.name,),
}
# How hits are called in a sentence about one unit.
HITS: Final[Mapping[str, str]] = {
    table.INST_ACC.name: table.INST_ACC.meaning,
    table.TOOL_ACC.name: "tools",
    table.ARG_ACC.name: "arguments",
}


class Loss(NamedTuple):
    """A unit or leaf that lost points; `gain` is how many points fixing it would bring."""

    task: str
    epoch: int
    what: str
    gain: float
    causes: tuple[FailureCause, ...] = ()


class Losses(NamedTuple):
    """The largest losses of a run, largest first, and how many it has."""

    worst: Sequence[Loss]
    number: int


def leaf_losses(
    judge: JudgeScores,
    trees: Mapping[UnitKey, Sequence[Checkpoint]],
    *,
    threshold: float,
    most: int,
) -> Losses:
    """Return leaves below the threshold; gains are in the run's Root score, which is 0 to 10."""
    count = Counter[None]()
    ranked = nlargest(most, _lost_leaves(judge, trees, threshold, count), key=lambda one: one.gain)
    wanted = {(one.task, one.epoch): None for one in ranked}
    causes = {
        (one.task, one.epoch, one.place): (one.cause,)
        for one in judge.failures
        if (one.task, one.epoch) in wanted
    }
    worst = []
    for one in ranked:
        node, _ = dict(_shares(trees[one.task, one.epoch], 1.0))[one.what]
        what = f"{one.what}: {node.requirements}"
        cause = causes.get((one.task, one.epoch, one.what), ())
        worst.append(one._replace(what=what, causes=cause))
    return Losses(worst, count[None])


def _lost_leaves(
    judge: JudgeScores,
    trees: Mapping[UnitKey, Sequence[Checkpoint]],
    threshold: float,
    count: Counter[None],
) -> Iterator[Loss]:
    """Yield the leaves that lost points by their ids, and count them."""
    for task in judge.tasks:
        shares = dict(_shares(trees[task.task, task.epoch], 1.0))
        for leaf in task.leaves:
            if leaf.value is None or succeeds(leaf.value, threshold):
                continue
            gain = shares[leaf.leaf][1] * (10 - leaf.value) / max(1, judge.strict.n_units)
            count[None] += 1
            yield Loss(task.task, task.epoch, leaf.leaf, gain)


def unit_losses(scores: RunScores, pick: PickUnits, *, most: int) -> Losses:
    """Return units that lost points; gains are in points of the mean of the mode's metrics."""
    wholes = {
        metric: sum(part.seen for _, part in parts.items())
        for metric, parts in make_atomic_parts(scores.units, GAINED[scores.mode]).items()
    }
    number = 0

    def lost() -> Iterator[tuple[UnitScore, float]]:
        nonlocal number
        for score in scores.units:
            gain = _unit_gain(score, wholes)
            if gain > 1e-9:
                number += 1
                yield score, gain

    ranked = nlargest(most, lost(), key=lambda one: one[1])
    keys = {(score.task, score.epoch) for score, _ in ranked}
    known = pick(keys)
    causes: dict[UnitKey, dict[FailureCause, None]] = {}
    for failure in scores.failures:
        if (failure.task, failure.epoch) in keys:
            causes.setdefault((failure.task, failure.epoch), {})[failure.cause] = None
    worst = []
    for score, gain in ranked:
        key = (score.task, score.epoch)
        what = describe_missed(score, known.get(key))
        worst.append(Loss(*key, what, gain, tuple(causes.get(key, ()))))
    return Losses(worst, number)


def _unit_gain(score: UnitScore, wholes: Mapping[str, float]) -> float:
    """Return the points that a unit lost."""
    parts = {metric: table.metric(metric).part(score.strict) for metric in wholes}
    return sum(
        100 * (seen - value) / wholes[metric]
        for metric, (value, seen) in parts.items()
        if wholes[metric]
    ) / max(1, sum(map(bool, wholes.values())))


def gain_text(mode: str) -> str:
    """Return what the gains of a mode are points of."""
    if mode == "workflow":
        return table.ROOT_SCORE.label
    names = [table.label(name) for name in GAINED[mode]]
    return names[0] if len(names) == 1 else f"the mean of {', '.join(names[:-1])} and {names[-1]}"


def describe_missed(score: UnitScore, unit: AtomicUnit | None) -> str:
    """Describe what an Atomic unit lost."""
    counts = score.strict
    if unit is not None and unit.trace is None:
        return "no prediction"
    if isinstance(counts, StrictStepCounts):
        parts = {name: table.metric(name).part(counts) for name in HITS}
        texts = [f"{hits} of {whole} {HITS[name]}" for name, (hits, whole) in parts.items()]
        if counts.answer_total:
            texts.append(f"answer worth {counts.answer_sum:.2f}")
        return ", ".join(texts)
    if counts.answer_total:
        return f"answer worth {counts.answer_sum:.2f}; {_last(unit)}"
    return f"image worth {counts.image_sum:.2f}"


def _shares(
    nodes: Sequence[Checkpoint], share: float
) -> Iterator[tuple[str, tuple[Checkpoint, float]]]:
    """Yield every leaf with its part of the root's weight."""
    weights = sum(node.weight for node in nodes)
    for node in nodes:
        own = share * node.weight / weights if weights else 0.0
        if node.children:
            yield from _shares(node.children, own)
        else:
            yield node.id, (node, own)


def _last(unit: AtomicUnit | None) -> str:
    steps = () if unit is None or unit.trace is None else unit.trace
    if steps and isinstance(steps[-1], AnswerStep):
        return f"said “{line(steps[-1].content)}”"
    return "gave no answer"
