"""The pandoc program: its version, and how it runs on untrusted text."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.content.needs import find_pandoc, missing_pandoc, read_program_version, require
from gta_bench.errors import ToolError

# GitHub Markdown with formulas between dollar signs. Line breaks count: models do not wrap text.
READER: Final = "gfm+tex_math_dollars+hard_line_breaks+attributes"
# The heap is limited instead of the address space, because the runtime reserves far more.
HEAP: Final = ("+RTS", "-M768M", "-RTS")
LIMITS: Final = JailLimits(
    wall_seconds=25.0,
    cpu_seconds=25,
    memory_bytes=None,
    output_bytes=32 * MIB,
    disk_bytes=128 * MIB,
)
SHOWN_ERROR: Final = 300


@cache
def pandoc_version() -> str:
    """Return the name and version, such as `pandoc 3.9`. The program is only asked once."""
    require(missing_pandoc())
    return f"pandoc {read_program_version(str(find_pandoc()))}"


def pandoc_command(arguments: Sequence[str]) -> list[str]:
    """Return a command line; `--sandbox` prevents pandoc from opening files named in the text."""
    require(missing_pandoc())
    return [str(find_pandoc()), *HEAP, "--sandbox", *arguments]


async def run_pandoc(
    jail: Jail, arguments: Sequence[str], *, text: bytes, inputs: Mapping[str, bytes]
) -> ProgramResult:
    """Run pandoc in the jail on a text. Raises ToolError if it fails."""
    done = await jail.run_program(
        pandoc_command(arguments), inputs=inputs, stdin=text, limits=LIMITS
    )
    refuse_failure(done, "pandoc")
    return done


def read_resource(name: str) -> bytes:
    """Return a filter, style or template that is stored next to this module."""
    return files("gta_bench.tools.documents").joinpath(name).read_bytes()


def refuse_failure(done: ProgramResult, program: str) -> None:
    """Raise ToolError with the end of the program's error output if it failed."""
    if not done.succeeded:
        output = " ".join(done.stderr.decode("utf-8", "replace").split())[-SHOWN_ERROR:]
        reason = output or f"exit status {done.report.exit_status}"
        raise ToolError(f"{program} could not make the document: {reason}.")
