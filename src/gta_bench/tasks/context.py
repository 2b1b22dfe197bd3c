"""What holds for an evaluation in this process, beside the arguments of its task.

Paths and settings among a task's arguments would make a moved run another run.
"""

import atexit
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inspect_ai.model import Model

from gta_bench.agents.published import PublishedTexts, read_published
from gta_bench.confine.files import remove_tree
from gta_bench.datasets.installed import dataset_root
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.exposure import check_exposure
from gta_bench.judging.spending import Spending
from gta_bench.records.cost import Cost
from gta_bench.records.run import DatasetName, LoopLimits, RunSpec
from gta_bench.records.tape import TapeMode
from gta_bench.records.units import StopKind, WorkflowUnit
from gta_bench.redaction import protect
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import FILES
from gta_bench.runs.log_layout import redact_logs
from gta_bench.runs.samples import UnitData
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL
from gta_bench.settings import Settings, read_secrets, read_settings
from gta_bench.tape.controls import Controls
from gta_bench.tape.storage import Tape

if TYPE_CHECKING:
    # A replay needs no tool at all, and evidence imports those that render.
    from gta_bench.judging.run_evidence import EvidenceSource


class Taping(NamedTuple):
    """A tape that is open, and what is done with it."""

    tape: Tape
    mode: TapeMode
    dataset: DatasetName


class OpenTooling(NamedTuple):
    """Whose tools they are (`local`, or a server's address), the tape before them, the controls."""

    server: str = LOCAL
    taping: Taping | None = None
    controls: Controls | None = None


LOCAL_TOOLS = OpenTooling()
# Where a sample notes why a judge gave no score to a leaf of its unit.
UNSCORED = "gta_unscored"


@dataclass(frozen=True)
class Earlier:
    """The round before: its workspaces, what its units left, and the words that go back.

    A unit without words has nothing to mend and is carried over as it is.
    """

    files: Path
    units: Mapping[tuple[str, int], UnitData]
    words: Mapping[tuple[str, int], str]


class SampleOutcome(NamedTuple):
    """How a sample ended: finished, failed, or neither where it did not begin or was interrupted.

    `cause` is why it failed, or why a judge gave no score; `stops` is how replies of a finished one
    ended that did not end in the ordinary way.
    """

    finished: bool = False
    failed: bool = False
    cause: str | None = None
    stops: tuple[StopKind, ...] = ()


class Watcher(Protocol):
    """Is told about every sample of an evaluation."""

    def began(self) -> None:
        """A sample began."""

    def ended(self, key: tuple[str, int], cost: Cost, how: SampleOutcome) -> None:
        """A sample ended."""


class Material(NamedTuple):
    """The units of a run that a judge is asked about, and where their evidence comes from."""

    run: StorePath
    units: dict[str, WorkflowUnit]
    evidence: "EvidenceSource"


@dataclass(frozen=True)
class RunContext:
    """Everything that an evaluation needs beside the arguments of its Inspect task.

    `spec` is what the run measures, `run` its folder, where attempts are noted.
    `artefacts` keeps deliverables for good. `earlier` is the run
    that this one is a later round of, with what goes back to the system. `harness` is
    the foreign system that is measured, if one is. `spending` bounds what a judge may cost.
    `limit_reached` names the limit of the run that is reached, so that no more units begin.
    `watcher` is told about samples. The connections of `models` are closed when the evaluation
    ends. `material` is what a judge is asked about. `closing` ends what was opened on the way.
    """

    files: Path
    settings: Settings
    spec: RunSpec | None = None
    run: StorePath | None = None
    tooling: OpenTooling = LOCAL_TOOLS
    artefacts: StorePath | None = None
    earlier: Earlier | None = None
    harness: Harness | None = None
    spending: Spending | None = None
    limit_reached: Callable[[], str | None] | None = None
    watcher: Watcher | None = None
    models: tuple[Model, ...] = ()
    material: Material | None = None
    closing: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)


# Inspect creates solvers and scorers by name and hooks once per process, so they cannot be given
# the context. It runs them in tasks that inherit the context variables of whoever called `eval`.
_current: ContextVar[RunContext | None] = ContextVar("gta_run_context", default=None)


@contextmanager
def run_context(context: RunContext) -> Iterator[None]:
    """What is evaluated inside the block uses that context."""
    protect(_secrets(context))
    redact_logs()
    token = _current.set(context)
    try:
        with context.closing:
            yield
    finally:
        _current.reset(token)


def _secrets(context: RunContext) -> dict[str, str]:
    """What this process must not write: a worker learns it here."""
    found = read_secrets(context.settings)
    if context.harness is not None:
        found |= context.harness.secrets
    return found


def current_context() -> RunContext | None:
    """The context of the run; None where Inspect runs the task itself."""
    return _current.get()


def at_end(work: Callable[[], None]) -> None:
    """Do it when the run ends; when the process does where Inspect runs the task itself."""
    context = current_context()
    if context is None:
        atexit.register(work)
    else:
        context.closing.callback(work)


@contextmanager
def workspaces(run: StorePath) -> Iterator[Path]:
    """Where a run's units work: in its folder, and for a run in a store on this machine meanwhile.

    What counts of a workspace is kept by content, in the run.
    """
    if isinstance(run, Path):
        yield run / FILES
        return
    folder = Path(tempfile.mkdtemp(prefix="gta-files-"))
    try:
        yield folder
    finally:
        remove_tree(folder)


def current_settings() -> Settings:
    """The settings of the run, or those of this folder where Inspect runs the task itself."""
    context = current_context()
    return read_settings().settings if context is None else context.settings


def hidden_dataset(folder: str) -> str:
    """Where a dataset lies, also for `inspect eval`; refused where a jail would show it."""
    root = dataset_root(folder)
    check_exposure(None, current_settings(), root)
    return str(root)


def current_published() -> PublishedTexts | None:
    """The published words for the run's agent; None where it uses our own."""
    context = current_context()
    if context is None or context.spec is None or context.spec.wording != "published":
        return None
    return read_published(Path(context.settings.data.prompts))


def current_spending() -> Spending:
    """What judging may still cost."""
    context = current_context()
    kept = None if context is None else context.spending
    return kept or Spending(current_settings().budget)


def current_tooling() -> OpenTooling:
    """What stands between the run's units and their tools."""
    context = current_context()
    return LOCAL_TOOLS if context is None else context.tooling


def current_loop_limits(max_turns: int) -> LoopLimits:
    """The limits of the run; those of the task's arguments where Inspect runs the task itself."""
    context = current_context()
    spec = None if context is None else context.spec
    return LoopLimits(max_turns=max_turns) if spec is None or spec.loop is None else spec.loop


def workspace_folder(task: str, epoch: int) -> Path:
    """The folder of one unit's workspace; a temporary one where no run holds it."""
    context = current_context()
    base = Path(tempfile.mkdtemp(prefix="gta-files-")) if context is None else context.files
    return unit_folder(base, task, epoch)


def unit_folder(base: Path, task: str, epoch: int) -> Path:
    """The folder of one unit below that of all."""
    return base / task if epoch == 1 else base / f"{task}.{epoch}"


def artefact_store() -> ArtefactStore:
    """Where deliverables are kept; a temporary folder where no run holds it."""
    context = current_context()
    kept = None if context is None else context.artefacts
    return ArtefactStore(kept or _temporary_artefacts())


def earlier_round() -> Earlier | None:
    """The round before, where this is a later one."""
    context = current_context()
    return None if context is None else context.earlier


def current_harness() -> Harness:
    """The foreign system that is measured."""
    context = current_context()
    if context is None or context.harness is None:
        raise UsageError("A harness is run by `gta run … --harness`, not by `inspect eval` alone.")
    return context.harness


@cache
def _temporary_artefacts() -> Path:
    return Path(tempfile.mkdtemp(prefix="gta-run-")) / ARTEFACTS
