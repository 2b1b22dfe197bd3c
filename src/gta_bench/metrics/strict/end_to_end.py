"""GTA-Atomic end to end, strict: AnsAcc, AnsAcc+I and multiset F1 by tool category."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gta_bench.metrics.categories import CATEGORIES, IMAGE_TOOLS, TOOL_CATEGORY
from gta_bench.metrics.pooling import percent, total
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import Similarity, bounded
from gta_bench.metrics.strict.arguments import score_arguments
from gta_bench.metrics.strict.outcome import outcome, score_answer
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.scores import (
    Category,
    CategoryCounts,
    StrictEndToEndCounts,
    StrictEndToEndScores,
)
from gta_bench.records.steps import CallStep, Trace


def score(
    tasks: Mapping[str, AtomicTask], predictions: Mapping[str, Trace], *, similarity: Similarity
) -> StrictEndToEndScores:
    """All tasks, joined by id; a task without prediction fails, an unknown id is not looked at."""
    return pool(
        count_task(task, predictions.get(name), similarity=similarity)
        for name, task in tasks.items()
    )


def count_task(
    task: AtomicTask, prediction: Trace | None, *, similarity: Similarity
) -> StrictEndToEndCounts:
    """What one task adds; the last step must be the answer."""
    similar = bounded(similarity)
    steps = prediction or ()
    outcomes = [outcome(step) for step in steps]
    calls = [step for step in steps if isinstance(step, CallStep)]
    made = [call for call in calls if outcome(call) == "call"]
    gold = [step for step in reference_steps(task) if isinstance(step, CallStep)]
    wanted = [call for call in gold if call.name in IMAGE_TOOLS] if task.answer is None else []
    return StrictEndToEndCounts(
        answer_total=int(task.answer is not None),
        answer_sum=score_answer(steps[-1], task.answer, similarity=similar)
        if steps and task.answer is not None
        else 0.0,
        image_sum=_image_score(task, made, wanted, similarity=similar) if wanted else 0.0,
        # A task with neither answer nor image call has nothing that AnsAcc+I could measure.
        answer_i_total=int(task.answer is not None or bool(wanted)),
        categories={category: _count(category, calls, made, gold) for category in CATEGORIES},
        tool_call=sum(kind in ("call", "failed_call") for kind in outcomes),
        tool_call_error=outcomes.count("failed_call"),
        malformed=outcomes.count("malformed"),
        predicted=prediction is not None,
    )


def pool(counts: Iterable[StrictEndToEndCounts]) -> StrictEndToEndScores:
    """Percentages over all tasks; None where there is nothing to measure."""
    tasks = list(counts)
    answers = total(task.answer_sum for task in tasks)
    images = total(task.image_sum for task in tasks)
    f1 = {category: _f1([task.categories[category] for task in tasks]) for category in CATEGORIES}
    return StrictEndToEndScores(
        ans_acc=percent(answers, sum(task.answer_total for task in tasks)),
        ans_acc_i=percent(total((answers, images)), sum(task.answer_i_total for task in tasks)),
        p_f1=f1["perception"],
        o_f1=f1["operation"],
        l_f1=f1["logic"],
        c_f1=f1["creativity"],
        tool_call=sum(task.tool_call for task in tasks),
        tool_call_error=sum(task.tool_call_error for task in tasks),
        malformed=sum(task.malformed for task in tasks),
        n=sum(task.predicted for task in tasks),
        n_tasks=len(tasks),
    )


def _count(
    category: Category, calls: Iterable[CallStep], made: Iterable[CallStep], gold: list[CallStep]
) -> CategoryCounts:
    """Failed calls are predicted calls, but no hits; each call hits one call of the reference."""
    wanted = _names(category, gold)
    return CategoryCounts(
        gold=wanted.total(),
        predicted=_names(category, calls).total(),
        hits=(_names(category, made) & wanted).total(),
    )


def _names(category: Category, calls: Iterable[CallStep]) -> Counter[str]:
    return Counter(call.name for call in calls if TOOL_CATEGORY.get(call.name) == category)


def _f1(counts: Sequence[CategoryCounts]) -> float | None:
    """Twice the hits among all calls of both sides: the harmonic mean without its detour."""
    calls = sum(count.gold + count.predicted for count in counts)
    return percent(2 * sum(count.hits for count in counts), calls)


def _image_score(
    task: AtomicTask,
    made: Sequence[CallStep],
    wanted: Sequence[CallStep],
    *,
    similarity: Similarity,
) -> float:
    """The mean over the reference's image calls, each against its own call, best pairs first."""
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
    return total(best.values()) / len(wanted)
