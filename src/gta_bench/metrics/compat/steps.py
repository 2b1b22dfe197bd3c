"""Step-by-step scores of GTA-Atomic as upstream computes them."""

from collections.abc import Iterable

from gta_bench.metrics.compat.view import is_scored, score_content, view_step
from gta_bench.metrics.counts import CountSum, sum_counts, total
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.table import STEP, compat_values
from gta_bench.records.atomic import Answer
from gta_bench.records.scores import StepCounts, StepScores
from gta_bench.records.steps import Trace


def count_task(
    prediction: Trace, gold: Trace, answer: Answer | None, *, similarity: SimilarityFunction
) -> StepCounts:
    """Count one task as upstream does; unpaired steps on either side are dropped."""
    pairs = list(zip(map(view_step, prediction), map(view_step, gold), strict=False))
    calls = [pair for pair in pairs if pair[1].type == "tool"]
    # Kept for parity: a failed call counts, too.
    named = [
        (left, right) for left, right in calls if left.type == "tool" and left.name == right.name
    ]
    answered = [left for left, right in pairs if left.type == right.type == "answer"]
    predicted = [left for left, _ in pairs if left.type == "tool"]
    return StepCounts(
        inst_hits=sum(left.type == right.type and not left.failed for left, right in pairs),
        # Kept for parity: the denominator excludes the last turns of image tasks but the hits
        # do not, so the reference itself gets 770/729.
        inst_total=len(calls) + is_scored(answer),
        call_total=len(calls),
        tool_hits=len(named),
        # Kept for parity: Python's equality, for which 1, 1.0 and true are equal.
        arg_hits=sum(left.arguments == right.arguments for left, right in named),
        answer_total=int(is_scored(answer)),
        answer_sum=total(
            score_content(left.content, answer, similarity=similarity) for left in answered
        ),
        tool_call=len(predicted),
        tool_call_error=sum(left.failed for left in predicted),
    )


def pool(counts: Iterable[StepCounts]) -> StepScores:
    """Return upstream's percentages; None where upstream divides by zero."""
    return pool_sum(sum_counts(StepCounts, counts))


def pool_sum(tasks: CountSum[StepCounts]) -> StepScores:
    """Return the same from the added counts of all tasks."""
    pooled = compat_values(STEP, tasks.total())
    return StepScores.model_validate({**pooled, "n": tasks.units, "n_tasks": tasks.units})
