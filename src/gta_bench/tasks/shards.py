"""A run over any backend: what is left of it in parts, watched, and merged to one log.

A run that no command ever cut into shards is one part, whose logs lie in the run's own folder.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from gta_bench.cluster.backend import Backend, Work, told_of_system
from gta_bench.errors import GtaError, RunError, WorkFailed
from gta_bench.records.plan import ShardPlan, make_plan
from gta_bench.records.progress import Command, RunProgress
from gta_bench.records.run import RunManifest
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import Kept, finished_units, kept_units, log_files
from gta_bench.runs.merge import merge_shards, write_begun
from gta_bench.runs.plan import (
    SHARDS,
    locked,
    merged_log,
    read_plan,
    shards_folder,
    write_plan,
)
from gta_bench.runs.progress import begin_progress, progress_folder, read_progress, spent_before
from gta_bench.runs.store import StorePath, full_words
from gta_bench.runs.stored_samples import Key
from gta_bench.settings import Settings
from gta_bench.tasks.limits import Limits, limits_from

Listener = Callable[[RunProgress], None]
# Seconds that a shard waits for an attempt of itself that is being ended elsewhere.
PATIENCE = 90.0


class Part(NamedTuple):
    """What one process evaluates of a run, and where it keeps its logs."""

    name: str
    tasks: tuple[str, ...]
    logs: StorePath
    progress: StorePath
    command: Command
    limits: Limits


def run_units(
    work: Callable[[Settings], Work],
    manifest: RunManifest,
    out: StorePath,
    settings: Settings,
    listener: Listener,
    backend: Backend,
) -> None:
    """Do the work on all units that no log holds yet; `work` is made for its share of limits."""
    with locked(out):
        kept = kept_units(log_folder(out))
        plan = _plan(out, manifest, kept, backend)
        folder = progress_folder(out)
        command = _command(manifest, kept, backend, spent_before(folder))
        begin_progress(folder, command)
        limits = limits_from(settings.budget, command.started)
        parts = _parts(out, manifest, plan, kept, command, limits)
        at_once = places_for(len(parts), settings, backend)
        tick = partial(tell_progress, folder, listener)
        tick()
        with told_with(partial(_safe, out, manifest)):
            backend.run(work(shared(settings, at_once)), parts, at_once=at_once, tick=tick)
            if plan is not None:
                _merge(out, manifest, plan)
        last = tick()
        if last.done < last.units:
            stopped = limits.reached(last.cost_usd)
            listener(last.model_copy(update={"stopped": stopped}))


@contextmanager
def told_with(safe: Callable[[], str]) -> Iterator[None]:
    """Whatever ends the work inside the block is told with what is safe and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise WorkFailed(f"Interrupted. {safe()}") from None
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
    manifest: RunManifest, kept: Mapping[Key, Kept], backend: Backend, before: float | None
) -> Command:
    """What this command sets out to do; money of attempts that failed stays spent."""
    costs = [one.cost_usd for one in kept.values() if one.cost_usd is not None]
    spent = (sum(costs) if costs else None, before)
    return Command(
        started=datetime.now(UTC),
        units=len(manifest.tasks) * manifest.epochs,
        finished=sum(one.finished for one in kept.values()),
        spent_usd=max((one for one in spent if one is not None), default=None),
        backend=backend.name,
        places=backend.places,
    )


def _plan(
    out: StorePath, manifest: RunManifest, kept: Mapping[Key, Kept], backend: Backend
) -> ShardPlan | None:
    """The run's plan; a new one where a run of one part is continued by many."""
    plan = read_plan(out)
    open_tasks = [task for task in manifest.tasks if _open_epochs(task, manifest.epochs, kept)]
    left_over = any(f"{SHARDS}/" in log for log in log_files(log_folder(out)))
    if plan is None:
        if backend.places == 1 and not left_over:
            return None
    # A log that was removed may have held tasks that were finished when the plan was made.
    elif {task for shard in plan.shards for task in shard.tasks} >= {*open_tasks}:
        return plan
    if not open_tasks:
        return None
    begun = [
        task
        for task in open_tasks
        if len(_open_epochs(task, manifest.epochs, kept)) < manifest.epochs
    ]
    created = datetime.now(UTC)
    stamp = f"{created:%Y-%m-%dT%H-%M-%S}-00-00"
    name = "workflow" if manifest.mode == "workflow" else f"atomic-{manifest.mode}"
    plan = make_plan(
        [task for task in open_tasks if task not in {*begun}],
        begun=begun,
        epochs=manifest.epochs,
        places=backend.places,
        log=f"{stamp}_{name}_{uuid4().hex[:22]}",
        created=created,
    )
    if begun:
        first = shards_folder(out, plan) / plan.shards[0].name
        finished = {key: one.log for key, one in kept.items() if key[0] in begun and one.finished}
        write_begun(finished, first / f"{plan.log}.eval")
    write_plan(out, plan)
    return plan


def _open_epochs(task: str, epochs: int, kept: Mapping[Key, Kept]) -> list[int]:
    return [
        epoch
        for epoch in range(1, epochs + 1)
        if (task, epoch) not in kept or not kept[task, epoch].finished
    ]


def _parts(
    out: StorePath,
    manifest: RunManifest,
    plan: ShardPlan | None,
    kept: Mapping[Key, Kept],
    command: Command,
    limits: Limits,
) -> list[Part]:
    """What is left, a part for each shard that has something left."""
    folder = progress_folder(out)
    if plan is None:
        return [Part("", manifest.tasks, log_folder(out), folder, command, limits)]
    return [
        Part(
            shard.name,
            shard.tasks,
            shards_folder(out, plan) / shard.name,
            folder,
            command,
            limits,
        )
        for shard in plan.shards
        if any(_open_epochs(task, manifest.epochs, kept) for task in shard.tasks)
    ]


def _merge(out: StorePath, manifest: RunManifest, plan: ShardPlan) -> None:
    """One log, once every unit is finished; until then the shards are continued."""
    kept = kept_units(log_folder(out))
    wanted = [(task, epoch) for task in manifest.tasks for epoch in range(1, plan.epochs + 1)]
    missing = [key for key in wanted if key not in kept]
    if missing:
        raise RunError(
            f"All shards were evaluated, and {log_folder(out)} has no log of {len(missing)} "
            "units: a run on several machines needs a folder that all of them share."
        )
    merged = not shards_folder(out, plan).is_dir()
    if not merged and all(kept[key].finished for key in wanted):
        merge_shards(
            {key: kept[key].log for key in wanted}, merged_log(out, plan), shards_folder(out, plan)
        )


def _safe(out: StorePath, manifest: RunManifest) -> str:
    """What is safe, and how to go on."""
    total = len(manifest.tasks) * manifest.epochs
    try:
        finished, full = finished_units(log_folder(out)), full_words(out)
    except (GtaError, OSError):
        return "Finished units are in the run's logs; give the same command again to go on."
    return (
        f"{finished} of {total} units are finished and safe in {out}{full}; the same command goes "
        "on with the rest."
    )
