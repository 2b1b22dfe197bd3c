"""The context of an evaluation in this process, in addition to the arguments of its task.

Paths and settings are not arguments of the task, because a moved run would then be another run.
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

from gta_bench.agents.catalog import load_agent
from gta_bench.agents.contract import AgentFactory, Decide, Setup
from gta_bench.agents.own import OwnAgent
from gta_bench.agents.published import PublishedTexts, read_published
from gta_bench.confine.files import remove_tree
from gta_bench.datasets.installed import dataset_root
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.exposure import check_exposure
from gta_bench.judging.spending import Spending
from gta_bench.records.cost import Cost
from gta_bench.records.run import OWN_AGENT, DatasetName, LoopLimits, RunSpec
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
    # A replay needs no tools, and evidence imports those that render files.
    from gta_bench.judging.run_evidence import EvidenceSource


class Taping(NamedTuple):
    """An open tape, and whether it is recorded or replayed."""

    tape: Tape
    mode: TapeMode
    dataset: DatasetName


class OpenTooling(NamedTuple):
    """The source of tools (`local`, or a server's address), the tape, and the controls.

    `servers` are the tool servers whose tools every task gets.
    """

    server: str = LOCAL
    taping: Taping | None = None
    controls: Controls | None = None
    servers: tuple[str, ...] = ()


LOCAL_TOOLS = OpenTooling()
# The key under which a sample notes why a judge gave no score to a leaf.
UNSCORED = "gta_unscored"


@dataclass(frozen=True)
class Earlier:
    """The previous round: its workspaces, the data of its units, and the feedback by unit.

    A unit without feedback (`words`) has nothing to fix and is carried over unchanged.
    """

    files: Path
    units: Mapping[tuple[str, int], UnitData]
    words: Mapping[tuple[str, int], str]


class SampleOutcome(NamedTuple):
    """How a sample ended: finished, failed, or neither if it did not begin or was interrupted.

    `cause` is why it failed, or why a judge gave no score. `stops` says how replies of a finished
    sample ended that did not end normally.
    """

    finished: bool = False
    failed: bool = False
    cause: str | None = None
    stops: tuple[StopKind, ...] = ()


class Watcher(Protocol):
    """Gets a call for every sample that begins or ends."""

    def began(self) -> None:
        """Note that a sample began."""

    def ended(self, key: tuple[str, int], cost: Cost, how: SampleOutcome) -> None:
        """Note that a sample ended."""


class Material(NamedTuple):
    """The units of a run for a judge, and the source of their evidence."""

    run: StorePath
    units: dict[str, WorkflowUnit]
    evidence: "EvidenceSource"


@dataclass(frozen=True)
class RunContext:
    """Everything that an evaluation needs in addition to the arguments of its Inspect task.

    `spec` is what the run measures, and `run` is its folder, where attempts are recorded.
    `artefacts` stores deliverables permanently. `earlier` is the previous round of this run, with
    the feedback to the system. `agent` is a user's own agent and `harness` the measured foreign
    system, if any. `spending` limits the cost of judging. `watcher` gets the progress of samples.
    The connections of `models` are closed when the evaluation ends. `material` is what a judge
    scores. `closing` closes what was opened later.
    """

    files: Path
    settings: Settings
    spec: RunSpec | None = None
    run: StorePath | None = None
    tooling: OpenTooling = LOCAL_TOOLS
    artefacts: StorePath | None = None
    earlier: Earlier | None = None
    agent: OwnAgent | None = None
    harness: Harness | None = None
    spending: Spending | None = None
    watcher: Watcher | None = None
    models: tuple[Model, ...] = ()
    material: Material | None = None
    closing: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)


# Inspect creates solvers and scorers by name, and hooks once per process, so the context cannot be
# an argument. It runs them in tasks that inherit the context variables of the caller of `eval`.
_current: ContextVar[RunContext | None] = ContextVar("gta_run_context", default=None)


@contextmanager
def run_context(context: RunContext) -> Iterator[None]:
    """Use that context for evaluations inside the block."""
    # A worker process learns here what it must not write.
    harness = {} if context.harness is None else context.harness.secrets
    protect(read_secrets(context.settings) | harness)
    redact_logs()
    token = _current.set(context)
    try:
        with context.closing:
            yield
    finally:
        _current.reset(token)


def current_context() -> RunContext | None:
    """Return the context of the run; None if Inspect runs the task itself."""
    return _current.get()


def at_end(work: Callable[[], None]) -> None:
    """Call `work` when the run ends, or at process exit if Inspect runs the task itself."""
    context = current_context()
    if context is None:
        atexit.register(work)
    else:
        context.closing.callback(work)


@contextmanager
def open_workspaces(run: StorePath) -> Iterator[Path]:
    """Yield the folder for a run's workspaces: in the run, or temporary for a run in a store.

    The run stores the important files of a workspace by content.
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
    """Return the settings of the run, or of this folder if Inspect runs the task itself."""
    context = current_context()
    return read_settings().settings if context is None else context.settings


def locate_dataset(folder: str) -> str:
    """Return the path of a dataset; refuses one that a jail would show to the agent."""
    root = dataset_root(folder, current_settings().datasets)
    check_exposure(None, current_settings(), root)
    return str(root)


def find_agent(name: str) -> AgentFactory:
    """Return the factory of an agent; a function is taken from the run when a unit begins."""
    if not name.startswith(OWN_AGENT):
        return load_agent(name)

    def create(setup: Setup) -> Decide:
        context = current_context()
        own = None if context is None else context.agent
        return load_agent(name)(setup) if own is None else own.factory(setup)

    return create


def current_published() -> PublishedTexts | None:
    """Return the published prompts if the run's agent uses them."""
    context = current_context()
    if context is None or context.spec is None or context.spec.wording != "published":
        return None
    return read_published(Path(context.settings.data.prompts))


def current_spending() -> Spending:
    """Return the remaining budget for judging."""
    context = current_context()
    kept = None if context is None else context.spending
    return kept or Spending(current_settings().budget)


def current_tooling() -> OpenTooling:
    """Return the tooling of the run; local tools if Inspect runs the task itself."""
    context = current_context()
    return LOCAL_TOOLS if context is None else context.tooling


def current_loop_limits(max_turns: int) -> LoopLimits:
    """Return the limits of the run, or of the task's arguments if Inspect runs the task itself."""
    context = current_context()
    spec = None if context is None else context.spec
    return LoopLimits(max_turns=max_turns) if spec is None or spec.loop is None else spec.loop


def workspace_folder(task: str, epoch: int) -> Path:
    """Return the folder of one unit's workspace; a temporary one outside of a run."""
    context = current_context()
    base = Path(tempfile.mkdtemp(prefix="gta-files-")) if context is None else context.files
    return unit_folder(base, task, epoch)


def unit_folder(base: Path, task: str, epoch: int) -> Path:
    """Return the folder of one unit in the folder of all units."""
    return base / task if epoch == 1 else base / f"{task}.{epoch}"


def artefact_store() -> ArtefactStore:
    """Return the store for deliverables; a temporary folder outside of a run."""
    context = current_context()
    kept = None if context is None else context.artefacts
    return ArtefactStore(kept or _temporary_artefacts())


def current_harness() -> Harness:
    """Return the measured foreign system."""
    context = current_context()
    if context is None or context.harness is None:
        raise UsageError("`inspect eval` cannot run a harness; use `gta run … --harness`.")
    return context.harness


@cache
def _temporary_artefacts() -> Path:
    return Path(tempfile.mkdtemp(prefix="gta-run-")) / ARTEFACTS
