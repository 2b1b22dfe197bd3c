"""PDF files: text and tables of each page; OCR for pages that are only pictures."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import Base64Bytes, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver, check_size
from gta_bench.content.identify import require_form
from gta_bench.content.tables import TableRows, format_markdown_table

Ocr = Callable[[bytes], Awaitable[str]]

MOST_PAGES = 500
MOST_SCANS = 30
LONGEST_SIDE = 2000
DPI = 150


@dataclass(frozen=True, slots=True)
class PdfPage:
    """One page, counted from 1. `origin` says where its text comes from.

    `none` means that the page has no text and none was recognized. `image` (PNG or JPEG) then
    shows it, unless there were too many such pages.
    """

    number: int
    text: str
    tables: tuple[TableRows, ...]
    origin: Literal["text", "ocr", "none"]
    image: Base64Bytes | None = field(repr=False)

    def as_text(self) -> str:
        """The page's text, then its tables as Markdown."""
        text = self.text.strip()
        if self.origin == "none":
            text = "[This page has no text; it is a picture or empty.]"
        elif self.origin == "ocr":
            text = f"[Text recognized in a picture of this page:]\n{text}"
        blocks = [f"[Page {self.number}]\n{text}"]
        blocks += [f"[Table]\n{format_markdown_table(table)}" for table in self.tables]
        return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class _Attachment:
    """A file inside the file; `data` is None if the attachments are too large."""

    name: str
    about: str
    data: Base64Bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class PdfContent:
    """A PDF file. It may have more pages than were read or searched for tables.

    `properties` are its title, subject and keywords; `signed` means that its metadata names an
    author or a date. `remarks` are annotations, `fields` the fields of a form with their values,
    `descriptions` the alternative texts of its tags. It may contain `scripts` or a form in XML
    (`xfa`). `labels` are page names that differ from the page numbers; layers in `layers_off` are
    not drawn.
    """

    pages: tuple[PdfPage, ...]
    page_count: int
    pages_searched_for_tables: int
    properties: tuple[tuple[str, str], ...] = ()
    signed: bool = False
    remarks: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    links: tuple[str, ...] = ()
    bookmarks: tuple[str, ...] = ()
    attachments: tuple[_Attachment, ...] = ()
    descriptions: tuple[str, ...] = ()
    scripts: bool = False
    xfa: bool = False
    labels: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    layers_off: tuple[str, ...] = ()

    def beside_text(self) -> str:
        """Everything besides the text of the pages, as text."""
        lists = {
            "Form fields": [f"{name}: {value}" for name, value in self.fields],
            "Annotations": self.remarks,
            "Alternative texts": dict.fromkeys(self.descriptions),
            "Links": dict.fromkeys(self.links),
            "Bookmarks": self.bookmarks,
            "Page labels": self.labels,
            "Layers": [*self.layers, *(f"{name} (switched off)" for name in self.layers_off)],
            "Attached files": [f"{one.name} {one.about}".strip() for one in self.attachments],
        }
        blocks = ["\n".join([f"[{name}]", *lines]) for name, lines in lists.items() if lines]
        return "\n\n".join(blocks)

    def as_text(self) -> str:
        """The pages in order, then everything besides them."""
        blocks = [page.as_text() for page in self.pages]
        blocks += [self.beside_text()] if self.beside_text() else []
        read = len(self.pages)
        if read < self.page_count:
            blocks.append(f"[{read} of {self.page_count} pages were read.]")
        if self.pages_searched_for_tables < read:
            searched = self.pages_searched_for_tables
            blocks.append(f"[Tables were looked for on the first {searched} pages.]")
        return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page as PNG or JPEG; `part` is the share of a very long page that is shown.

    `unseen` is text of the page that the picture does not show.
    """

    number: int
    data: Base64Bytes = field(repr=False)
    part: float
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class PageImages:
    """The requested pages that exist."""

    pages: tuple[PageImage, ...]
    page_count: int


READ = Driver(
    "pdf",
    "The PDF reader",
    ("pypdf", "pdfplumber", "pypdfium2", "PIL"),
    TypeAdapter(PdfContent),
)
RENDER = Driver("pdf", "The PDF renderer", ("pypdfium2", "PIL"), TypeAdapter(PageImages))


async def read_pdf(
    data: bytes, jail: Jail, *, ocr: Ocr | None = None, scans: int = MOST_SCANS
) -> PdfContent:
    """Read a PDF file. Raises ToolError if it is not a PDF, or is broken, locked or too large.

    `ocr` is called with a picture of each page without text, for up to `scans` pages, and returns
    the text in it.
    """
    check_size(data, label=READ.label)
    require_form(data, "pdf")
    content = await READ.read(
        jail,
        data,
        work="read",
        most_pages=MOST_PAGES,
        most_images=scans,
        longest_side=LONGEST_SIDE,
        dpi=DPI,
    )
    if ocr is None:
        return content
    return replace(content, pages=tuple([await _recognize(page, ocr) for page in content.pages]))


async def render_pdf(
    data: bytes,
    jail: Jail,
    pages: Sequence[int],
    *,
    dpi: int = DPI,
    longest_side: int = LONGEST_SIDE,
) -> PageImages:
    """Render pages by their numbers, counted from 1, as pictures of limited size."""
    check_size(data, label=RENDER.label)
    require_form(data, "pdf")
    return await RENDER.read(
        jail, data, work="render", pages=list(pages), longest_side=longest_side, dpi=dpi
    )


async def _recognize(page: PdfPage, ocr: Ocr) -> PdfPage:
    if page.image is None:
        return page
    text = await ocr(page.image)
    if set(text.split()) <= set(page.text.split()):
        return page  # the picture adds nothing to the text of the page
    kept = f"{page.text.strip()}\n{text}" if page.text.strip() else text
    return replace(page, text=kept, origin="ocr")
