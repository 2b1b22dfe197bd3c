"""Strict step-by-step scores of GTA-Atomic, and rewards of single steps for training."""

from collections.abc import Iterable
from itertools import zip_longest

from gta_bench.metrics.counts import CountSum, sum_counts, total
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import SimilarityFunction, clip_similarity
from gta_bench.metrics.strict.arguments import same_arguments, score_arguments
from gta_bench.metrics.strict.outcome import classify_step, score_answer
from gta_bench.metrics.table import STRICT_STEP, strict_values
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.scores import StrictStepCounts, StrictStepScores
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep, Trace


def count_task(
    task: AtomicTask, prediction: Trace | None, *, similarity: SimilarityFunction
) -> StrictStepCounts:
    """Count the hits of one task; a step without prediction is a miss."""
    similar = clip_similarity(similarity)
    steps = prediction or ()
    outcomes = [classify_step(step) for step in steps]
    gold = reference_steps(task)
    # Each reference step with its prediction; further predictions are dropped.
    pairs = list(zip_longest(steps[: len(gold)], gold))
    named = [
        (left, right)
        for left, right in pairs
        if isinstance(left, CallStep)
        and isinstance(right, CallStep)
        and classify_step(left) == "call"
        and left.name == right.name
    ]
    # Step mode asks for the answer in the last turn that is one; a task may have none.
    turns = [left for left, right in pairs if isinstance(right, AnswerStep)]
    answer = task.answer if turns else None
    return StrictStepCounts(
        inst_hits=sum(
            left is not None and classify_step(left) == right.step for left, right in pairs
        ),
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
        answer_total=int(answer is not None),
        answer_sum=0.0
        if answer is None or turns[-1] is None
        else score_answer(turns[-1], answer, similarity=similar),
        tool_call=sum(kind in ("call", "failed_call") for kind in outcomes),
        tool_call_error=outcomes.count("failed_call"),
        malformed=outcomes.count("malformed"),
        predicted=prediction is not None,
    )


def pool(counts: Iterable[StrictStepCounts]) -> StrictStepScores:
    """Return percentages over all tasks; None if there is nothing to measure."""
    return pool_sum(sum_counts(StrictStepCounts, counts))


def pool_sum(tasks: CountSum[StrictStepCounts]) -> StrictStepScores:
    """Return the same from the added counts of all tasks."""
    pooled = strict_values(STRICT_STEP, tasks.total())
    n = tasks.count("predicted")
    return StrictStepScores.model_validate({**pooled, "n": n, "n_tasks": tasks.units})


def compute_step_reward(
    task: AtomicTask, position: int, step: PredictedStep, *, similarity: SimilarityFunction
) -> float:
    """Return the reward of one step, so that a perfect episode gets 1; 0 after the last step.

    A call gets a third each for being a call (InstAcc), for its tool (ToolAcc) and for its
    arguments (typed ArgAcc). An answer gets half for answering (InstAcc) and half for its content
    (SummAcc).
    """
    gold = reference_steps(task)
    if position >= len(gold) or classify_step(step) != gold[position].step:
        return 0.0
    wanted, similar = gold[position], clip_similarity(similarity)
    if isinstance(step, CallStep) and isinstance(wanted, CallStep):
        if step.name != wanted.name:
            return 1 / 3 / len(gold)
        spec = task.offered.get(wanted.name)
        arguments = score_arguments(step.arguments, wanted.arguments, spec, similarity=similar)
        return (2 + arguments) / 3 / len(gold)
    assert isinstance(step, AnswerStep) and isinstance(wanted, AnswerStep)
    # The text of the reference is right even if it does not match the accepted answers.
    if task.answer is None or step.content == wanted.content:
        return 1.0 / len(gold)
    return (1 + score_answer(step, task.answer, similarity=similar)) / 2 / len(gold)
