"""What one step of an Atomic episode is worth: the strict step metrics, spread over its steps."""

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import SimilarityFunction, bounded
from gta_bench.metrics.strict.arguments import score_arguments
from gta_bench.metrics.strict.outcome import outcome, score_answer
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep


def step_reward(
    task: AtomicTask, position: int, step: PredictedStep, *, similarity: SimilarityFunction
) -> float:
    """The step's share of 1, against the reference's step at that place; 0 beyond its end.

    A call: a third each for a call (InstAcc), its tool (ToolAcc) and its arguments (typed ArgAcc).
    An answer: half for answering (InstAcc), half for what it says (SummAcc).
    """
    gold = reference_steps(task)
    if position >= len(gold) or outcome(step) != gold[position].step:
        return 0.0
    wanted = gold[position]
    if isinstance(step, CallStep) and isinstance(wanted, CallStep):
        return _call_worth(task, step, wanted, similarity=bounded(similarity)) / len(gold)
    assert isinstance(step, AnswerStep) and isinstance(wanted, AnswerStep)
    return _answer_worth(task, step, wanted, similarity=bounded(similarity)) / len(gold)


def _call_worth(
    task: AtomicTask, step: CallStep, wanted: CallStep, *, similarity: SimilarityFunction
) -> float:
    if step.name != wanted.name:
        return 1 / 3
    spec = task.offered.get(wanted.name)
    arguments = score_arguments(step.arguments, wanted.arguments, spec, similarity=similarity)
    return (2 + arguments) / 3


def _answer_worth(
    task: AtomicTask, step: AnswerStep, wanted: AnswerStep, *, similarity: SimilarityFunction
) -> float:
    """The reference's own words are right even where the accepted answers do not match them."""
    if task.answer is None or step.content == wanted.content:
        return 1.0
    return (1 + score_answer(step, task.answer, similarity=similarity)) / 2
