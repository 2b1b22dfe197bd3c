"""A run of GTA-Atomic: its manifest, the evaluation, and its units read back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import Model

from gta_bench.agents import prompts as agent_prompts
from gta_bench.agents.catalog import NEED_REFERENCES, load_agent
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import RunError, UsageError
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.run import Images, Mode, RunManifest, System
from gta_bench.records.tape import TapeMode
from gta_bench.runs.directory import files_folder, log_folder, open_run, write_manifest
from gta_bench.runs.logs import ReadUnits, finished_units, read_units
from gta_bench.settings import Settings
from gta_bench.tape.controls import Controls, parse_controls
from gta_bench.tape.corruption import OtherReplies
from gta_bench.tape.storage import Tape, recorded_use, tape_use
from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.atomic_step import atomic_step
from gta_bench.tasks.context import RunContext, Taping, run_context
from gta_bench.tasks.models import ChosenModel, open_model
from gta_bench.tools import prompts as tool_prompts

Listener = Callable[[bool], None]
PACKAGES = ("gta-bench", "inspect_ai", "pydantic")


@dataclass(frozen=True)
class AtomicRun:
    """What to run: one system on a selection of GTA-Atomic's tasks."""

    data: Path
    mode: Mode
    model: ChosenModel
    agent: str
    images: Images
    tasks: str | None
    epochs: int
    settings: Settings
    similarity: str
    max_turns: int = MAX_TURNS
    tape: Path | None = None
    tape_mode: TapeMode = "replay"
    controls: tuple[str, ...] = ()
    control_seed: int = 0


def select_tasks(dataset: AtomicDataset, selection: str | None) -> tuple[str, ...]:
    """Ids by a range of positions (`0:10`) or a list of ids (`3,5,7`); all where None."""
    ids = tuple(dataset.tasks)
    if selection is None:
        return ids
    start, colon, stop = selection.partition(":")
    if colon:
        if not all(part == "" or part.isdecimal() for part in (start, stop)):
            raise UsageError(f"--tasks {selection!r} is no range; write it as 0:10.")
        chosen = ids[int(start or 0) : int(stop) if stop else None]
    else:
        chosen = tuple(part.strip() for part in selection.split(","))
        unknown = [task for task in chosen if task not in dataset.tasks]
        if unknown:
            raise UsageError(f"--tasks names {unknown[0]!r}, which the dataset does not have.")
    if not chosen:
        raise UsageError(f"--tasks {selection!r} selects nothing.")
    return chosen


def plan(run: AtomicRun) -> RunManifest:
    """The manifest of a run that has not begun."""
    load_agent(run.agent)
    parse_controls(run.controls)
    dataset = load_atomic(run.data)
    settings = run.model.settings
    return RunManifest(
        created=datetime.now(UTC),
        dataset="atomic",
        dataset_digest=dataset_digest(dataset),
        mode=run.mode,
        system=System(
            model=run.model.name,
            agent=run.agent,
            images=run.images,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            seed=settings.seed,
        ),
        tasks=select_tasks(dataset, run.tasks),
        epochs=run.epochs,
        prompts=_prompts(run.mode),
        packages={name: version(name) for name in PACKAGES},
        similarity=run.similarity,
        tape=None if run.tape is None else tape_use(run.tape, run.tape_mode),
        controls=run.controls,
        control_seed=run.control_seed,
        notes=_notes(run),
    )


def _prompts(mode: Mode) -> dict[str, str]:
    """The digests of every prompt that can play a part; tools have theirs."""
    agents = {f"agents/{name}": digest for name, digest in agent_prompts.digests().items()}
    if mode == "step":
        return agents
    return agents | {f"tools/{name}": digest for name, digest in tool_prompts.digests().items()}


def _notes(run: AtomicRun) -> tuple[str, ...]:
    if run.mode == "end-to-end" and run.agent in NEED_REFERENCES:
        return (f"{PLACEHOLDER_IMAGE} stands for the newest image output of the task.",)
    return ()


def finished(out: Path) -> int:
    """How many units of a run need not be run again."""
    return finished_units(log_folder(out))


def execute(
    run: AtomicRun,
    planned: RunManifest,
    out: Path,
    listener: Listener,
    *,
    model: Model | None = None,
) -> ReadUnits:
    """Run what is not finished yet of what was planned, then read every unit back.

    `model` is asked instead of opening the one that the run names.
    """
    manifest = open_run(out, planned)
    asked = model or open_model(run.model, run.settings.budget)
    # Inspect prints a banner on stdout about hooks that are there when the first model is made.
    from gta_bench.tasks.progress import sample_progress

    with sample_progress(listener), _context(run, out) as context, run_context(context):
        try:
            eval_set(
                _task(run, manifest.similarity),
                log_dir=str(log_folder(out)),
                model=asked,
                sample_id=list(manifest.tasks),
                epochs=manifest.epochs,
                display="none",
                log_buffer=1,
                log_realtime=False,
                log_images=False,
                retry_attempts=1,
                fail_on_error=True,
                continue_on_fail=True,
                max_samples=run.settings.budget.max_connections,
                ctl_server=False,
                score_display=False,
                log_level="error",
            )
        except PrerequisiteError as exc:
            raise RunError(
                f"{out} cannot be continued: its logs were made by another command "
                "(another --data path, or another version); name another --out."
            ) from exc
    if run.tape is not None and run.tape_mode == "record":
        write_manifest(out, manifest.model_copy(update={"tape": recorded_use(run.tape)}))
    return read_units(log_folder(out), manifest.tasks, manifest.epochs)


@contextmanager
def _context(run: AtomicRun, out: Path) -> Iterator[RunContext]:
    """What samples need beside the task's arguments; the tape is closed at the end."""
    controls = None
    if run.controls:
        others = OtherReplies(load_atomic(run.data).tasks.values())
        controls = Controls(parse_controls(run.controls), run.control_seed, others)
    context = RunContext(files=files_folder(out), settings=run.settings, controls=controls)
    if run.tape is None:
        yield context
        return
    if run.tape_mode == "record":
        tape = Tape.record(run.tape, dataset="atomic", origin="live")
    else:
        tape = Tape.open(run.tape)
    try:
        yield replace(context, taping=Taping(tape, run.tape_mode))
    finally:
        tape.close()


def _task(run: AtomicRun, similarity: str) -> Task:
    """The Inspect task; another similarity is another scoring, so the logs keep the first one."""
    data = str(run.data)
    if run.mode == "step":
        return atomic_step(data=data, agent=run.agent, images=run.images, similarity=similarity)
    return atomic(
        data=data,
        agent=run.agent,
        images=run.images,
        similarity=similarity,
        max_turns=run.max_turns,
    )
