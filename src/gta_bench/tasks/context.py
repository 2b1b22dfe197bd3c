"""What holds for an evaluation in this process, beside the arguments of its task.

Paths and settings among a task's arguments would make a moved run another run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gta_bench.serving.choice import LOCAL
from gta_bench.settings import Settings, read_settings


@dataclass(frozen=True)
class RunContext:
    """Where samples keep their files, the settings that tools are opened with, and where they are.

    `tools` is `local` or a server's address, as `--tools` has it.
    """

    files: Path
    settings: Settings
    tools: str = LOCAL


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


def current_tools() -> str:
    """Where the tools of the run are."""
    return _contexts[-1].tools if _contexts else LOCAL


def workspace_folder(task: str, epoch: int) -> Path:
    """The folder of one unit's workspace; a temporary one where no run holds it."""
    base = _contexts[-1].files if _contexts else Path(tempfile.mkdtemp(prefix="gta-files-"))
    return base / task if epoch == 1 else base / f"{task}.{epoch}"
