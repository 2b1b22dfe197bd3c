"""Runs as a command would plan them, for tests that execute them in this process."""

from pathlib import Path
from typing import NamedTuple

from gta_bench.agents.models import NO_MODEL, ChosenModel
from gta_bench.datasets.selection import select_tasks
from gta_bench.harnesses.choice import Harness
from gta_bench.records.run import DEFAULT_TURNS, LoopLimits, RunManifest, RunMode, RunSpec
from gta_bench.running.system_run import Resources, describe_system, plan_run, read_dataset
from gta_bench.settings import Settings


class Planned(NamedTuple):
    """What `execute` takes first: the manifest, and what the run uses of this machine."""

    manifest: RunManifest
    resources: Resources


def planned(
    data: Path,
    mode: RunMode,
    *,
    model: ChosenModel = NO_MODEL,
    agent: str = "toolcalling",
    tasks: str | None = None,
    epochs: int = 1,
    max_turns: int = DEFAULT_TURNS,
    settings: Settings | None = None,
    harness: Harness | None = None,
) -> Planned:
    """A run on the dataset in `data`."""
    resources = Resources(data=data, settings=settings or Settings(), model=model, harness=harness)
    dataset = read_dataset("workflow" if mode == "workflow" else "atomic", data)
    spec = RunSpec(
        dataset="workflow" if mode == "workflow" else "atomic",
        mode=mode,
        system=describe_system(resources, agent, "path"),
        tasks=select_tasks(dataset.tasks, tasks),
        epochs=epochs,
        loop=LoopLimits(max_turns=max_turns),
        similarity="exact-or-half",
    )
    return Planned(plan_run(spec, resources, dataset), resources)
