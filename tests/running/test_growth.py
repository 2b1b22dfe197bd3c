"""Runs that grow: more tasks and epochs in the same folder, by any backend, with nothing lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from gta_bench.agents.models import ChosenModel
from gta_bench.errors import RunError, WorkFailed
from gta_bench.records.units import AtomicUnit
from gta_bench.running.backends.backend import INLINE, Backend
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import ReadUnits, find_kept_units, list_logs, read_units
from gta_bench.runs.merge import SHARDS
from gta_bench.settings import BudgetSettings, ModelSettings, Settings
from tests.builders import atomic_task, write_atomic
from tests.chat_server import Behavior, ChatServer, chat_server
from tests.planning import planned
from tests.running.test_shards import Two

CALLS = 2  # of a unit: the reference has a call and an answer
WELL: list[Behavior] = ["ok"]


class Grown:
    """A dataset of ten tasks, a model, and a run that commands extend."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        tasks = {str(number): atomic_task() for number in range(10)}
        self.data = write_atomic(root / "data", tasks)
        self.out = root / "run"
        self.server = server

    def command(
        self, tasks: str, *, epochs: int = 1, backend: Backend = INLINE, at_once: int = 10
    ) -> int:
        """How many units the server was asked about by the command."""
        model = ModelSettings(
            model="openai-api/local/scripted", base_url=self.server.url, key_env="SCRIPTED_KEY"
        )
        wanted = planned(
            self.data,
            "step",
            model=ChosenModel(model.model, model),
            tasks=tasks,
            epochs=epochs,
            settings=Settings(budget=BudgetSettings(max_retries=0, max_connections=at_once)),
        )
        before = self.server.asked
        execute(*wanted, self.out, lambda _: None, backend=backend)
        calls = self.server.asked - before
        assert self.server.forever or calls % CALLS == 0
        return calls // CALLS

    def read(self) -> ReadUnits[AtomicUnit]:
        """All units of the run, by its manifest."""
        spec = read_manifest(self.out).spec
        return read_units(log_folder(self.out), spec.tasks, spec.epochs, AtomicUnit)

    def finished(self) -> set[tuple[str, int]]:
        kept = find_kept_units(log_folder(self.out))
        return {key for key, one in kept.items() if one.finished}

    def shards(self) -> list[str]:
        return [log for log in list_logs(log_folder(self.out)) if SHARDS in log]


@pytest.fixture
def grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None) -> Iterator[Grown]:
    monkeypatch.setenv("SCRIPTED_KEY", "none")
    with chat_server() as server:
        yield Grown(tmp_path, server)


def test_more_tasks_and_more_epochs_ask_for_what_is_missing(grown: Grown) -> None:
    assert grown.command("0:3") == 3
    assert grown.command("0:5") == 2
    assert grown.command("0:5", epochs=3) == 10
    assert grown.command("0:5", epochs=3) == 0
    assert not grown.read().not_run
    manifest = read_manifest(grown.out)
    assert [(one.tasks, one.epochs) for one in manifest.growth] == [(("3", "4"), 1), ((), 1)]
    (log,) = list_logs(log_folder(grown.out))
    results = read_eval_log(log, header_only=True).results
    assert results is not None
    assert results.completed_samples == 15


@pytest.mark.slow
def test_tasks_that_are_named_apart_join_the_run(grown: Grown) -> None:
    assert grown.command("0:2") == 2
    assert grown.command("7,5") == 2
    assert read_manifest(grown.out).spec.tasks == ("0", "1", "7", "5")
    assert not grown.read().not_run
    assert grown.command("0,1,5,7") == 0


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(INLINE, Two()), (Two(), INLINE), (Two(), Two())])
def test_any_backend_extends_what_another_began(
    grown: Grown, first: Backend, then: Backend
) -> None:
    assert grown.command("0:4", backend=first) == 4
    assert grown.command("0:6", backend=then) == 2
    assert grown.command("0:6", epochs=2, backend=then) == 6
    assert grown.command("0:6", epochs=2, backend=first) == 0
    assert not grown.read().not_run
    (log,) = list_logs(log_folder(grown.out))
    assert not grown.shards()
    merged = read_eval_log(log, header_only=True)
    assert merged.results is not None
    assert (merged.eval.config.epochs, merged.results.completed_samples) == (2, 12)


@pytest.mark.slow
def test_epochs_that_are_added_are_dealt_to_all_places(grown: Grown) -> None:
    """All tasks have an epoch already, and one shard for all of them would be one place."""
    grown.command("0:6")
    two = Two()
    assert grown.command("0:6", epochs=2, backend=two) == 6
    assert two.at_once == 2


@pytest.mark.slow
def test_a_shard_that_was_interrupted_goes_on_in_the_run_that_grew(grown: Grown) -> None:
    with pytest.raises(WorkFailed, match="Interrupted"):
        grown.command("0:4", backend=Two(interrupted_after=1))
    before = grown.finished()
    assert len(before) == 2
    assert grown.command("0:6", epochs=2, backend=Two()) == 10
    assert not grown.read().not_run
    assert len(list_logs(log_folder(grown.out))) == 1


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(INLINE, marks=pytest.mark.measure),
        pytest.param(Two(), marks=pytest.mark.slow),
    ],
)
def test_fewer_tasks_are_all_that_a_command_works_on_and_nothing_is_lost(
    grown: Grown, backend: Backend
) -> None:
    """The engine drops from its log what it is not asked for."""
    grown.server.behaviors = WELL * 3 * CALLS
    grown.server.forever = "500"
    grown.command("0:6", epochs=2, at_once=1)
    done = grown.finished()
    assert 0 < len(done) < 12
    grown.server.forever = None
    failed = next(task for task in map(str, range(6)) if (task, 1) not in done)
    missing = sum((failed, epoch) not in done for epoch in (1, 2))
    assert grown.command(failed, epochs=2, backend=backend) == missing
    assert grown.finished() == done | {(failed, 1), (failed, 2)}
    assert read_manifest(grown.out).spec.units == 12
    assert grown.command(failed, epochs=2, backend=backend) == 0
    assert grown.command("0:6", epochs=2, backend=backend) == 12 - len(done) - missing
    assert len(grown.finished()) == 12
    assert len(list_logs(log_folder(grown.out))) == 1


@pytest.mark.parametrize("backend", [INLINE, pytest.param(Two(), marks=pytest.mark.slow)])
def test_fewer_epochs_leave_the_others_of_the_run_alone(grown: Grown, backend: Backend) -> None:
    assert grown.command("0:2", epochs=2) == 4
    assert grown.command("0:3", epochs=1, backend=backend) == 1
    found = grown.read()
    assert (len(found.units), found.not_run) == (5, (("2", 2),))
    assert grown.command("0:3", epochs=2, backend=backend) == 1
    assert not grown.read().not_run
    assert not grown.shards()


@pytest.mark.slow
def test_a_command_for_what_is_finished_asks_nothing_and_loses_nothing(grown: Grown) -> None:
    grown.server.behaviors = WELL * 2 * CALLS
    grown.server.forever = "500"
    grown.command("0:4", at_once=1)
    done = grown.finished()
    grown.server.forever = None
    assert grown.command(sorted(done)[0][0]) == 0
    assert grown.finished() == done
    assert len(find_kept_units(log_folder(grown.out))) == 4


def test_the_same_data_in_another_place_are_refused_before_the_run_grows(grown: Grown) -> None:
    """The command was refused by the engine, after the run was said to have more tasks."""
    grown.command("0:2")
    before = read_manifest(grown.out)
    grown.data = grown.data.rename(grown.data.with_name("moved"))
    with pytest.raises(RunError, match=r"was run with the data in .*/data and cannot continue"):
        grown.command("0:4")
    assert read_manifest(grown.out) == before
