"""What a report says of replies that did not end normally."""

from gta_bench.records.units import Usage
from gta_bench.reports.summary import stop_remarks

CALLS = Usage(model_calls=51)


def test_all_kinds_are_counted_in_one_line_with_what_helps() -> None:
    first, *help = stop_remarks({"cut off": 3, "refused": 1, "context": 2}, CALLS)
    assert first == (
        "replies that did not end normally: cut off 3, refused 1, context 2 (of 51 model calls)."
    )
    assert [words.partition(":")[0] for words in help] == ["cut off", "context"]
    assert "--max-tokens" in help[0]


def test_calls_as_text_name_the_server_and_both_ways_out() -> None:
    _, words = stop_remarks({"call as text": 36}, CALLS)
    assert "--agent react" in words
    assert "--tool-call-parser" in words


def test_a_filter_before_the_model_is_named_as_such() -> None:
    *_, words = stop_remarks({"refused": 50}, CALLS)
    assert "not a measurement of the model" in words
    assert len(list(stop_remarks({"refused": 3}, CALLS))) == 1
    assert len(list(stop_remarks({"refused": 1}, Usage(model_calls=1)))) == 1


def test_a_run_without_such_replies_has_no_remark() -> None:
    assert list(stop_remarks({}, CALLS)) == []
