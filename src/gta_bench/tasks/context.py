"""What holds for an evaluation in this process, beside the arguments of its task.

Paths and settings among a task's arguments would make a moved run another run.
"""

import atexit
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.run import DatasetName
from gta_bench.records.tape import TapeMode
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.serving.choice import LOCAL
from gta_bench.settings import Settings, read_settings
from gta_bench.tape.controls import Controls
from gta_bench.tape.storage import Tape
from gta_bench.tasks.spending import Spending


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


@dataclass(frozen=True)
class Earlier:
    """The round before: its workspaces, what its samples kept, and the words that go back.

    A unit without words has nothing to mend and is carried over as it is.
    """

    files: Path
    stores: Mapping[tuple[str, int], Mapping[str, Any]]
    words: Mapping[tuple[str, int], str]


@dataclass(frozen=True)
class RunContext:
    """Where samples keep their files, and what they get their tools through.

    `artefacts` keeps deliverables for good. `earlier` is the run that this one is a later round
    of, with what goes back to the system. `harness` or `product` is the foreign system that is
    measured, if one is. `spending` bounds what a judge may cost. `closing` ends what was opened on
    the way.
    """

    files: Path
    settings: Settings
    tooling: OpenTooling = LOCAL_TOOLS
    artefacts: Path | None = None
    earlier: Earlier | None = None
    product: Product | None = None
    harness: Harness | None = None
    spending: Spending | None = None
    closing: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)


_contexts: list[RunContext] = []


@contextmanager
def run_context(context: RunContext) -> Iterator[None]:
    """What is evaluated inside the block uses that context."""
    _contexts.append(context)
    try:
        with context.closing:
            yield
    finally:
        _contexts.remove(context)


def at_end(work: Callable[[], None]) -> None:
    """Do it when the run ends; when the process does where Inspect runs the task itself."""
    if _contexts:
        _contexts[-1].closing.callback(work)
    else:
        atexit.register(work)


def current_settings() -> Settings:
    """The settings of the run, or those of this folder where Inspect runs the task itself."""
    return _contexts[-1].settings if _contexts else read_settings().settings


def current_spending() -> Spending:
    """What judging may still cost."""
    kept = _contexts[-1].spending if _contexts else None
    return kept or Spending(current_settings().budget)


def current_tooling() -> OpenTooling:
    """What stands between the run's units and their tools."""
    return _contexts[-1].tooling if _contexts else LOCAL_TOOLS


def workspace_folder(task: str, epoch: int) -> Path:
    """The folder of one unit's workspace; a temporary one where no run holds it."""
    base = _contexts[-1].files if _contexts else Path(tempfile.mkdtemp(prefix="gta-files-"))
    return unit_folder(base, task, epoch)


def unit_folder(base: Path, task: str, epoch: int) -> Path:
    """The folder of one unit below that of all."""
    return base / task if epoch == 1 else base / f"{task}.{epoch}"


def artefact_store() -> ArtefactStore:
    """Where deliverables are kept; a temporary folder where no run holds it."""
    kept = _contexts[-1].artefacts if _contexts else None
    return ArtefactStore(kept or _temporary_artefacts())


def current_product() -> Product:
    """The product that the run measures."""
    product = _contexts[-1].product if _contexts else None
    if product is None:
        raise UsageError("No product is named: `gta run workflow --product URL` does it.")
    return product


def earlier_round() -> Earlier | None:
    """The round before, where this is a later one."""
    return _contexts[-1].earlier if _contexts else None


def current_harness() -> Harness:
    """The foreign system that is measured."""
    harness = _contexts[-1].harness if _contexts else None
    if harness is None:
        raise UsageError("A harness is run by `gta run … --harness`, not by `inspect eval` alone.")
    return harness


@cache
def _temporary_artefacts() -> Path:
    return Path(tempfile.mkdtemp(prefix="gta-run-")) / ARTEFACTS
