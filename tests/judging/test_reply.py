import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.judging.reply import read_reply, reply_schema
from gta_bench.records.verdicts import Scored, Unscored
from tests.judging.builders import verdict

GOOD = json.dumps(verdict("cp1-1"))
SCORED = Scored(value=8, reason="Seen.", used=("report.md",))


def one(text: str) -> Scored | Unscored:
    return read_reply(text, ["cp1-1"], several=False)["cp1-1"]


def with_score(score: str) -> str:
    return GOOD.replace(": 8", f": {score}")


@pytest.mark.parametrize(
    "text", [GOOD, f"\n {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"]
)
def test_one_object_is_a_score_bare_or_alone_in_one_fence(text: str) -> None:
    assert one(text) == SCORED


@pytest.mark.parametrize("score", [0, 10, 7.5, 1e1])
def test_every_number_of_the_scale_is_a_score(score: float) -> None:
    assert one(with_score(str(score))) == SCORED.model_copy(update={"value": score})


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("I would give it 8 of 10.", "reply_not_json"),
        ("In 2024 the score was 9", "reply_not_json"),
        (f"Here is my verdict: {GOOD}", "reply_not_json"),
        (f"{GOOD} I hope this helps.", "reply_not_json"),
        (f"Sure!\n```json\n{GOOD}\n```", "reply_not_json"),
        (f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```", "reply_not_json"),
        (GOOD[:-10], "reply_not_json"),
        ("[" * 100_000, "reply_not_json"),
        (f"{GOOD}\n{GOOD}", "reply_two_objects"),
        (f"{GOOD}{GOOD.replace('8', '3')}", "reply_two_objects"),
        (GOOD.replace('"used"', '"score": 3, "used"'), "reply_two_objects"),
        (f"[{GOOD}]", "reply_other_shape"),
        ("8", "reply_other_shape"),
        ('"8"', "reply_other_shape"),
        ('{"score": 8}', "reply_other_shape"),
        (json.dumps({**verdict("cp1-1"), "weight": 3}), "reply_other_shape"),
        (json.dumps(verdict("cp1-1", reason=None)), "reply_other_shape"),
        (json.dumps(verdict("cp1-1", used="report.md")), "reply_other_shape"),
        (json.dumps(verdict("cp1-1", used=[1])), "reply_other_shape"),
        ('{"leaf": "cp1-1", "reason": "fine", "used": []}', "score_missing"),
        (with_score("null"), "score_not_a_number"),
        (with_score("true"), "score_not_a_number"),
        (with_score('"8"'), "score_not_a_number"),
        (with_score('"8/10"'), "score_not_a_number"),
        (with_score("NaN"), "score_not_a_number"),
        (with_score("Infinity"), "score_not_a_number"),
        (with_score("-Infinity"), "score_not_a_number"),
        (with_score("[8]"), "score_not_a_number"),
        (with_score("12"), "score_out_of_range"),
        (with_score("-4"), "score_out_of_range"),
        (with_score("10.001"), "score_out_of_range"),
        (with_score("1e400"), "score_out_of_range"),
        (json.dumps(verdict("cp1-2")), "other_leaf"),
        (json.dumps(verdict("CP1-1")), "other_leaf"),
        (json.dumps({**verdict("cp1-1"), "leaf": 1}), "other_leaf"),
    ],
)
def test_anything_else_is_unscored_with_its_cause(text: str, cause: str) -> None:
    found = one(text)
    assert isinstance(found, Unscored), text
    assert found.cause == cause
    assert len(found.detail) < 400


@pytest.mark.parametrize(
    ("reply", "came"),
    [
        ({"score": 8}, "{'score': 8}"),
        ({**verdict("cp1-1"), "weight": 3}, "'weight': 3"),
        (verdict("cp1-1", reason=None), "None"),
        (verdict("cp1-1", used="report.md"), "'report.md'"),
        ([8], "[8]"),
    ],
)
def test_a_reply_of_another_shape_is_quoted_in_the_detail(reply: Any, came: str) -> None:
    found = one(json.dumps(reply))
    assert isinstance(found, Unscored) and found.cause == "reply_other_shape"
    assert came in found.detail


def several(*entries: Any, asked: tuple[str, ...] = ("a", "b")) -> dict[str, str]:
    reply = read_reply(json.dumps({"verdicts": list(entries)}), asked, several=True)
    return {
        leaf: "scored" if isinstance(found, Scored) else found.cause
        for leaf, found in reply.items()
    }


def test_each_of_several_verdicts_is_bound_to_its_leaf_whatever_their_order() -> None:
    text = json.dumps({"verdicts": [verdict("b", 2), verdict("a", 9)]})
    reply = read_reply(text, ["a", "b"], several=True)
    assert reply == {
        "a": SCORED.model_copy(update={"value": 9}),
        "b": SCORED.model_copy(update={"value": 2}),
    }


def test_a_broken_verdict_among_several_breaks_no_other() -> None:
    assert several(verdict("a"), verdict("b", 12)) == {"a": "scored", "b": "score_out_of_range"}
    assert several(verdict("a")) == {"a": "scored", "b": "score_missing"}
    assert several(verdict("a"), verdict("c")) == {"a": "scored", "b": "other_leaf"}
    assert several(verdict("a"), verdict("b"), verdict("b")) == {
        "a": "scored",
        "b": "reply_two_objects",
    }


@pytest.mark.parametrize("text", ['{"verdicts": {}}', '{"verdicts": [8]}', "{}", GOOD])
def test_verdicts_that_are_not_a_list_leave_all_unscored(text: str) -> None:
    reply = read_reply(text, ["a", "b"], several=True)
    assert {found.cause for found in reply.values() if isinstance(found, Unscored)} == {
        "reply_other_shape"
    }
    assert all(repr(json.loads(text)) in getattr(found, "detail", "") for found in reply.values())


@given(st.text(max_size=60))
def test_no_text_makes_up_a_score(text: str) -> None:
    """A score comes from an object that names the leaf, and from nothing else."""
    found = one(text)
    assert isinstance(found, Unscored) or '"leaf"' in text


def test_the_schema_is_the_same_for_every_leaf_of_a_task_and_bounds_the_score() -> None:
    schema = reply_schema(["a", "b"], several=False).json_schema
    assert schema.properties is not None
    assert list(schema.properties) == ["leaf", "used", "reason", "score"] == schema.required
    assert schema.properties["score"].enum == list(range(11))
    assert schema.properties["leaf"].enum == ["a", "b"]
    listed = reply_schema(["a", "b"], several=True).json_schema.properties
    assert listed is not None
    assert listed["verdicts"].items == schema


def test_a_lone_surrogate_in_a_reply_is_still_a_verdict_that_can_be_written() -> None:
    found = one(GOOD.replace("Seen.", "Seen \\ud83d").replace("report", "\\udc00"))
    assert found == Scored(value=8, reason="Seen ?", used=("?.md",))
    assert found.model_dump_json()
