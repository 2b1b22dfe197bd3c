from datetime import UTC, datetime, timedelta

from gta_bench.records.progress import Command, ShardProgress, total_progress

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
