"""What holds for any tasks and any predictions: bounds, order, gold = max, silent = min."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

import gta_bench.metrics.compat.end_to_end as compat_end_to_end
import gta_bench.metrics.compat.steps as compat_steps
import gta_bench.metrics.strict.steps as strict_steps
from gta_bench.metrics.categories import TOOL_CATEGORY
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import Answer, AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.base import Record
from gta_bench.records.scores import StrictEndToEndScores, StrictStepScores
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
    Trace,
)
from tests.metrics.atomic_variants import (
    FAILURE,
    make_task,
    score_end_to_end_strict,
    score_steps_strict,
)

names = st.sampled_from([*TOOL_CATEGORY, "Teleport"])
arguments = st.dictionaries(
    st.sampled_from(["image", "command", "bbox", "k"]),
    st.sampled_from(["inputs/a.jpg", "x = 1", "(1, 2)", 4, True]),
    max_size=2,
)
texts = st.sampled_from(["5", "it is 5", "6", "", " ", "-5"])
gold_calls = st.builds(CallStep, name=names, arguments=arguments)
gold_answers = st.builds(AnswerStep, content=st.sampled_from(["5", "it is 5"]))
steps: st.SearchStrategy[PredictedStep] = (
    st.builds(
        CallStep,
        name=names,
        arguments=arguments | st.just("raw"),
        error=st.sampled_from([None, FAILURE]),
    )
    | st.builds(AnswerStep, content=texts, error=st.sampled_from([None, FAILURE]))
    | st.builds(ThoughtStep, content=texts)
    | st.builds(MalformedStep, content=texts, reason=st.just("against the protocol"))
    | st.just(ReplyStep())
)
answers: st.SearchStrategy[Answer | None] = st.sampled_from(
    [
        None,
        WhitelistAnswer(whitelist=(("5",),)),
        WhitelistAnswer(whitelist=()),
        FreeTextAnswer(references=("it is 5", "five")),
        FreeTextAnswer(references=("5",)),
    ]
)
tasks = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(
        lambda parts, answer: make_task(*parts, answer=answer),
        st.lists(gold_calls | gold_answers, max_size=4),
        answers,
    ),
    max_size=4,
)
predictions = st.dictionaries(st.sampled_from("abcde"), st.lists(steps, max_size=5).map(tuple))

PERFECT = ("inst_acc", "tool_acc", "arg_acc", "arg_typed", "p_f1", "o_f1", "l_f1", "c_f1")
COUNTS = {"tool_call", "tool_call_error", "malformed", "n", "n_tasks"}


def both(
    made: Mapping[str, AtomicTask], predicted: Mapping[str, Trace]
) -> tuple[StrictStepScores, StrictEndToEndScores]:
    return (
        score_steps_strict(made, predicted),
        score_end_to_end_strict(made, predicted),
    )


def ratios(scores: tuple[Record, ...]) -> dict[str, float | None]:
    columns = [column for record in scores for column in record.model_dump().items()]
    return {name: value for name, value in columns if name not in COUNTS}


@given(tasks, predictions)
def test_every_strict_score_lies_within_0_and_100(
    made: dict[str, AtomicTask], predicted: dict[str, Trace]
) -> None:
    for value in ratios(both(made, predicted)).values():
        assert value is None or 0.0 <= value <= 100.0


@given(tasks, predictions)
def test_the_order_of_the_tasks_does_not_matter(
    made: dict[str, AtomicTask], predicted: dict[str, Trace]
) -> None:
    turned = dict(reversed(made.items()))
    assert both(turned, predicted) == both(made, predicted)
    assert both(made, dict(reversed(predicted.items()))) == both(made, predicted)


@given(tasks, predictions)
def test_nothing_beats_gold_and_nothing_is_below_silence(
    made: dict[str, AtomicTask], predicted: dict[str, Trace]
) -> None:
    gold = ratios(both(made, {name: reference_steps(task) for name, task in made.items()}))
    any_other, silent = ratios(both(made, predicted)), ratios(both(made, {}))
    for name in PERFECT:
        best = gold[name]
        assert best is None or best == 100.0
        # Calls that nobody asked for give a category an F1 of 0 where gold has none.
        assert best is not None or any_other[name] in (None, 0.0)
    assert {value for value in silent.values() if value is not None} <= {0.0}


@given(tasks, predictions)
def test_the_denominators_do_not_depend_on_the_predictions(
    made: dict[str, AtomicTask], predicted: dict[str, Trace]
) -> None:
    for name, task in made.items():
        counts = strict_steps.count_task(task, predicted.get(name), similarity=exact_or_half)
        silent = strict_steps.count_task(task, None, similarity=exact_or_half)
        assert (counts.inst_total, counts.call_total, counts.answer_total) == (
            silent.inst_total,
            silent.call_total,
            silent.answer_total,
        )
        assert counts.arg_hits <= counts.tool_hits <= counts.call_total


@given(tasks, predictions)
def test_upstreams_scores_never_fail_either_and_do_not_depend_on_order(
    made: dict[str, AtomicTask], predicted: dict[str, Trace]
) -> None:
    step_counts = [
        compat_steps.count_task(
            predicted.get(name, ()), reference_steps(task), task.answer, similarity=exact_or_half
        )
        for name, task in made.items()
    ]
    assert compat_steps.pool(step_counts) == compat_steps.pool(reversed(step_counts))
    counts = [
        compat_end_to_end.count_task(
            predicted.get(name, ()), reference_steps(task), task.answer, similarity=exact_or_half
        )
        for name, task in made.items()
    ]
    assert compat_end_to_end.pool(counts) == compat_end_to_end.pool(reversed(counts))
