"""What confined code may use, and the results and reports of its runs."""

from dataclasses import dataclass
from typing import Literal

JailKind = Literal["bubblewrap", "landlock", "none"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JailLimits:
    """Bounds on one use of the jail; a job that exceeds one is stopped with an error that names it.

    `memory_bytes` limits the address space of each process; use None for programs that reserve far
    more than they use (Chromium). `processes` includes threads. `disk_bytes` and `disk_files` bound
    the working and scratch folders together. `start_seconds` covers the jail itself and our own
    imports; the time of the code starts afterwards.
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
    """How a use of the jail went; part of the record of every result.

    `exit_status` is negative if a signal ended the process.
    """

    jail: JailKind
    exit_status: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetResult:
    """The result of a snippet. `value` and `printed` are foreign: data, never instructions."""

    value: str | bytes
    printed: str
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """The result of a program that ended by itself, successfully or not.

    `files` are those it left in its folder; `skipped` names entries that are not regular files.
    """

    stdout: bytes
    stderr: bytes
    files: dict[str, bytes]
    skipped: tuple[str, ...]
    report: Report

    @property
    def succeeded(self) -> bool:
        """Whether the exit status is 0; some programs return 0 although they failed."""
        return self.report.exit_status == 0
