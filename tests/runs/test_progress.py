"""What commands leave in the progress folder, and what the next one makes of it."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

from gta_bench.records.cost import Cost
from gta_bench.records.progress import Command, ShardProgress
from gta_bench.running.budget import RunLimits
from gta_bench.runs.directory import begin_progress, read_progress, read_spent, write_progress
from gta_bench.tasks.context import SampleOutcome

NOW = datetime(2026, 11, 15, tzinfo=UTC)
COMMAND = Command(started=NOW, units=10, finished=1, spent_usd=1.0)


def shard(name: str, cost_usd: float | None, *, unpriced: bool = False) -> ShardProgress:
    return ShardProgress(shard=name, command=NOW, updated=NOW, cost_usd=cost_usd, unpriced=unpriced)


def test_the_next_command_knows_what_was_spent_and_that_it_was_not_all(tmp_path: Path) -> None:
    assert read_spent(tmp_path) == Cost()
    begin_progress(tmp_path, COMMAND)
    write_progress(tmp_path, shard("0", 4.5))
    assert read_spent(tmp_path) == Cost(5.5)
    write_progress(tmp_path, shard("1", None, unpriced=True))
    assert read_spent(tmp_path) == Cost(5.5, unknown=True)


def test_what_judging_cost_is_not_counted_for_the_run(tmp_path: Path) -> None:
    begin_progress(tmp_path, COMMAND.model_copy(update={"judge": "j"}))
    assert read_spent(tmp_path) == Cost()


def test_a_limit_in_dollars_is_held_to_the_known_part_of_an_unknown_cost(tmp_path: Path) -> None:
    begin_progress(tmp_path, COMMAND)
    write_progress(tmp_path, shard("0", 4.5, unpriced=True))
    found = read_progress(tmp_path)
    assert found is not None
    assert (found.cost_usd, found.known_usd) == (None, 5.5)
    assert RunLimits(cost_usd=5).find_reached(found.known_usd) is not None
    assert RunLimits(cost_usd=6).find_reached(found.known_usd) is None


def test_progress_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    begin_progress(tmp_path, COMMAND)
    for file, record in (("command", COMMAND), ("shard-0", shard("0", 0.5))):
        old = record.model_dump(mode="json", exclude={"unpriced"})
        (tmp_path / f"{file}.json").write_text(json.dumps(old), encoding="utf-8")
    found = read_progress(tmp_path)
    assert found is not None
    assert found.cost_usd == 1.5


def test_a_unit_that_begins_just_after_another_one_is_counted_while_it_runs() -> None:
    from gta_bench.running.progress import PAUSE, Counter

    told: list[ShardProgress] = []

    async def work() -> None:
        counter = Counter(shard("0", None), told.append)
        counter.began()
        counter.ended(("1", 1), Cost(), SampleOutcome(finished=True))
        for _ in range(3):
            counter.began()
        await asyncio.sleep(3 * PAUSE)

    asyncio.run(work())
    assert [(one.done, one.running) for one in told] == [(1, 0), (1, 3)]


def test_how_replies_ended_is_counted_over_all_commands(tmp_path: Path) -> None:
    begin_progress(tmp_path, COMMAND)
    write_progress(tmp_path, shard("0", None).model_copy(update={"stops": {"refused": 1}}))
    write_progress(
        tmp_path, shard("1", None).model_copy(update={"stops": {"cut off": 2, "refused": 1}})
    )
    for later in (COMMAND, COMMAND.model_copy(update={"judge": "j"})):
        begin_progress(tmp_path, later)
        found = read_progress(tmp_path)
        assert found is not None
        assert list(found.stops.items()) == [("cut off", 2), ("refused", 2)]
