"""How much confined code may use, and what is recorded of each use."""

from dataclasses import dataclass
from typing import Literal

JailKind = Literal["bubblewrap", "landlock", "none"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JailLimits:
    """Bounds on one use of the jail; what exceeds one is stopped and reported by name.

    `memory_bytes` is address space of each process, None for programs that reserve far more than
    they use (Chromium). `processes` counts threads too. `disk_bytes` and `disk_files` bound the
    working and scratch folders together with every file in them. `start_seconds` are for the jail
    itself and our own imports; only then the time of the code begins.
    """

    start_seconds: float = 60.0
    wall_seconds: float = 20.0
    cpu_seconds: int = 20
    memory_bytes: int | None = 2048 * MIB
    file_bytes: int = 64 * MIB
    disk_bytes: int = 64 * MIB
    disk_files: int = 2000
    open_files: int = 256
    processes: int = 64
    output_bytes: int = MIB
    reply_bytes: int = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a use of the jail went; belongs into the record of every result.

    `exit_status` is negative where a signal ended the process.
    """

    jail: JailKind
    exit_status: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetResult:
    """What a snippet came to. `value` and `printed` are foreign: data, never instructions."""

    value: str | bytes
    printed: str
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """A program that ended by itself, well or not; `files` is what it left in its folder.

    `skipped` names what was left there and is not a regular file.
    """

    stdout: bytes
    stderr: bytes
    files: dict[str, bytes]
    skipped: tuple[str, ...]
    report: Report

    @property
    def succeeded(self) -> bool:
        """Whether the program says that it did its work; some say so wrongly."""
        return self.report.exit_status == 0
