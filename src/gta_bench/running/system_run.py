"""A run of one system on one dataset: its manifest, and the evaluation of its open units."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.model import Model

from gta_bench.agents import prompts as agent_prompts
from gta_bench.agents import published
from gta_bench.agents.catalog import DEFAULT_AGENT, NEED_REFERENCES, load_agent
from gta_bench.agents.generation import make_generate_config
from gta_bench.agents.models import NO_MODEL, ChosenModel, open_model
from gta_bench.agents.own import OwnAgent
from gta_bench.agents.provider import find_prefix
from gta_bench.confine.network import require_network
from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.canary import read_canaries
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import RunError, UsageError
from gta_bench.harnesses import prompts as harness_prompts
from gta_bench.harnesses.choice import Harness
from gta_bench.own_code import NoDigestError, digest_code
from gta_bench.packages import require_packages
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask
from gta_bench.records.run import (
    DatasetName,
    Generation,
    Images,
    RunManifest,
    RunSpec,
    System,
    state_run,
)
from gta_bench.redaction import protect
from gta_bench.running.backends.backend import INLINE, Backend
from gta_bench.running.budget import open_share
from gta_bench.running.evaluation import evaluate, package_versions
from gta_bench.running.shards import Listener, RunPart, limit_connections, run_units
from gta_bench.running.stopping import run_async
from gta_bench.runs.artefacts import ARTEFACTS
from gta_bench.runs.directory import log_folder, open_run, read_manifest
from gta_bench.runs.logs import read_data_path
from gta_bench.runs.requirements import read_edited
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import SERVER_PACKAGES, parse_tools
from gta_bench.serving.tool_servers import plan_service
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import load_similarity
from gta_bench.tape.controls import parse_controls
from gta_bench.tasks.context import Earlier, RunContext, open_workspaces
from gta_bench.tasks.run_tools import note_recording, open_tooling
from gta_bench.tools import prompts as tool_prompts


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run uses on this machine: where its data are, and how its model is reached.

    None of it defines what is measured, so none of it is in the manifest: a run that is continued
    on another machine is the same run.
    """

    data: Path
    settings: Settings
    model: ChosenModel = NO_MODEL
    tape: StorePath | None = None
    agent: OwnAgent | None = None
    harness: Harness | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether the system is a harness, not a model with one of our agents."""
        return self.harness is not None


def read_dataset(name: DatasetName, root: Path) -> Dataset:
    """Load the dataset from a folder."""
    return load_atomic(root) if name == "atomic" else load_workflow(root)


def describe_system(resources: Resources, agent: str, images: Images) -> System:
    """Return the system as the manifest names it."""
    model, harness = resources.model, resources.harness
    own: dict[str, Any]
    if resources.agent is not None:
        own = {"agent": resources.agent.name, "code": resources.agent.code}
    else:
        own = {"agent": agent, "code": _digest_agent(agent)}
    if harness is not None:
        from gta_bench.harnesses.exposure import hash_harness_files

        own = {
            "agent": "harness",
            "harness": harness.shown_target,
            "harness_version": harness.version,
            "harness_digest": hash_harness_files(harness),
        }
    generation = {name: getattr(model.settings, name) for name in Generation.model_fields}
    return System(model=model.name, images=images, **own, **generation)


def _digest_agent(agent: str) -> dict[str, str]:
    """Return the digests of an agent given as `pkg.mod:function`; none if it has no digest."""
    if ":" not in agent:
        return {}
    try:
        return digest_code(load_agent(agent), "agent")
    except NoDigestError:
        return {}


def plan_run(
    spec: RunSpec, resources: Resources, dataset: Dataset, *, out: StorePath | None = None
) -> RunManifest:
    """Return the manifest of a run that has not begun.

    Raises if the system cannot be run, or could see the answers.
    """
    from gta_bench.harnesses.exposure import check_exposure, list_shown_paths

    harness = resources.harness
    protect({} if harness is None else harness.secrets)
    _check_packages(spec, harness)
    folder = out if isinstance(out, Path) else None
    served = _list_served_paths(spec, resources.settings)
    check_exposure(harness, resources.settings, resources.data, out=folder, served=served)
    if harness is None:
        if spec.dataset == "workflow":
            from gta_bench.tasks.workflow import check_agent

            check_agent(spec.system.agent)
        if resources.agent is None:
            load_agent(spec.system.agent)
    parse_controls(spec.controls)
    if resources.model.settings.args:
        # Arguments that the provider does not accept are reported before anything is written.
        open_model(resources.model, resources.settings.budget)
    spec = _applicable(spec, resources)
    return RunManifest(
        created=datetime.now(UTC),
        spec=spec,
        dataset_digest=dataset_digest(dataset),
        dataset_tasks=len(dataset.tasks),
        prompts=_prompts(spec, resources),
        packages=package_versions() | _drivers(harness),
        notes=_notes(spec, resources),
        shown=() if harness is None else list_shown_paths(harness),
        canaries=read_canaries(dataset.root),
    )


def _list_served_paths(spec: RunSpec, settings: Settings) -> list[Path]:
    """Return what the tool servers of a run can read here; a replay starts none."""
    if spec.tape is not None and spec.tape.mode == "replay":
        return []
    used = {name: settings.tool_servers[name] for name in spec.server_pins}
    return [
        path
        for name, server in used.items()
        if server.command is not None
        for path in plan_service(name, server, Path()).readable
    ]


def execute(
    planned: RunManifest,
    resources: Resources,
    out: StorePath,
    listener: Listener,
    *,
    model: Model | None = None,
    earlier: Earlier | None = None,
    backend: Backend = INLINE,
) -> None:
    """Run the planned units that are not finished yet; a smaller run is extended.

    `model` replaces the model that the run names; it is used in this process only.
    """
    _check_backend(resources, backend)
    # Refuse another path before the run is extended by units that could then not be run.
    before, data = read_data_path(log_folder(out)), str(resources.data)
    if before not in (None, data) and not read_edited(out).dataset_digest:
        raise RunError(
            f"{out} was run with the data in {before} and cannot continue with {data}. Use "
            f"--data {before}, or choose another --out."
        )
    manifest = open_run(out, planned)
    # A different similarity would be a different scoring, so the logs keep the first one.
    if planned.spec.dataset == "atomic":
        load_similarity(manifest.spec.similarity)
    spec = planned.spec.model_copy(update={"similarity": manifest.spec.similarity})

    work = partial(_evaluate, spec, resources, out, earlier)
    if backend is INLINE:
        work = partial(_evaluate, spec, resources, out, earlier, model=model, listener=listener)
    sizes = None if backend is INLINE else _sizes(spec, resources)
    run_units(work, manifest, spec, out, resources.settings, listener, backend, sizes=sizes)
    note_recording(resources.tape, out, manifest)


def _sizes(spec: RunSpec, resources: Resources) -> dict[str, float]:
    """Return how long each task is, by what its author foresaw: steps, or checkpoints."""
    tasks = read_dataset(spec.dataset, resources.data).tasks
    return {
        name: 1.0 + len(task.steps if isinstance(task, AtomicTask) else [*task.leaves()])
        for name, task in tasks.items()
    }


def _evaluate(
    spec: RunSpec,
    resources: Resources,
    out: StorePath,
    earlier: Earlier | None,
    part: RunPart,
    *,
    model: Model | None = None,
    listener: Listener | None = None,
) -> None:
    """Evaluate a part of the run in this process."""
    from gta_bench.tasks.units import forget_datasets

    # The files may have changed since the last command, but not between two of its leases.
    forget_datasets(unless=part.command)
    stated = state_run(spec, read_manifest(out).dataset_digest)
    units, budget = len(part.tasks) * spec.epochs, resources.settings.budget
    with open_share(part.budget, part.name, budget, units=units) as share:
        own = replace(resources, settings=limit_connections(resources.settings, share.connections))
        task = _task(spec, own)
        asked = model or open_model(own.model, own.settings.budget)
        with _context(spec, own, out, earlier) as context:
            evaluate(
                task,
                part,
                context,
                epochs=spec.epochs,
                model=asked,
                listener=listener,
                stated=stated,
            )


@contextmanager
def _context(
    spec: RunSpec, resources: Resources, out: StorePath, earlier: Earlier | None
) -> Iterator[RunContext]:
    corrupted = spec.dataset == "atomic" and spec.controls
    references = load_atomic(resources.data).tasks.values() if corrupted else ()
    with open_tooling(spec, resources.tape, references) as tooling, open_workspaces(out) as files:
        yield RunContext(
            files=files,
            settings=resources.settings,
            spec=spec,
            run=out,
            tooling=tooling,
            artefacts=out / ARTEFACTS if spec.dataset == "workflow" else None,
            earlier=earlier,
            agent=resources.agent,
            harness=resources.harness,
        )


def _task(spec: RunSpec, resources: Resources) -> Task:
    """Return the Inspect task; a run imports nothing that only other kinds of runs need."""
    named: dict[str, Any] = {"data": str(resources.data)}
    if spec.dataset == "atomic":
        named["similarity"] = spec.similarity
    if resources.harness is not None:
        from gta_bench.tasks import harness

        if spec.dataset == "workflow":
            return harness.workflow_harness(**named)
        step = spec.mode == "step"
        return harness.atomic_step_harness(**named) if step else harness.atomic_harness(**named)
    named |= {"agent": spec.system.agent, "images": spec.system.images}
    if spec.mode == "step":
        from gta_bench.tasks.atomic import atomic_step

        return atomic_step(**named)
    # Inspect recognizes a task that it continues by its arguments; solvers read the spec.
    assert spec.loop is not None
    named["max_turns"] = spec.loop.max_turns
    if spec.dataset == "workflow":
        from gta_bench.tasks.workflow import workflow

        return workflow(**named)
    from gta_bench.tasks.atomic import atomic

    return atomic(**named)


def _check_packages(spec: RunSpec, harness: Harness | None) -> None:
    """Raise if the run, its judging or its scoring lacks a package, before anything costs money."""
    if harness is not None and harness.kind == "command":
        require_packages("--harness", *SERVER_PACKAGES, extra="serve")
    server = parse_tools(spec.tools)
    if server is not None and server.protocol == "mcp":
        require_packages("--tools mcp+http", *SERVER_PACKAGES, extra="serve")
    if spec.judges:
        require_packages("Judging", *EVIDENCE_PACKAGES, extra="workflow")
    if spec.dataset == "atomic":
        load_similarity(spec.similarity)


def _check_backend(resources: Resources, backend: Backend) -> None:
    """Raise now if this machine or the workers could not do the work."""
    if backend is INLINE:
        harness = resources.harness
        if harness is not None and harness.kind != "bridged" and harness.network == "open":
            run_async(require_network())
        return
    if resources.agent is not None:
        raise UsageError(
            f"Agent {resources.agent.name!r} is a function of this process: run it without workers "
            "or a cluster."
        )
    open_model(resources.model, resources.settings.budget)


def _applicable(spec: RunSpec, resources: Resources) -> RunSpec:
    """Add to the spec what its system defines, and remove what does not apply to it."""
    own: dict[str, Any] = {}
    if resources.harness is not None:
        own |= {"network": resources.harness.network, "limits": resources.harness.bounds}
    if resources.is_foreign or spec.mode == "step":
        own["loop"] = None
    if not resources.is_foreign and spec.system.agent == published.AGENT:
        own |= _wording(spec, resources.settings)
    return spec.model_copy(update=own)


def _wording(spec: RunSpec, settings: Settings) -> dict[str, Any]:
    """Return whose prompts the published protocol uses, and the sampling that belongs to them."""
    if published.find_published(Path(settings.data.prompts)) is None:
        return {"wording": "own"}
    system = spec.system
    unset = {
        name: value for name, value in published.SAMPLING.items() if getattr(system, name) is None
    }
    return {"wording": "published", "system": system.model_copy(update=unset)}


def _prompts(spec: RunSpec, resources: Resources) -> dict[str, str]:
    """Return the digests of the prompts that the run uses."""
    own = {"agents": agent_prompts.digests()}
    if resources.harness is not None:
        own = {"harnesses": harness_prompts.digests()}
    if spec.mode != "step":
        own["tools"] = tool_prompts.digests()
    found = {
        f"{room}/{name}": one for room, digests in own.items() for name, one in digests.items()
    }
    if spec.wording == "published":
        folder = Path(resources.settings.data.prompts)
        found |= published.read_published(folder).digests()
    return found


def _drivers(harness: Harness | None) -> dict[str, str]:
    """Return the package that drives a named harness, with its version."""
    if harness is None or harness.kind != "named":
        return {}
    from gta_bench.harnesses.named import DRIVER, read_driver_version

    return {DRIVER: read_driver_version()}


def _notes(spec: RunSpec, resources: Resources) -> tuple[str, ...]:
    if resources.harness is not None:
        return resources.harness.notes
    if spec.mode == "step" and spec.system.agent == DEFAULT_AGENT:
        model = resources.model
        prefix = find_prefix(model.name, make_generate_config(model.settings))
        return () if prefix is None else (prefix.note,)
    if spec.system.has_own_agent and not spec.system.code:
        return (f"The code of {spec.system.agent} has no digest: a change of it is not noticed.",)
    if spec.wording == "own":
        return (
            "react-upstream used our own prompts and the provider's default sampling. For the "
            f"published ones: {published.how_to_get()}.",
        )
    if spec.mode == "end-to-end" and spec.system.agent in NEED_REFERENCES:
        return (f"{PLACEHOLDER_IMAGE} stands for the newest image output of the task.",)
    return ()
