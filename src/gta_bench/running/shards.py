"""A run over any backend: workers take leases of its open units, whose logs become one log.

Each lease has its logs in a shard of its own. A run that one process does from its start is a
single part, with its logs in the run's own folder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import fmean
from typing import NamedTuple
from uuid import uuid4

from gta_bench.errors import INTERRUPTED, EnvironmentProblem, GtaError, RunError, WorkFailed
from gta_bench.records.attempts import UnitKey
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.progress import Command, RunProgress
from gta_bench.records.run import RunManifest, RunSpec
from gta_bench.running.backends.backend import Backend, Call, WorkFunction, explain_os_error
from gta_bench.running.budget import RunLimits, SharedBudget
from gta_bench.running.leases import Items, LeaseSource, LeaseTable, expect_seconds
from gta_bench.running.stopping import check_stop
from gta_bench.runs.directory import (
    begin_progress,
    log_folder,
    progress_folder,
    read_progress,
    read_spent,
)
from gta_bench.runs.logs import (
    Kept,
    count_finished,
    find_kept_units,
    list_logs,
    restore_attempts,
    unit_keys,
)
from gta_bench.runs.merge import (
    SHARDS,
    find_shards,
    is_part,
    merge_shards,
    merged_log_path,
    shards_folder,
)
from gta_bench.runs.requirements import read_edited
from gta_bench.runs.store import StorePath, disk_full_hint, lock_folder, store_path
from gta_bench.settings import BudgetSettings, Settings

Listener = Callable[[RunProgress], None]
# Seconds that a shard waits for another attempt at it that is ending elsewhere.
PATIENCE = 90.0


class RunPart(NamedTuple):
    """A lease: what one process evaluates of a run, and where it writes its logs.

    `begun` has the logs with earlier samples of these units, and `budget` calls the budget of the
    command.
    """

    name: str
    tasks: tuple[str, ...]
    logs: StorePath
    progress: StorePath
    command: Command
    budget: Call
    begun: Mapping[UnitKey, str] = {}


def run_units(
    work: WorkFunction,
    manifest: RunManifest,
    spec: RunSpec,
    out: StorePath,
    settings: Settings,
    listener: Listener,
    backend: Backend,
    *,
    sizes: Mapping[str, float] | None = None,
) -> None:
    """Run the units of `spec` that no log contains yet; `spec` may be a part of the run.

    `sizes` are how long tasks are expected to take, compared with each other.
    """
    with lock_folder(out):
        _await_shards(out)
        kept = find_kept_units(log_folder(out))
        restore_attempts(out, kept)
        folder = progress_folder(out)
        command = _command(manifest, kept, backend, read_spent(folder))
        begin_progress(folder, command)
        limits = _limits(settings.budget, command)
        budget = SharedBudget(
            connections=settings.budget.max_connections,
            places=backend.places,
            rpm=settings.budget.rpm,
            limits=limits,
            spent_usd=command.spent_usd,
        )
        report_progress(folder, listener)
        with explain_failure(partial(_safe, out, manifest)):
            with backend.share(budget) as call:
                make = partial(RunPart, progress=folder, command=command, budget=call)
                leased = _lease(out, spec, kept, backend, make, sizes or {})

                def tick() -> None:
                    # A budget that was lost with its machine learns what was spent.
                    call("note_spent", report_progress(folder, listener).known_usd)

                at_once = count_parallel(len(leased.tasks), settings, backend)
                backend.run(work, leased.source, at_once=at_once, tick=tick)
            _merge(out, manifest, spec, leased.tasks)
        last = report_progress(folder, listener)
        if last.done < last.units:
            listener(limits.explain(last))


def _await_shards(out: StorePath) -> None:
    """Wait for workers that a lost cluster or network cut off from an earlier command.

    Such a worker ends within a minute or so; until then, the unit that it works on is not open.
    """
    logs = (store_path(log) for log in list_logs(log_folder(out)))
    for folder in sorted({log.parent for log in logs if f"{SHARDS}/" in str(log)}):
        with lock_folder(folder, patience=PATIENCE):
            pass


class _Leased(NamedTuple):
    """The tasks that are open, and what workers take of them."""

    tasks: list[str]
    source: LeaseSource[RunPart]


def _lease(
    out: StorePath,
    spec: RunSpec,
    kept: Mapping[UnitKey, Kept],
    backend: Backend,
    make: Callable[..., RunPart],
    sizes: Mapping[str, float],
) -> _Leased:
    """Return what there is to do: leases, or one part that continues the run's own log."""
    if _is_whole(out, spec, kept) and backend.places == 1:
        part = make(name="", tasks=spec.tasks, logs=log_folder(out))
        return _Leased([*spec.tasks], Items([part]))
    tasks = _open_tasks(spec.tasks, spec.epochs, kept)
    name = "workflow" if spec.mode == "workflow" else f"atomic-{spec.mode}"
    log = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-00-00_{name}_{uuid4().hex[:22]}"

    def make_lease(number: str, leased: tuple[str, ...]) -> RunPart:
        begun = {
            key: kept[key].log
            for key in unit_keys(leased, spec.epochs)
            if key in kept and not kept[key].stopped
        }
        return make(name=number, tasks=leased, logs=shards_folder(out, log) / number, begun=begun)

    table = LeaseTable(
        _expect(tasks, spec.epochs, kept, sizes),
        make=make_lease,
        places=backend.places,
        epochs=spec.epochs,
    )
    return _Leased(tasks, table)


def _expect(
    tasks: Sequence[str], epochs: int, kept: Mapping[UnitKey, Kept], sizes: Mapping[str, float]
) -> dict[str, float]:
    """Return the expected time of the open epochs of each task, as far as earlier ones tell it."""
    took: dict[str, list[float]] = {}
    open_epochs = dict.fromkeys(tasks, epochs)
    for (task, epoch), one in kept.items():
        if one.finished and one.seconds:
            took.setdefault(task, []).append(one.seconds)
        if one.finished and task in open_epochs and epoch <= epochs:
            open_epochs[task] -= 1
    known = {task: fmean(seconds) for task, seconds in took.items()}
    # Tasks that are not open also tell how long a size takes.
    each = expect_seconds({task: sizes.get(task, 1.0) for task in {*tasks, *known}}, known)
    return {task: each[task] * count for task, count in open_epochs.items()}


def _limits(budget: BudgetSettings, command: Command) -> RunLimits:
    hours = budget.hours
    deadline = None if hours is None else command.started + timedelta(hours=hours)
    return RunLimits(deadline, budget.cost_usd)


@contextmanager
def explain_failure(safe: Callable[[], str]) -> Iterator[None]:
    """Add what is safe and how to continue to any failure that ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        raise WorkFailed(f"Interrupted. {safe()}", exit_code=INTERRUPTED) from None
    except OSError as exc:
        raise WorkFailed(f"{explain_os_error(exc)} {safe()}", exit_code=3) from exc
    except (EnvironmentProblem, WorkFailed) as exc:
        raise WorkFailed(f"{exc} {safe()}", exit_code=exc.exit_code) from exc


def report_progress(folder: StorePath, listener: Listener) -> RunProgress:
    """Read the progress of all shards, pass it to the listener, and return it."""
    check_stop()
    found = read_progress(folder)
    assert found is not None
    listener(found)
    return found


def count_parallel(parts: int, settings: Settings, backend: Backend) -> int:
    """Return how many parts run at once; each needs a connection of its own."""
    return max(1, min(backend.places, parts, settings.budget.max_connections))


def limit_connections(settings: Settings, most: int) -> Settings:
    """Return the settings with so many connections."""
    budget = settings.budget.model_copy(update={"max_connections": most})
    return settings.model_copy(update={"budget": budget})


def _command(
    manifest: RunManifest, kept: Mapping[UnitKey, Kept], backend: Backend, before: Cost
) -> Command:
    """Describe what this command will do; money spent on failed attempts stays spent."""
    spent = (sum_costs(one.cost for one in kept.values()), before)
    return Command(
        started=datetime.now(UTC),
        units=manifest.spec.units,
        finished=sum(one.finished for one in kept.values()),
        spent_usd=max((one.known for one in spent if one.known is not None), default=None),
        unpriced=any(one.unknown for one in spent),
        backend=backend.name,
        places=backend.places,
    )


def _is_whole(out: StorePath, spec: RunSpec, kept: Mapping[UnitKey, Kept]) -> bool:
    """Whether Inspect can continue in the run's own log.

    It drops from a log what it is not asked for. So the units of shards, and those that a command
    for fewer tasks or epochs leaves alone, must stay in other logs than those it continues. It also
    takes every sample of a log for finished, even one of an earlier version of the dataset.
    """
    if read_edited(out).dataset_digest:
        return False
    named = {*spec.tasks}
    asked = all(task in named and epoch <= spec.epochs for task, epoch in kept)
    logs = list_logs(log_folder(out))
    return asked and not any(f"{SHARDS}/" in log or is_part(log) for log in logs)


def _open_tasks(tasks: Iterable[str], epochs: int, kept: Mapping[UnitKey, Kept]) -> list[str]:
    """Return the tasks with an epoch that is not finished."""
    finished = {key for key, one in kept.items() if one.finished}
    return [task for task in tasks if not finished.issuperset(unit_keys([task], epochs))]


def _merge(out: StorePath, manifest: RunManifest, spec: RunSpec, leased: Sequence[str]) -> None:
    """Merge all logs once every unit of the run is finished, if some of them are shards."""
    log = find_shards(out)
    kept = find_kept_units(log_folder(out))
    missing = [key for key in unit_keys(leased, spec.epochs) if key not in kept]
    if missing:
        raise RunError(
            f"All leases were evaluated, but {log_folder(out)} has no log of {len(missing)} "
            "units. A run on several machines needs an --out that all of them share."
        )
    wanted = unit_keys(manifest.spec.tasks, manifest.spec.epochs)
    if log is None or read_edited(out).superseded:
        return  # logs with results of earlier versions of the dataset are kept
    if all(key in kept and kept[key].finished for key in wanted):
        chosen = {key: kept[key].log for key in wanted}
        merge_shards(chosen, merged_log_path(out, log), shards_folder(out, log))


def _safe(out: StorePath, manifest: RunManifest) -> str:
    """Say what is safe and how to continue."""
    try:
        finished, full = count_finished(log_folder(out)), disk_full_hint(out)
    except (GtaError, OSError):
        return "Finished units are in the run's logs; run the same command again to continue."
    return (
        f"{finished} of {manifest.spec.units} units are finished and safe in {out}{full}; run the "
        "same command again to continue."
    )
