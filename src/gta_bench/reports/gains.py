"""What went wrong in a run, sorted by the points that fixing it would gain."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.metrics import table
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.failures import FailureCause
from gta_bench.records.scores import RunScores, StrictStepCounts, UnitScore
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, Trace
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import JudgeScores
from gta_bench.reports.estimates import make_atomic_parts
from gta_bench.reports.tables import line

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


def leaf_losses(
    judge: JudgeScores, units: Sequence[WorkflowUnit], *, threshold: float
) -> list[Loss]:
    """Return leaves below the threshold; gains are in the run's Root score, which is 0 to 10."""
    trees = {(unit.task.id, unit.epoch): unit.task.checkpoints for unit in units}
    causes = {(one.task, one.epoch, one.place): (one.cause,) for one in judge.failures}
    found = []
    for task in judge.tasks:
        shares = dict(_shares(trees[task.task, task.epoch], 1.0))
        for leaf in task.leaves:
            if leaf.value is None or succeeds(leaf.value, threshold):
                continue
            node, share = shares[leaf.leaf]
            gain = share * (10 - leaf.value) / max(1, judge.strict.n_units)
            what = f"{leaf.leaf}: {node.requirements}"
            cause = causes.get((task.task, task.epoch, leaf.leaf), ())
            found.append(Loss(task.task, task.epoch, what, gain, cause))
    return sorted(found, key=lambda loss: -loss.gain)


def unit_losses(scores: RunScores, units: Sequence[AtomicUnit]) -> list[Loss]:
    """Return units that lost points; gains are in points of the mean of the mode's metrics."""
    known = {(unit.task.id, unit.epoch): unit for unit in units}
    wholes = {
        metric: sum(part.seen for part in parts.values())
        for metric, parts in make_atomic_parts(scores.units, GAINED[scores.mode]).items()
    }
    causes: dict[tuple[str, int], list[FailureCause]] = {}
    for failure in scores.failures:
        causes.setdefault((failure.task, failure.epoch), []).append(failure.cause)
    found = []
    for score in scores.units:
        own = make_atomic_parts([score], GAINED[scores.mode])
        gain = sum(
            100 * (part.seen - part.value) / wholes[metric]
            for metric, parts in own.items()
            for part in parts.values()
            if wholes[metric]
        ) / max(1, sum(map(bool, wholes.values())))
        if gain > 1e-9:
            key = (score.task, score.epoch)
            first = tuple(dict.fromkeys(causes.get(key, ())))
            found.append(Loss(*key, describe_missed(score, known.get(key)), gain, first))
    return sorted(found, key=lambda loss: -loss.gain)


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


def error_kinds(units: Sequence[AtomicUnit] | Sequence[WorkflowUnit]) -> Counter[tuple[str, str]]:
    """Count the errors of calls and replies, by tool or kind of reply and message."""
    kinds: Counter[tuple[str, str]] = Counter()
    for unit in units:
        bad = [call for call in unit.calls if call.status != "done"]
        kinds.update((call.tool, line(call.message) or call.status) for call in bad)
        kinds.update(_trace_kinds(unit.trace or (), with_calls=not unit.calls))
    return kinds


def _trace_kinds(trace: Trace, *, with_calls: bool) -> Iterator[tuple[str, str]]:
    """Yield errors of a trace; calls count here only if no executor recorded them."""
    for step in trace:
        match step:
            case MalformedStep(reason=reason):
                yield "reply", reason
            case AnswerStep(error=error) if error is not None:
                yield "answer", error.type
            case CallStep(name=name, error=error) if error is not None and with_calls:
                yield name, error.type


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
