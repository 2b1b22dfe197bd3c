"""The small parts that all scores share: categories, similarity, pooling, the reference."""

import math
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.metrics.categories import CATEGORIES, IMAGE_TOOLS, TOOL_CATEGORY
from gta_bench.metrics.counts import running_sum, total
from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.similarity import clip_similarity, exact, exact_or_half
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn, ToolCall, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep, ReplyPart, ReplyStep


def test_fourteen_tools_fall_into_four_categories() -> None:
    assert Counter(TOOL_CATEGORY.values()) == {
        "perception": 4,
        "operation": 3,
        "logic": 5,
        "creativity": 2,
    }
    assert set(CATEGORIES) == set(TOOL_CATEGORY.values())


def test_published_digits_are_rounded_at_every_step_on_any_python() -> None:
    tenths = [0.1] * 10
    assert running_sum(tenths) == 0.9999999999999999
    assert total(tenths) == 1.0


def test_every_image_tool_has_a_category() -> None:
    assert IMAGE_TOOLS.issubset(TOOL_CATEGORY)


def test_the_references_calls_are_271_80_169_and_37(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    calls = Counter(
        TOOL_CATEGORY[turn.call.name] for task in atomic_tasks.values() for turn in task.calls
    )
    assert [calls[category] for category in CATEGORIES] == [271, 80, 169, 37]


def test_the_stand_in_similarities_know_only_equal_and_unequal() -> None:
    assert exact("a", "a") == exact_or_half("a", "a") == 1.0
    assert (exact("a", "b"), exact_or_half("a", "b")) == (0.0, 0.5)


@pytest.mark.parametrize(
    ("given_value", "value"),
    [(-0.2, 0.0), (0.0, 0.0), (0.7, 0.7), (1.0000001, 1.0), (math.nan, 0.0), (math.inf, 1.0)],
)
def test_a_bounded_similarity_lies_within_0_and_1(given_value: float, value: float) -> None:
    assert clip_similarity(lambda left, right: given_value)("a", "b") == value


@given(st.lists(st.floats(0, 1)))
def test_a_sum_does_not_depend_on_the_order(values: list[float]) -> None:
    assert total(values) == total(reversed(values)) == total(sorted(values))


def test_the_reference_becomes_steps_and_a_trace_with_replies() -> None:
    task = AtomicTask(
        id="0",
        tools=(),
        attachments=(),
        dialogue=(
            UserTurn(content="Read it."),
            CallTurn(call=ToolCall(name="OCR", arguments={"image": "inputs/a.jpg"})),
            ReplyTurn(tool="OCR", type="text", content="hello"),
        ),
        answer=None,
    )
    call = CallStep(name="OCR", arguments={"image": "inputs/a.jpg"})
    assert reference_steps(task) == (call,)
    reply = ReplyStep(parts=(ReplyPart(type="text", content="hello"),))
    assert reference_trace(task) == (call, reply)


def test_the_real_reference_has_557_calls_213_answers_and_555_replies(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    kinds = Counter(type(s) for task in atomic_tasks.values() for s in reference_trace(task))
    assert kinds == {CallStep: 557, AnswerStep: 213, ReplyStep: 555}
    assert sum(len(reference_steps(task)) for task in atomic_tasks.values()) == 770
