from datetime import UTC, datetime, timedelta

import pytest

from gta_bench.records.progress import (
    MOST_CAUSES,
    OTHER_CAUSES,
    Command,
    ShardProgress,
    count_causes,
    short_cause,
    total_progress,
)

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def shard(name: str, **values: object) -> ShardProgress:
    later = NOW + timedelta(minutes=2)
    return ShardProgress.model_validate({"shard": name, "command": NOW, "updated": later, **values})


def test_shards_of_one_command_are_added_to_what_was_finished_before() -> None:
    command = Command(started=NOW, units=100, finished=40, spent_usd=1.0)
    shards = [
        shard("0", done=10, failed=1, running=2, cost_usd=0.5),
        shard("1", done=10, running=1),
        shard("2", done=99, command=NOW - timedelta(hours=1)),
    ]
    found = total_progress(command, shards)
    assert (found.done, found.done_now, found.failed, found.running) == (60, 20, 1, 3)
    assert found.cost_usd == 1.5
    assert found.rate == 10
    assert found.left == timedelta(minutes=4)


def test_without_a_finished_unit_there_is_no_rate_and_without_prices_no_cost() -> None:
    found = total_progress(Command(started=NOW, units=10, finished=0), [])
    assert (found.rate, found.left, found.cost_usd) == (None, None, None)
    at_once = shard("0", done=1, updated=NOW)
    assert total_progress(Command(started=NOW, units=10, finished=0), [at_once]).rate is None


def test_an_unpriced_part_makes_the_cost_unknown_and_leaves_budgets_what_is_known() -> None:
    command = Command(started=NOW, units=10, finished=1, spent_usd=1.0)
    shards = [shard("0", cost_usd=0.5), shard("1", cost_usd=0.25, unpriced=True), shard("2")]
    found = total_progress(command, shards)
    assert (found.cost_usd, found.known_usd) == (None, 1.75)
    unpriced = total_progress(command.model_copy(update={"unpriced": True}), shards[:1])
    assert (unpriced.cost_usd, unpriced.known_usd) == (None, 1.5)
    assert total_progress(command, shards[2:]).cost_usd == 1.0


def test_causes_of_all_shards_are_added_the_most_frequent_first() -> None:
    command = Command(started=NOW, units=10, finished=0)
    shards = [shard("0", causes={"a": 1, "b": 2}), shard("1", causes={"a": 3}), shard("2")]
    assert list(total_progress(command, shards).causes.items()) == [("a", 4), ("b", 2)]


def test_rare_causes_are_counted_together() -> None:
    counts = {f"cause {number}": 20 - number for number in range(12)}
    found = count_causes([counts, {OTHER_CAUSES: 5}])
    assert len(found) == MOST_CAUSES + 1
    assert found[OTHER_CAUSES] == 12 + 11 + 10 + 9 + 5
    assert count_causes([found]) == found


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        ("Error code: 500, req_8aF09xZ\nTraceback", "Error code: 500, …"),
        ("refused 0f8fad5b-d9cb-469f-a165-70867728950e.", "refused …."),
        ("deadbeefdeadbeef is gone", "… is gone"),
        ("The model gpt-5-2025-08-07 is busy", "The model gpt-5-2025-08-07 is busy"),
        ("", "no reason was given"),
        ("x" * 500, "x" * 160),
    ],
)
def test_a_cause_is_one_line_without_what_differs_from_unit_to_unit(
    failure: str, cause: str
) -> None:
    assert short_cause(failure) == cause
