"""A run's scores beside the ceiling of its judges, and Leaf SR corrected for the judge's errors."""

from collections.abc import Iterator, Sequence

from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.metrics.workflow_scores import NO_FILE, NOT_DELIVERED
from gta_bench.records.ceiling import Ceiling, CeilingScore
from gta_bench.records.judges import JudgeRegistry
from gta_bench.records.statistics import Interval
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.statistics.ceiling import JudgedShare, correct_share, measure_errors
from gta_bench.statistics.pooled import Ratio


def compare_with_ceilings(
    scores: WorkflowScores, ceilings: Sequence[Ceiling], judges: JudgeRegistry
) -> tuple[CeilingScore, ...]:
    """Return a row for each judge of a run that has a ceiling; `judges` are those of the run."""
    return tuple(
        _compare(table, ceiling, _find_differences(table, scores, ceiling, judges), scores)
        for table in scores.judges
        for ceiling in ceilings
        if ceiling.judge == table.judge
    )


def _find_differences(
    table: JudgeScores, scores: WorkflowScores, ceiling: Ceiling, judges: JudgeRegistry
) -> Iterator[str]:
    """Yield how the judge of the run differs from that of the ceiling."""
    known = judges.of(table.judge)
    if known and ceiling.digest not in {one.digest for one in known}:
        yield "options or prompts"
    if table.repeats != ceiling.repeats:
        yield f"repeats ({table.repeats} and {ceiling.repeats})"
    if scores.leaf_threshold != ceiling.leaf_threshold:
        yield f"leaf threshold ({scores.leaf_threshold:g} and {ceiling.leaf_threshold:g})"


def _compare(
    table: JudgeScores, ceiling: Ceiling, other: Iterator[str], scores: WorkflowScores
) -> CeilingScore:
    sure, judged, passed = 0, 0, 0
    tasks: dict[str, list[float]] = {}
    for task in table.tasks:
        for leaf in task.leaves:
            if leaf.value is None:
                continue
            good = succeeds(leaf.value, scores.leaf_threshold)
            tasks.setdefault(task.task, []).append(float(good))
            is_sure = leaf.by is not None or NOT_DELIVERED in task.kinds
            judged += not is_sure
            passed += is_sure and good
            sure += is_sure
    tested = {one.name for one in ceiling.groups if one.by == "file"}
    kinds = {kind for task in table.tasks for kind in task.kinds} - {NOT_DELIVERED, NO_FILE}
    found = CeilingScore(
        judge=table.judge,
        leaf_sr=table.strict.leaf_sr,
        leaves=sure + judged,
        judged=judged,
        gold=ceiling.gold,
        sensitivity=ceiling.overall.sensitivity,
        specificity=ceiling.overall.specificity,
        other=tuple(other),
        untested=tuple(sorted(kinds - tested)),
    )
    errors = measure_errors(ceiling.rows)
    if found.other or errors is None or not judged:
        return found
    whole = sure + judged
    score = Ratio([sum(own) for own in tasks.values()], [len(own) for own in tasks.values()])
    corrected = correct_share(JudgedShare(score, passed / whole, judged / whole), errors)
    if isinstance(corrected, Interval):
        return found.model_copy(update={"corrected": corrected.scaled(100)})
    return found.model_copy(update={"problem": corrected})
