"""What holds for an evaluation in this process, beside the arguments of its task.

Paths and settings among a task's arguments would make a moved run another run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gta_bench.records.tape import TapeMode
from gta_bench.settings import Settings, read_settings
from gta_bench.tape.controls import Controls
from gta_bench.tape.storage import Tape


class Taping(NamedTuple):
    """A tape that is open, and what is done with it."""

    tape: Tape
    mode: TapeMode


@dataclass(frozen=True)
class RunContext:
    """Where samples keep their files, and what tools are opened with."""

    files: Path
    settings: Settings
    taping: Taping | None = None
    controls: Controls | None = None


_contexts: list[RunContext] = []


@contextmanager
def run_context(context: RunContext) -> Iterator[None]:
    """What is evaluated inside the block uses that context."""
    _contexts.append(context)
    try:
        yield
    finally:
        _contexts.remove(context)


def current_settings() -> Settings:
    """The settings of the run, or those of this folder where Inspect runs the task itself."""
    return _contexts[-1].settings if _contexts else read_settings().settings


def current_tape() -> Taping | None:
    """The tape of the run, if it has one."""
    return _contexts[-1].taping if _contexts else None


def current_controls() -> Controls | None:
    """The controls of the run, if it has any."""
    return _contexts[-1].controls if _contexts else None


def workspace_folder(task: str, epoch: int) -> Path:
    """The folder of one unit's workspace; a temporary one where no run holds it."""
    base = _contexts[-1].files if _contexts else Path(tempfile.mkdtemp(prefix="gta-files-"))
    return base / task if epoch == 1 else base / f"{task}.{epoch}"
