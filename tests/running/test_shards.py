"""Runs in shards: split, stopped, damaged, continued by another backend, merged to one log."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

from gta_bench.agents.models import ChosenModel
from gta_bench.errors import RunError, WorkFailed
from gta_bench.records.progress import RunProgress
from gta_bench.records.units import AtomicUnit
from gta_bench.running import shards
from gta_bench.running.backends.backend import INLINE, Backend, Inline, Tick, WorkFunction
from gta_bench.running.leases import LeaseSource
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder, progress_folder, read_command, read_progress
from gta_bench.runs.logs import ReadUnits, find_kept_units, list_logs, read_units
from gta_bench.runs.merge import find_shards
from gta_bench.runs.store import lock_folder
from gta_bench.settings import BudgetSettings, ModelSettings, Settings
from tests.builders import atomic_task, write_atomic
from tests.chat_server import ChatServer, chat_server
from tests.planning import Planned, planned

TASKS = 6


class Two(Inline):
    """Two places, worked off in this process; it may be interrupted after so many parts."""

    name = "two"
    places = 2

    def __init__(self, interrupted_after: int | None = None) -> None:
        self.interrupted_after = interrupted_after
        self.at_once = 0

    def run(self, work: WorkFunction, items: Any, *, at_once: int, tick: Tick) -> None:
        self.at_once = at_once
        for number in count():
            if (item := items.take()) is None:
                return
            if number == self.interrupted_after:
                raise KeyboardInterrupt
            work(item)
            items.finish(item)
            tick()


class Bench:
    """A dataset, a model and a run folder."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        tasks = {str(number): atomic_task() for number in range(TASKS)}
        self.data = write_atomic(root / "data", tasks)
        self.out = root / "run"
        self.server = server
        self.told: list[RunProgress] = []

    def wanted(self, *, epochs: int = 1, **budget: float) -> Planned:
        # Every call has ten input tokens: a dollar.
        model = ModelSettings(
            model="openai-api/local/scripted",
            base_url=self.server.url,
            key_env="SCRIPTED_KEY",
            input_price=100_000.0,
            output_price=0.0,
        )
        return planned(
            self.data,
            "step",
            model=ChosenModel(model.model, model),
            epochs=epochs,
            settings=Settings(budget=BudgetSettings(max_retries=0, **budget)),  # type: ignore[arg-type]
        )

    def run(
        self, backend: Backend = INLINE, *, epochs: int = 1, **budget: float
    ) -> ReadUnits[AtomicUnit]:
        wanted = self.wanted(epochs=epochs, **budget)
        execute(*wanted, self.out, self.told.append, backend=backend)
        return read_units(log_folder(self.out), wanted.manifest.spec.tasks, epochs, AtomicUnit)

    def samples(self) -> dict[tuple[str, int], set[str | None]]:
        """Every finished sample of every log."""
        found: dict[tuple[str, int], set[str | None]] = {}
        for log in list_logs(log_folder(self.out)):
            for one in read_eval_log_sample_summaries(log):
                if one.error is None:
                    found.setdefault((str(one.id), one.epoch), set()).add(one.uuid)
        return found


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None) -> Any:
    monkeypatch.setenv("SCRIPTED_KEY", "none")
    with chat_server() as server:
        yield Bench(tmp_path, server)


def test_shards_become_one_log_that_says_what_one_process_says(bench: Bench) -> None:
    inline = bench.run()
    (alone,) = list_logs(log_folder(bench.out))
    other = Bench(bench.out.parent / "other", bench.server)
    two = Two()
    sharded = other.run(two)
    assert two.at_once == 2
    assert [unit.trace for unit in sharded.units] == [unit.trace for unit in inline.units]
    (log,) = list_logs(log_folder(other.out))
    merged, single = read_eval_log(log), read_eval_log(alone)
    assert merged.results is not None
    assert single.results is not None
    assert merged.status == "success"
    assert merged.results.total_samples == merged.results.completed_samples == TASKS
    scores = [
        [{n: m.value for n, m in s.metrics.items()} for s in log.results.scores]
        for log in (merged, single)
        if log.results
    ]
    assert repr(scores[0]) == repr(scores[1])
    assert merged.eval.dataset.sample_ids == single.eval.dataset.sample_ids
    assert merged.stats.model_usage == single.stats.model_usage
    assert {(s.id, s.epoch) for s in merged.samples or []} == {
        (s.id, s.epoch) for s in single.samples or []
    }
    assert find_shards(other.out) is None


def test_nothing_is_run_twice_when_an_interrupted_run_is_continued_by_another_backend(
    bench: Bench,
) -> None:
    with pytest.raises(
        WorkFailed, match=r"^Interrupted\. 3 of 6 units are finished and safe"
    ) as end:
        bench.run(Two(interrupted_after=1))
    assert end.value.exit_code == 130
    before, asked = bench.samples(), bench.server.asked
    assert len(before) == 3
    found = bench.run(INLINE)
    assert len(found.units) == TASKS
    after = bench.samples()
    assert {key: after[key] for key in before} == before
    assert bench.server.asked == asked + 2 * 3
    command = read_command(progress_folder(bench.out))
    assert command is not None
    assert (command.finished, command.units) == (3, 6)
    bench.run(Two())
    assert bench.server.asked == asked + 2 * 3


def test_a_run_that_one_process_began_is_cut_into_shards_and_keeps_single_epochs(
    bench: Bench,
) -> None:
    """Epochs of a task lie in one log, so a begun task goes on with what it has."""
    bench.run(epochs=2, cost_usd=9.0, max_connections=1)
    before = bench.samples()
    assert 4 <= len(before) <= 6
    assert any((task, 2) not in before for task, _ in before)
    found = bench.run(Two(), epochs=2)
    assert not found.not_run
    assert [unit.failure for unit in found.units] == [None] * 12
    after = bench.samples()
    assert {key: after[key] for key in before} == before
    assert len(after) == 12
    assert len(list_logs(log_folder(bench.out))) == 1


def test_the_cost_of_the_whole_run_is_held_within_the_units_in_flight(bench: Bench) -> None:
    found = bench.run(Two(), cost_usd=5.0, max_connections=2)
    # Two dollars a unit: three units reach the limit, and one more was in flight.
    spent = sum(unit.usage.cost_usd or 0 for unit in found.units)
    assert 5 <= spent <= 8
    stopped = bench.told[-1]
    assert stopped.stopped == "The run has spent its budget of $5 (budget.cost_usd)"
    assert (stopped.done, stopped.cost_usd) == (spent / 2, spent)
    assert [unit.failure for unit in found.units] == [None] * stopped.done
    assert len(found.not_run) == TASKS - stopped.done
    assert (stopped.failed, stopped.causes) == (0, {})
    assert stopped.needed_usd == 2 * TASKS
    bench.run(Two(), cost_usd=5.0)
    assert sum(one.finished for one in find_kept_units(log_folder(bench.out)).values()) == spent / 2
    found = bench.run(Two())
    assert [unit.failure for unit in found.units] == [None] * TASKS


def test_no_unit_begins_after_the_time_of_the_command(bench: Bench) -> None:
    bench.server.delay = 0.2
    found = bench.run(Two(), hours=0.5 / 3600, max_connections=1)
    assert bench.told[-1].stopped == "The command has used up its time (budget.hours)"
    assert found.not_run
    assert (bench.told[-1].failed, bench.told[-1].needed_usd) == (0, None)
    bench.server.delay = 0.0
    found = bench.run(Two())
    assert [unit.failure for unit in found.units] == [None] * TASKS


def test_no_worker_is_without_a_connection(bench: Bench) -> None:
    two = Two()
    bench.run(two, max_connections=1)
    assert two.at_once == 1
    assert bench.server.most_at_once == 1


def test_a_damaged_shard_log_stops_the_run_and_loses_only_its_own_units(bench: Bench) -> None:
    for _ in range(2):
        with pytest.raises(WorkFailed):
            bench.run(Two(interrupted_after=1))
    first, second = list_logs(log_folder(bench.out))
    whole = Path(first).read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"\0" * len(whole)):
        Path(first).write_bytes(damaged)
        with pytest.raises(RunError, match="is damaged") as caught:
            bench.run(Two())
        assert first in str(caught.value)
        assert "All other logs of the run are intact" in str(caught.value)
        assert "run the same command again" in str(caught.value)
    kept = {one.id for one in read_eval_log_sample_summaries(second)}
    Path(first).unlink()
    asked = bench.server.asked
    found = bench.run(Two())
    assert [unit.failure for unit in found.units] == [None] * TASKS
    assert bench.server.asked == asked + 2 * (TASKS - len(kept))


def test_a_changed_byte_in_a_sample_is_found_before_shards_are_removed(bench: Bench) -> None:
    with pytest.raises(WorkFailed):
        bench.run(Two(interrupted_after=1))
    first = Path(list_logs(log_folder(bench.out))[0])
    data = bytearray(first.read_bytes())
    place = data.find(b"samples/") + 60
    data[place] ^= 0xFF
    first.write_bytes(data)
    with pytest.raises(RunError, match="is damaged"):
        bench.run(Two())
    assert first.exists()


class Twice(Two):
    """Gives up each worker too early, so that two workers answer for each lease."""

    def run(self, work: WorkFunction, items: Any, *, at_once: int, tick: Tick) -> None:
        while (lost := items.take()) is not None:
            items.give_back(lost)
            again = items.take()
            assert again == lost
            work(again)
            assert items.finish(again)
            work(lost)
            assert not items.finish(lost)
            tick()


def test_a_worker_that_answers_although_it_was_given_up_changes_nothing(bench: Bench) -> None:
    found = bench.run(Twice())
    assert [(unit.failure, unit.attempts) for unit in found.units] == [(None, 1)] * TASKS
    assert bench.server.asked == 2 * TASKS
    assert len(list_logs(log_folder(bench.out))) == 1
    assert [len(samples) for samples in bench.samples().values()] == [1] * TASKS
    told = bench.told[-1]
    assert (told.done, told.failed, told.running, told.cost_usd) == (TASKS, 0, 0, 2.0 * TASKS)


def test_a_worker_that_was_cut_off_ends_before_the_next_command_starts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WorkFailed):
        bench.run(Two(interrupted_after=1))
    asked = bench.server.asked
    monkeypatch.setattr(shards, "PATIENCE", 0.0)
    cut_off = Path(list_logs(log_folder(bench.out))[0]).parent
    with lock_folder(cut_off), pytest.raises(RunError, match="Another command is working on"):
        bench.run(Two())
    assert bench.server.asked == asked
    bench.run(Two())
    assert bench.server.asked == 2 * TASKS


def test_two_commands_do_not_work_on_one_run(bench: Bench) -> None:
    bench.run()
    with lock_folder(bench.out), pytest.raises(RunError, match="Another command is working on"):
        bench.run()


@pytest.mark.parametrize(("here", "missing"), [(0, 6), (1, 3)])
def test_work_that_leaves_no_log_is_not_taken_for_done(
    bench: Bench, here: int, missing: int
) -> None:
    """As on machines of which some do not share the run's folder."""

    class Elsewhere(Two):
        def run(
            self, work: WorkFunction, items: LeaseSource[Any], *, at_once: int, tick: Tick
        ) -> None:
            for _ in range(here):
                work(items.take())

    with pytest.raises(RunError, match=f"has no log of {missing} units.* all of them share"):
        bench.run(Elsewhere())
    found = bench.run(Two())
    assert [unit.failure for unit in found.units] == [None] * TASKS


def test_a_system_that_refuses_a_file_is_told_with_what_is_safe(bench: Bench) -> None:
    class Full(Two):
        def run(
            self, work: WorkFunction, items: LeaseSource[Any], *, at_once: int, tick: Tick
        ) -> None:
            work(items.take())
            raise OSError(28, "No space left on device", str(bench.out))

    with pytest.raises(WorkFailed, match="Free some disk space") as caught:
        bench.run(Full())
    assert "3 of 6 units are finished and safe" in str(caught.value)
    assert caught.value.exit_code == 3


def test_what_shards_say_is_the_sum_that_is_shown(bench: Bench) -> None:
    bench.run(Two())
    found = read_progress(progress_folder(bench.out))
    assert found is not None
    assert (found.units, found.done, found.failed, found.running) == (6, 6, 0, 0)
    assert found.cost_usd == 12.0
    assert [one.done for one in bench.told] == sorted(one.done for one in bench.told)


@pytest.mark.parametrize("road", ["link/run", "data/../run", "a b/ä/run"])
def test_shards_are_merged_and_kept_by_whatever_road_the_folder_is_named(
    bench: Bench, tmp_path: Path, road: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    bench.out = tmp_path / road
    found = bench.run(Two())
    assert [unit.failure for unit in found.units] == [None] * TASKS
    assert len(list_logs(log_folder(bench.out))) == 1
    asked = bench.server.asked
    assert len(bench.run(Two()).units) == TASKS
    assert bench.server.asked == asked


def test_a_folder_that_the_engine_would_read_as_another_is_refused(bench: Bench) -> None:
    bench.out = bench.out / "p%20q"
    with pytest.raises(RunError, match="Inspect decodes % in paths"):
        bench.run()


def test_tasks_whose_log_is_removed_after_the_plan_was_made_are_run_again(bench: Bench) -> None:
    """The plan has only those that were open then."""
    bench.run(cost_usd=5.0, max_connections=1)
    (begun,) = list_logs(log_folder(bench.out))
    with pytest.raises(WorkFailed, match="Interrupted"):
        bench.run(Two(interrupted_after=1))
    Path(begun).unlink()
    found = bench.run(Two())
    assert [unit.failure for unit in found.units] == [None] * TASKS
    assert len(list_logs(log_folder(bench.out))) == 1


def test_money_of_attempts_that_failed_stays_spent(bench: Bench) -> None:
    """Each of two commands may spend five dollars more if the first one's are forgotten."""
    bench.run(cost_usd=5.0, max_connections=1)
    spent = bench.told[-1].cost_usd
    assert spent is not None
    for log in list_logs(log_folder(bench.out)):
        Path(log).unlink()
    asked = bench.server.asked
    bench.run(cost_usd=5.0, max_connections=1)
    assert bench.server.asked == asked
    assert bench.told[-1].cost_usd == spent


def test_a_model_server_that_does_not_answer_is_named(bench: Bench) -> None:
    class Gone:
        url = "http://127.0.0.1:9/v1"

    bench.server = Gone()  # type: ignore[assignment]
    failure = bench.run().units[0].failure
    assert failure == (
        "The model did not reply: APIConnectionError: Connection error. (http://127.0.0.1:9/v1)"
    )
