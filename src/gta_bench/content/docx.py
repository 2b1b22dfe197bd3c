"""Word documents, as GitHub's Markdown: headings, lists, tables, formulas, notes."""

import asyncio
from dataclasses import dataclass

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.content.needs import missing_pandoc, pandoc_program, require
from gta_bench.content.numbering import with_labels
from gta_bench.content.office import count_parts, open_office
from gta_bench.errors import ToolError

# The heap's bound lies below the jail's, so that pandoc itself says that it needs too much.
HEAP = ["+RTS", "-M1024M", "-RTS"]
LIMITS = JailLimits(wall_seconds=28.0, cpu_seconds=28, output_bytes=64 * MIB)
HEAP_EXHAUSTED = 251
SHOWN_ERROR = 300
# GitHub's Markdown, but formulas between dollars, as everybody writes them.
FORMAT = "gfm-tex_math_gfm+tex_math_dollars"


@dataclass(frozen=True, slots=True)
class DocxContent:
    """A document's text; `pictures` and `charts` are counted, the text only names their places.

    `uncounted` if some labels of its lists are in a form that is not known here.
    """

    markdown: str
    pictures: int
    charts: int
    uncounted: bool = False

    def as_text(self) -> str:
        """The document as Markdown."""
        return self.markdown


async def read_by_pandoc(data: bytes, form: str, jail: Jail) -> str:
    """A document of any form that pandoc reads, as Markdown; ToolError if it cannot be read.

    With its title and what else it says of itself, and with comments and changes in their places.
    """
    require(missing_pandoc())
    argv = [str(pandoc_program()), f"--from={form}", f"--to={FORMAT}", "--wrap=none", "--sandbox"]
    argv += ["--standalone", "--track-changes=all", *HEAP, f"../inputs/document.{form}"]
    result = await jail.run_program(argv, inputs={f"document.{form}": data}, limits=LIMITS)
    if result.report.exit_status == HEAP_EXHAUSTED:
        raise ToolError("The document needs more memory to read than is allowed.")
    if not result.succeeded:
        words = result.stderr.decode("utf-8", "replace").strip()[:SHOWN_ERROR]
        raise ToolError(f"The document cannot be read: {words or 'pandoc gives no reason'}")
    return result.stdout.decode("utf-8", "replace")


async def read_docx(data: bytes, jail: Jail) -> DocxContent:
    """Read a Word document; ToolError if it is none, broken, or too much."""
    parts = await open_office(data, "docx")
    labeled = await asyncio.to_thread(with_labels, data)
    return DocxContent(
        markdown=await read_by_pandoc(labeled.data, "docx", jail),
        uncounted=labeled.uncounted,
        pictures=count_parts(parts, "word/media/"),
        charts=count_parts(parts, "word/charts/chart"),
    )
