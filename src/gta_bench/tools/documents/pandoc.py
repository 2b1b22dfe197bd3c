"""The pandoc program: where it is, which version, and how it is run on foreign text."""

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.documents.needs import INSTALL

MISSING: Final = Unavailable("pandoc is not installed.", INSTALL)

# What GitHub reads, and formulas between dollars. A line break is meant: models do not wrap text.
READER: Final = "gfm+tex_math_dollars+hard_line_breaks+attributes"
# Address space is not bounded, as the runtime reserves far more than it uses; its heap is.
HEAP: Final = ("+RTS", "-M768M", "-RTS")
LIMITS: Final = JailLimits(
    wall_seconds=25.0,
    cpu_seconds=25,
    memory_bytes=None,
    output_bytes=32 * MIB,
    disk_bytes=128 * MIB,
)
SHOWN_WORDS: Final = 300


@cache
def pandoc_program() -> Path | None:
    """The program that pypandoc-binary brings; a system's own is often too old for us."""
    spec = find_spec("pypandoc")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "files" / "pandoc"
    return program if program.is_file() else None


@cache
def pandoc_version() -> str:
    """Such as `pandoc 3.9`; asked of the program once, in some milliseconds."""
    program = need_pandoc()
    asked = subprocess.run([program, "--version"], capture_output=True, check=True, timeout=10)
    return asked.stdout.decode().splitlines()[0].strip()


def pandoc_missing() -> Unavailable | None:
    """What to say where there is none."""
    return MISSING if pandoc_program() is None else None


def need_pandoc() -> Path:
    """The program, or ToolUnavailable."""
    program = pandoc_program()
    if program is None:
        raise ToolUnavailable(MISSING.reason, mend=MISSING.mend)
    return program


def pandoc_command(arguments: Sequence[str]) -> list[str]:
    """A command line; `--sandbox` keeps readers and writers from opening what the text names."""
    return [str(need_pandoc()), *HEAP, "--sandbox", *arguments]


async def run_pandoc(
    jail: Jail,
    arguments: Sequence[str],
    *,
    text: bytes,
    inputs: Mapping[str, bytes | Path] | None = None,
) -> ProgramResult:
    """Run it in the jail on a text; what it complains of is a ToolError."""
    done = await jail.run_program(
        pandoc_command(arguments), inputs=inputs, stdin=text, limits=LIMITS
    )
    refuse_failure(done, "pandoc")
    return done


@cache
def _script(name: str) -> bytes:
    return files("gta_bench.tools.documents").joinpath(name).read_bytes()


def lua_scripts(*names: str) -> dict[str, bytes]:
    """Our steps between reader and writer, as inputs of the jail."""
    return {name: _script(name) for name in names}


def refuse_failure(done: ProgramResult, program: str) -> None:
    """A ToolError with the program's last words, if it says that it failed."""
    if not done.succeeded:
        words = " ".join(done.stderr.decode("utf-8", "replace").split())[-SHOWN_WORDS:]
        status = done.report.exit_status
        raise ToolError(f"{program} could not make the document: {words or f'status {status}'}.")
