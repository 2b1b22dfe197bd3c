"""GTA-Atomic step by step, strict: InstAcc, ToolAcc, ArgAcc, typed arguments, SummAcc."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from gta_bench.metrics.counts import add_counts, total
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import SimilarityFunction, bounded
from gta_bench.metrics.strict.arguments import same_arguments, score_arguments
from gta_bench.metrics.strict.outcome import outcome, score_answer
from gta_bench.metrics.table import STRICT_STEP, strict_values
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.scores import StrictStepCounts, StrictStepScores
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep, Trace

Pair = tuple[PredictedStep | None, CallStep | AnswerStep]


def count_task(
    task: AtomicTask, prediction: Trace | None, *, similarity: SimilarityFunction
) -> StrictStepCounts:
    """Hits in one task, step by step; a step without prediction is a miss."""
    similar = bounded(similarity)
    steps = prediction or ()
    outcomes = [outcome(step) for step in steps]
    pairs = list(_pairs(steps, reference_steps(task)))
    named = list(_right_tools(pairs))
    return StrictStepCounts(
        inst_hits=sum(left is not None and outcome(left) == right.step for left, right in pairs),
        inst_total=len(pairs),
        call_total=sum(isinstance(right, CallStep) for _, right in pairs),
        tool_hits=len(named),
        arg_hits=sum(same_arguments(left.arguments, right.arguments) for left, right in named),
        arg_typed_sum=total(
            score_arguments(
                left.arguments, right.arguments, task.offered.get(right.name), similarity=similar
            )
            for left, right in named
        ),
        answer_total=int(_asks_for_answer(task, pairs)),
        answer_sum=_answer_sum(task, pairs, similarity=similar),
        tool_call=sum(kind in ("call", "failed_call") for kind in outcomes),
        tool_call_error=outcomes.count("failed_call"),
        malformed=outcomes.count("malformed"),
        predicted=prediction is not None,
    )


def pool(counts: Iterable[StrictStepCounts]) -> StrictStepScores:
    """Percentages over all tasks; None where there is nothing to measure."""
    tasks = list(counts)
    pooled = strict_values(STRICT_STEP, add_counts(StrictStepCounts, tasks))
    n = sum(task.predicted for task in tasks)
    return StrictStepScores.model_validate({**pooled, "n": n, "n_tasks": len(tasks)})


def _pairs(steps: Trace, gold: tuple[CallStep | AnswerStep, ...]) -> Iterator[Pair]:
    """Every reference step with what was predicted for it; predictions beyond it are dropped."""
    return zip_longest(steps[: len(gold)], gold)


def _right_tools(pairs: Iterable[Pair]) -> Iterator[tuple[CallStep, CallStep]]:
    for left, right in pairs:
        if (
            isinstance(left, CallStep)
            and isinstance(right, CallStep)
            and outcome(left) == "call"
            and left.name == right.name
        ):
            yield left, right


def _asks_for_answer(task: AtomicTask, pairs: Iterable[Pair]) -> bool:
    """Whether the task has an answer and a turn in which step mode asks for it."""
    return task.answer is not None and any(isinstance(right, AnswerStep) for _, right in pairs)


def _answer_sum(task: AtomicTask, pairs: list[Pair], *, similarity: SimilarityFunction) -> float:
    """What the prediction of the last answer turn is worth."""
    turns = [left for left, right in pairs if isinstance(right, AnswerStep)]
    if task.answer is None or not turns or turns[-1] is None:
        return 0.0
    return score_answer(turns[-1], task.answer, similarity=similarity)
