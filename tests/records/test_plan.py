from datetime import UTC, datetime

import pytest

from gta_bench.records.plan import (
    UNITS_PER_SHARD,
    count_useful_workers,
    make_plan,
    plan_digest,
    shard_count,
)

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def test_every_task_is_in_one_shard_and_neighbors_are_apart() -> None:
    tasks = [str(number) for number in range(229)]
    plan = make_plan(tasks, epochs=1, places=2, log="x", created=NOW)
    assert [len(shard.tasks) for shard in plan.shards] == [58, 57, 57, 57]
    assert sorted(task for shard in plan.shards for task in shard.tasks) == sorted(tasks)
    assert plan.shards[0].tasks[:3] == ("0", "4", "8")


def test_names_of_shards_sort_as_their_numbers_do() -> None:
    plan = make_plan([str(n) for n in range(40)], epochs=1, places=10, log="x", created=NOW)
    names = [shard.name for shard in plan.shards]
    assert names == sorted(names)
    assert (names[0], names[-1]) == ("00", "19")


@pytest.mark.parametrize(
    ("tasks", "epochs", "places", "count"),
    [(229, 1, 2, 4), (3, 1, 8, 3), (361, 100, 4, 142), (0, 1, 4, 0)],
)
def test_shards_are_enough_for_all_places_and_none_is_too_long(
    tasks: int, epochs: int, places: int, count: int
) -> None:
    assert shard_count(tasks, epochs, places) == count
    if count and tasks > count:
        assert tasks * epochs / count <= UNITS_PER_SHARD


def test_the_digest_changes_with_the_split_and_not_with_the_time() -> None:
    plans = [
        make_plan(["a", "b", "c"], epochs=epochs, places=places, log=log, created=NOW)
        for epochs, places, log in [(1, 1, "x"), (1, 1, "y"), (1, 2, "x"), (2, 1, "x")]
    ]
    digests = [plan.digest for plan in plans]
    assert digests[0] == digests[1] == plan_digest(plans[0].shards, 1)
    assert len(set(digests)) == 3


@pytest.mark.parametrize(("units", "places", "worth"), [(229, 2, 2), (30, 8, 1), (100, 8, 5)])
def test_few_units_are_worth_few_places(units: int, places: int, worth: int) -> None:
    assert count_useful_workers(units, places) == worth
