"""Strict end-to-end scores of GTA-Atomic, with F1 by tool category over multisets of calls."""

from collections import Counter
from collections.abc import Iterable, Sequence

from gta_bench.metrics.categories import CATEGORIES, IMAGE_TOOLS, TOOL_CATEGORY
from gta_bench.metrics.counts import CountSum, sum_counts, total
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import SimilarityFunction, clip_similarity
from gta_bench.metrics.strict.arguments import score_arguments
from gta_bench.metrics.strict.outcome import classify_step, score_answer
from gta_bench.metrics.table import STRICT_END_TO_END, strict_values
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.scores import (
    Category,
    CategoryCounts,
    StrictEndToEndCounts,
    StrictEndToEndScores,
)
from gta_bench.records.steps import CallStep, Trace


def count_task(
    task: AtomicTask, prediction: Trace | None, *, similarity: SimilarityFunction
) -> StrictEndToEndCounts:
    """Count one task; only the last step can be the answer."""
    similar = clip_similarity(similarity)
    steps = prediction or ()
    outcomes = [classify_step(step) for step in steps]
    calls = [step for step in steps if isinstance(step, CallStep)]
    made = [call for call in calls if classify_step(call) == "call"]
    gold = [step for step in reference_steps(task) if isinstance(step, CallStep)]
    wanted = [call for call in gold if call.name in IMAGE_TOOLS] if task.answer is None else []
    return StrictEndToEndCounts(
        answer_total=int(task.answer is not None),
        answer_sum=score_answer(steps[-1], task.answer, similarity=similar)
        if steps and task.answer is not None
        else 0.0,
        image_sum=total(match_calls(task, made, wanted, similarity=similar).values()) / len(wanted)
        if wanted
        else 0.0,
        # AnsAcc+I does not count a task with neither an answer nor an image call.
        answer_i_total=int(task.answer is not None or bool(wanted)),
        categories={category: _count(category, calls, made, gold) for category in CATEGORIES},
        tool_call=sum(kind in ("call", "failed_call") for kind in outcomes),
        tool_call_error=outcomes.count("failed_call"),
        malformed=outcomes.count("malformed"),
        predicted=prediction is not None,
    )


def pool(counts: Iterable[StrictEndToEndCounts]) -> StrictEndToEndScores:
    """Return percentages over all tasks; None if there is nothing to measure."""
    return pool_sum(sum_counts(StrictEndToEndCounts, counts))


def pool_sum(tasks: CountSum[StrictEndToEndCounts]) -> StrictEndToEndScores:
    """Return the same from the added counts of all tasks."""
    pooled = strict_values(STRICT_END_TO_END, tasks.total())
    n = tasks.count("predicted")
    return StrictEndToEndScores.model_validate({**pooled, "n": n, "n_tasks": tasks.units})


def _count(
    category: Category, calls: Iterable[CallStep], made: Iterable[CallStep], gold: list[CallStep]
) -> CategoryCounts:
    """Count a category; failed calls are predicted but no hits, and each call hits at most once."""
    wanted = _names(category, gold)
    return CategoryCounts(
        gold=wanted.total(),
        predicted=_names(category, calls).total(),
        hits=(_names(category, made) & wanted).total(),
    )


def _names(category: Category, calls: Iterable[CallStep]) -> Counter[str]:
    return Counter(call.name for call in calls if TOOL_CATEGORY.get(call.name) == category)


def match_calls(
    task: AtomicTask,
    made: Sequence[CallStep],
    wanted: Sequence[CallStep],
    *,
    similarity: SimilarityFunction,
) -> dict[int, float]:
    """Return the scores of the reference's calls that are matched, greedily, to calls made.

    The keys are the positions in `wanted`. A call matches only a call of the same tool.
    """
    scores = {
        (index, other): score_arguments(
            call.arguments, gold.arguments, task.offered.get(gold.name), similarity=similarity
        )
        for index, gold in enumerate(wanted)
        for other, call in enumerate(made)
        if call.name == gold.name
    }
    best: dict[int, float] = {}
    taken: set[int] = set()
    for index, other in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        if index not in best and other not in taken:
            best[index] = scores[index, other]
            taken.add(other)
    return best
