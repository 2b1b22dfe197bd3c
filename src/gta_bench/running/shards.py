"""A run over any backend: what is left of it in parts, watched, and merged to one log.

A run that no command ever cut into shards is one part, whose logs lie in the run's own folder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from gta_bench.errors import INTERRUPTED, GtaError, RunError, WorkFailed
from gta_bench.records.attempts import UnitKey
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.plan import Shard, ShardPlan, make_plan
from gta_bench.records.progress import Command, RunProgress
from gta_bench.records.run import RunManifest, RunSpec
from gta_bench.running.backends.backend import Backend, WorkFunction, told_of_system
from gta_bench.running.limits import RunLimits, limits_from
from gta_bench.runs.directory import log_folder
from gta_bench.runs.lock import locked
from gta_bench.runs.logs import Kept, finished_units, kept_units, log_files, restore_attempts
from gta_bench.runs.merge import (
    SHARDS,
    merge_shards,
    merged_log,
    read_plan,
    shards_folder,
    write_begun,
    write_plan,
)
from gta_bench.runs.progress import begin_progress, progress_folder, read_progress, spent_before
from gta_bench.runs.store import StorePath, full_words
from gta_bench.settings import Settings

Listener = Callable[[RunProgress], None]
# Seconds that a shard waits for an attempt of itself that is being ended elsewhere.
PATIENCE = 90.0


class RunPart(NamedTuple):
    """What one process evaluates of a run, and where it keeps its logs."""

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
    """Do the work on the units of `spec` that no log holds yet, which may be a part of the run.

    `work` is made for its share of the limits.
    """
    with locked(out):
        kept = kept_units(log_folder(out))
        restore_attempts(out, kept)
        whole = _is_whole(out, spec, kept)
        plan = _plan(out, spec, kept, backend, whole=whole)
        folder = progress_folder(out)
        command = _command(manifest, kept, backend, spent_before(folder))
        begin_progress(folder, command)
        limits = limits_from(settings.budget, command.started)
        parts = _parts(out, spec, plan, kept, command, limits, whole=whole)
        at_once = places_for(len(parts), settings, backend)
        tick = partial(tell_progress, folder, listener)
        tick()
        with told_with(partial(_safe, out, manifest)):
            backend.run(work(shared(settings, at_once)), parts, at_once=at_once, tick=tick)
            if plan is not None:
                _merge(out, manifest, plan)
        last = tick()
        if last.done < last.units:
            listener(limits.explain(last))


@contextmanager
def told_with(safe: Callable[[], str]) -> Iterator[None]:
    """Whatever ends the work inside the block is told with what is safe and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise WorkFailed(f"Interrupted. {safe()}", exit_code=INTERRUPTED) from None
    except OSError as exc:
        raise WorkFailed(f"{told_of_system(exc)} {safe()}", exit_code=3) from exc
    except WorkFailed as exc:
        raise WorkFailed(f"{exc} {safe()}", exit_code=exc.exit_code) from exc


def tell_progress(folder: StorePath, listener: Listener) -> RunProgress:
    """How far all shards are."""
    found = read_progress(folder)
    assert found is not None
    listener(found)
    return found


def places_for(parts: int, settings: Settings, backend: Backend) -> int:
    """How many parts run at once: none without a connection of its own."""
    return max(1, min(backend.places, parts, settings.budget.max_connections))


def shared(settings: Settings, at_once: int) -> Settings:
    """The settings of one of so many: connections are divided."""
    most = max(1, settings.budget.max_connections // at_once)
    budget = settings.budget.model_copy(update={"max_connections": most})
    return settings.model_copy(update={"budget": budget})


def _command(
    manifest: RunManifest, kept: Mapping[UnitKey, Kept], backend: Backend, before: Cost
) -> Command:
    """What this command sets out to do; money of attempts that failed stays spent."""
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
    """Whether the engine can go on in the run's own log.

    It drops from a log what it is not asked for. So what shards hold, and what a command for fewer
    tasks or epochs leaves alone, must stay in other logs than those that it goes on with.
    """
    named = {*spec.tasks}
    asked = all(task in named and epoch <= spec.epochs for task, epoch in kept)
    return asked and not any(f"{SHARDS}/" in log for log in log_files(log_folder(out)))


def _plan(
    out: StorePath, spec: RunSpec, kept: Mapping[UnitKey, Kept], backend: Backend, *, whole: bool
) -> ShardPlan | None:
    """The plan for what is open; None where nothing is, or where one part is enough for it."""
    open_tasks = _open_tasks(spec.tasks, spec.epochs, kept)
    plan = read_plan(out)
    if plan is not None and plan.epochs == spec.epochs:
        dealt = [task for shard in plan.shards for task in shard.tasks]
        # A log that was removed may have held tasks that were finished when the plan was made.
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
        _write_begun(out, plan, shard, kept)
    write_plan(out, plan)
    return plan


def _write_begun(
    out: StorePath, plan: ShardPlan, shard: Shard, kept: Mapping[UnitKey, Kept]
) -> None:
    """A shard whose tasks have finished epochs elsewhere begins with those."""
    units = [(task, epoch) for task in shard.tasks for epoch in range(1, plan.epochs + 1)]
    finished = {key: kept[key].log for key in units if key in kept and kept[key].finished}
    if finished:
        write_begun(finished, shards_folder(out, plan) / shard.name / f"{plan.log}.eval")


def _open_tasks(tasks: Iterable[str], epochs: int, kept: Mapping[UnitKey, Kept]) -> list[str]:
    """The tasks that have an epoch which is not finished."""
    return [
        task
        for task in tasks
        if any(
            (task, epoch) not in kept or not kept[task, epoch].finished
            for epoch in range(1, epochs + 1)
        )
    ]


def _parts(
    out: StorePath,
    spec: RunSpec,
    plan: ShardPlan | None,
    kept: Mapping[UnitKey, Kept],
    command: Command,
    limits: RunLimits,
    *,
    whole: bool,
) -> list[RunPart]:
    """What is left, a part for each shard that has something left."""
    folder = progress_folder(out)
    if plan is None:
        part = RunPart("", spec.tasks, log_folder(out), folder, command, limits)
        return [part] if whole else []
    return [
        RunPart(
            shard.name,
            shard.tasks,
            shards_folder(out, plan) / shard.name,
            folder,
            command,
            limits,
        )
        for shard in plan.shards
        if _open_tasks(shard.tasks, plan.epochs, kept)
    ]


def _merge(out: StorePath, manifest: RunManifest, plan: ShardPlan) -> None:
    """One log, once every unit of the run is finished; until then the shards are continued."""
    kept = kept_units(log_folder(out))
    dealt = [task for shard in plan.shards for task in shard.tasks]
    missing = [key for key in _units(dealt, plan.epochs) if key not in kept]
    if missing:
        raise RunError(
            f"All shards were evaluated, and {log_folder(out)} has no log of {len(missing)} "
            "units: a run on several machines needs a folder that all of them share."
        )
    wanted = _units(manifest.spec.tasks, manifest.spec.epochs)
    merged = not shards_folder(out, plan).is_dir()
    if not merged and all(key in kept and kept[key].finished for key in wanted):
        chosen = {key: kept[key].log for key in wanted}
        merge_shards(chosen, merged_log(out, plan), shards_folder(out, plan))


def _units(tasks: Iterable[str], epochs: int) -> list[UnitKey]:
    return [(task, epoch) for task in tasks for epoch in range(1, epochs + 1)]


def _safe(out: StorePath, manifest: RunManifest) -> str:
    """What is safe, and how to go on."""
    total = manifest.spec.units
    try:
        finished, full = finished_units(log_folder(out)), full_words(out)
    except (GtaError, OSError):
        return "Finished units are in the run's logs; give the same command again to go on."
    return (
        f"{finished} of {total} units are finished and safe in {out}{full}; the same command goes "
        "on with the rest."
    )
