"""A run over any backend: its open units are split into parts, watched, and merged into one log.

A run that was never split into shards is one part, with its logs in the run's own folder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from gta_bench.errors import INTERRUPTED, GtaError, RunError, WorkFailed
from gta_bench.records.attempts import UnitKey
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.plan import ShardPlan, make_plan
from gta_bench.records.progress import Command, RunProgress
from gta_bench.records.run import RunManifest, RunSpec
from gta_bench.running.backends.backend import Backend, WorkFunction, explain_os_error
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
    merge_shards,
    merged_log_path,
    read_plan,
    shards_folder,
    write_partial_log,
    write_plan,
)
from gta_bench.runs.store import StorePath, disk_full_hint, lock_folder
from gta_bench.settings import Settings

Listener = Callable[[RunProgress], None]
# Seconds that a shard waits for another attempt at it that is ending elsewhere.
PATIENCE = 90.0


class RunLimits(NamedTuple):
    """When no more units start: at a time, or once so much was spent."""

    deadline: datetime | None = None
    cost_usd: float | None = None

    def find_reached(self, spent_usd: float | None) -> str | None:
        """Describe the limit that is reached, if any; `spent_usd` is the known part."""
        if self.deadline is not None and datetime.now(UTC) >= self.deadline:
            return "The command has used up its time (budget.hours)"
        if self.cost_usd is not None and (spent_usd or 0.0) >= self.cost_usd:
            return f"The run has spent its budget of ${self.cost_usd:g} (budget.cost_usd)"
        return None

    def explain(self, progress: RunProgress) -> RunProgress:
        """Add the limit that stopped the run, if one did, and what the rest would cost."""
        stopped = self.find_reached(progress.known_usd)
        needed = None
        spent, most = progress.known_usd or 0.0, self.cost_usd
        if most is not None and spent >= most:
            needed = spent * progress.units / progress.done if progress.done else 2 * most
        return progress.model_copy(update={"stopped": stopped, "needed_usd": needed})


class RunPart(NamedTuple):
    """What one process evaluates of a run, and where it writes its logs."""

    name: str
    tasks: tuple[str, ...]
    logs: StorePath
    progress: StorePath
    command: Command
    limits: RunLimits


def run_units(
    work: Callable[[Settings], WorkFunction],
    manifest: RunManifest,
    spec: RunSpec,
    out: StorePath,
    settings: Settings,
    listener: Listener,
    backend: Backend,
) -> None:
    """Run the units of `spec` that no log contains yet; `spec` may be a part of the run.

    `work` is called with the settings of one part, which has its share of the connections.
    """
    with lock_folder(out):
        kept = find_kept_units(log_folder(out))
        restore_attempts(out, kept)
        whole = _is_whole(out, spec, kept)
        plan = _plan(out, spec, kept, backend, whole=whole)
        folder = progress_folder(out)
        command = _command(manifest, kept, backend, read_spent(folder))
        begin_progress(folder, command)
        hours = settings.budget.hours
        deadline = None if hours is None else command.started + timedelta(hours=hours)
        limits = RunLimits(deadline, settings.budget.cost_usd)
        own = (
            []
            if plan is None
            else [
                (shard.name, shard.tasks, shards_folder(out, plan) / shard.name)
                for shard in plan.shards
                if _open_tasks(shard.tasks, plan.epochs, kept)
            ]
        )
        if plan is None and whole:
            own = [("", spec.tasks, log_folder(out))]
        parts = [RunPart(*part, folder, command, limits) for part in own]
        at_once = count_parallel(len(parts), settings, backend)
        tick = partial(report_progress, folder, listener)
        tick()
        with explain_failure(partial(_safe, out, manifest)):
            backend.run(
                work(divide_connections(settings, at_once)), parts, at_once=at_once, tick=tick
            )
            if plan is not None:
                _merge(out, manifest, plan)
        last = tick()
        if last.done < last.units:
            listener(limits.explain(last))


@contextmanager
def explain_failure(safe: Callable[[], str]) -> Iterator[None]:
    """Add what is safe and how to continue to any failure that ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        raise WorkFailed(f"Interrupted. {safe()}", exit_code=INTERRUPTED) from None
    except OSError as exc:
        raise WorkFailed(f"{explain_os_error(exc)} {safe()}", exit_code=3) from exc
    except WorkFailed as exc:
        raise WorkFailed(f"{exc} {safe()}", exit_code=exc.exit_code) from exc


def report_progress(folder: StorePath, listener: Listener) -> RunProgress:
    """Read the progress of all shards, pass it to the listener, and return it."""
    found = read_progress(folder)
    assert found is not None
    listener(found)
    return found


def count_parallel(parts: int, settings: Settings, backend: Backend) -> int:
    """Return how many parts run at once; each needs a connection of its own."""
    return max(1, min(backend.places, parts, settings.budget.max_connections))


def divide_connections(settings: Settings, at_once: int) -> Settings:
    """Divide the connections in the settings among so many parts."""
    most = max(1, settings.budget.max_connections // at_once)
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
    for fewer tasks or epochs leaves alone, must stay in other logs than those it continues.
    """
    named = {*spec.tasks}
    asked = all(task in named and epoch <= spec.epochs for task, epoch in kept)
    return asked and not any(f"{SHARDS}/" in log for log in list_logs(log_folder(out)))


def _plan(
    out: StorePath, spec: RunSpec, kept: Mapping[UnitKey, Kept], backend: Backend, *, whole: bool
) -> ShardPlan | None:
    """Return the plan for the open units; None if there are none or one part is enough."""
    open_tasks = _open_tasks(spec.tasks, spec.epochs, kept)
    plan = read_plan(out)
    if plan is not None and plan.epochs == spec.epochs:
        dealt = [task for shard in plan.shards for task in shard.tasks]
        # A removed log may have contained tasks that were finished when the plan was made.
        if {*_open_tasks(dealt, plan.epochs, kept)} == {*open_tasks}:
            return plan
    if not open_tasks or (whole and backend.places == 1):
        return None
    created = datetime.now(UTC)
    stamp = f"{created:%Y-%m-%dT%H-%M-%S}-00-00"
    name = "workflow" if spec.mode == "workflow" else f"atomic-{spec.mode}"
    plan = make_plan(
        open_tasks,
        epochs=spec.epochs,
        places=backend.places,
        log=f"{stamp}_{name}_{uuid4().hex[:22]}",
        created=created,
    )
    for shard in plan.shards:
        # A shard whose tasks have finished epochs in other logs begins with those.
        units = unit_keys(shard.tasks, plan.epochs)
        finished = {key: kept[key].log for key in units if key in kept and kept[key].finished}
        if finished:
            write_partial_log(finished, shards_folder(out, plan) / shard.name / f"{plan.log}.eval")
    write_plan(out, plan)
    return plan


def _open_tasks(tasks: Iterable[str], epochs: int, kept: Mapping[UnitKey, Kept]) -> list[str]:
    """Return the tasks with an epoch that is not finished."""
    finished = {key for key, one in kept.items() if one.finished}
    return [task for task in tasks if not finished.issuperset(unit_keys([task], epochs))]


def _merge(out: StorePath, manifest: RunManifest, plan: ShardPlan) -> None:
    """Merge all logs once every unit of the run is finished; until then shards are continued."""
    kept = find_kept_units(log_folder(out))
    dealt = [task for shard in plan.shards for task in shard.tasks]
    missing = [key for key in unit_keys(dealt, plan.epochs) if key not in kept]
    if missing:
        raise RunError(
            f"All shards were evaluated, but {log_folder(out)} has no log of {len(missing)} "
            "units. A run on several machines needs an --out that all of them share."
        )
    wanted = unit_keys(manifest.spec.tasks, manifest.spec.epochs)
    merged = not shards_folder(out, plan).is_dir()
    if not merged and all(key in kept and kept[key].finished for key in wanted):
        chosen = {key: kept[key].log for key in wanted}
        merge_shards(chosen, merged_log_path(out, plan), shards_folder(out, plan))


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
