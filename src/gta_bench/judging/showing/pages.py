"""Documents as PDF, printed by LibreOffice, and the pages of a PDF as pictures.

Several documents share a LibreOffice process, because starting it takes most of the time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Final

from gta_bench.confine.archives import check_archive
from gta_bench.confine.jail import Jail
from gta_bench.content.identify import Identity
from gta_bench.content.libreoffice import SHEET_A_PAGE, convert, convert_all, missing_office
from gta_bench.content.needs import require
from gta_bench.content.office import normalize_package
from gta_bench.content.pdf import PageImages, render_pdf
from gta_bench.errors import GtaError, ToolError
from gta_bench.judging.showing.draft import Draft, Subject, describe_rest, quote, settle
from gta_bench.tools.contract import Equipment

TOGETHER: Final = 6  # documents in a process, at most
MORE_SECONDS: Final = 10.0  # for each further document of a process
OFFICE: Final = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "rtf")
OLD: Final = (".doc", ".xls", ".ppt")
SHEETS: Final = (".xlsx", ".ods", ".xls")
WHOLE: Final = 0.999

Print = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Document:
    """A file for LibreOffice, under a name of our own."""

    key: str
    name: str
    data: bytes

    @property
    def target(self) -> str:
        """The format to convert it to: each sheet of a workbook becomes one page."""
        return SHEET_A_PAGE if self.name.endswith(SHEETS) else "pdf"

    async def check(self) -> None:
        """Raise ToolError if the file unpacks to too much, before LibreOffice unpacks it."""
        if self.data.startswith(b"PK"):
            await asyncio.to_thread(check_archive, BytesIO(self.data))

    async def convert(
        self, equipment: Equipment, *, seconds: float, to: str | None = None
    ) -> bytes:
        """Convert it to PDF, or to another format, in a process of its own."""
        await self.check()
        jail = _office_jail(equipment)
        return await convert(jail, self.name, self.data, to=to or self.target, seconds=seconds)


def to_document(number: int, key: str, identity: Identity, data: bytes) -> Document | None:
    """Return the file as LibreOffice gets it; None for kinds that LibreOffice does not show."""
    if identity.kind == "office-97":
        suffix = next((old for old in OLD if identity.name.lower().endswith(old)), OLD[0])
    elif identity.kind in OFFICE:
        suffix = f".{identity.kind}"
    else:
        return None
    if identity.kind in ("docx", "pptx", "xlsx"):
        data = normalize_package(data) or data
    return Document(key, f"{number}{suffix}", data)


def start_printing(
    documents: Sequence[Document],
    group: asyncio.TaskGroup,
    equipment: Equipment,
    *,
    slots: int,
    seconds: float,
) -> dict[str, Print]:
    """Start to print the documents in the task group; return a function for each one's PDF."""
    found: dict[str, Print] = {}
    for target in sorted({document.target for document in documents}):
        alike = [document for document in documents if document.target == target]
        size = max(1, min(TOGETHER, -(-len(alike) // slots)))
        for start in range(0, len(alike), size):
            some = alike[start : start + size]
            made = group.create_task(settle(_print_together(some, equipment, seconds)))
            for one in some:
                found[one.key] = partial(_wait_for, one, len(some) == 1, made, equipment, seconds)
    return found


async def _print_together(
    documents: Sequence[Document], equipment: Equipment, seconds: float
) -> dict[str, bytes]:
    jail = _office_jail(equipment)
    safe = [one for one in documents if not isinstance(await settle(one.check()), GtaError)]
    if not safe:
        return {}
    files = {one.name: one.data for one in safe}
    allowed = seconds + MORE_SECONDS * (len(files) - 1)
    return await convert_all(jail, files, to=documents[0].target, seconds=allowed)


async def _wait_for(
    document: Document,
    alone: bool,
    made: asyncio.Task[dict[str, bytes] | GtaError],
    equipment: Equipment,
    seconds: float,
) -> bytes:
    together = await asyncio.shield(made)
    if isinstance(together, dict) and document.name in together:
        return together[document.name]
    if not alone:
        # Another document may have stopped the process; this one gets a process of its own.
        return await document.convert(equipment, seconds=seconds)
    await document.check()
    if isinstance(together, GtaError):
        raise together
    raise ToolError("LibreOffice could not read the file.")


def _office_jail(equipment: Equipment) -> Jail:
    require(missing_office(equipment.jail))
    return equipment.need_jail()


async def print_pages(subject: Subject) -> PageImages:
    """Render the first pages of the file as LibreOffice prints it."""
    if subject.pdf is None:
        raise ToolError("LibreOffice does not read this kind.")
    return await render_pages(subject, await subject.pdf())


async def render_pages(subject: Subject, pdf: bytes) -> PageImages:
    """Render the first pages of a PDF."""
    limits = subject.limits
    wanted = range(1, limits.pages + 1)
    return await render_pdf(pdf, subject.jail, wanted, longest_side=limits.picture_side)


def add_pages(
    draft: Draft, found: PageImages | GtaError, *, noun: str = "page", names: Sequence[str] = ()
) -> None:
    """Add pages as pictures; labels use `names` if there is one for each page."""
    if isinstance(found, GtaError):
        draft.add_missing(f"pictures of its {noun}s", found)
        return
    count = found.page_count
    draft.add_fact(f"{noun}s", count)
    for page in found.pages:
        label = f"{noun} {page.number} of {count}"
        if len(names) == count:
            label = f"{noun} {quote(names[page.number - 1])}"
        draft.add_picture(page.data, label)
        if page.part < WHOLE:
            draft.cut.append(f"the picture of {label} shows its first {page.part:.0%}")
    unseen = " ".join(page.unseen for page in found.pages if page.unseen)
    draft.add_hidden(f"words that its {noun}s do not show", unseen, shown=True)
    shown = len(found.pages)
    if shown < count:
        draft.cut.append(describe_rest(noun, shown + 1, count, how="shown as a picture"))
