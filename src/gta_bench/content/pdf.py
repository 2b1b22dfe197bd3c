"""PDF files: text and tables of each page; pages that are only pictures by OCR."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import Base64Bytes, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver, check_size
from gta_bench.content.identify import require_form
from gta_bench.content.tables import Rows, markdown_table

Ocr = Callable[[bytes], Awaitable[str]]

MOST_PAGES = 500
MOST_SCANS = 30
LONGEST_SIDE = 2000
DPI = 150


@dataclass(frozen=True, slots=True)
class PdfPage:
    """One page, counted from 1. `origin` says where its text comes from.

    `none`: the page has no text of its own, and nobody recognized any; `image` then shows it
    (PNG or JPEG), unless there were too many such pages.
    """

    number: int
    text: str
    tables: tuple[Rows, ...]
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
        blocks += [f"[Table]\n{markdown_table(table)}" for table in self.tables]
        return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class _Attachment:
    """A file within the file; `data` is None where there was too much of them."""

    name: str
    about: str
    data: Base64Bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class PdfContent:
    """A PDF file; it may have more pages than were read, or than were searched for tables.

    `properties` are its title, subject and keywords; `signed` if it says who made it, and when.
    `remarks` are its annotations, `fields` those of a form with what is filled in, `descriptions`
    what its tags say in place of pictures. It may hold `scripts`, or a form in XML (`xfa`).
    `labels` are names of pages that are not their numbers; what `layers_off` have is not drawn.
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
        """What lies beside the text of the pages."""
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
        """Page after page, then what lies beside them."""
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
    """A page as a picture, PNG or JPEG; `part` is the share that is shown of a very long one.

    `unseen` are words of the page that the picture does not show.
    """

    number: int
    data: Base64Bytes = field(repr=False)
    part: float
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class PageImages:
    """The pages that were asked for and exist."""

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
    """Read a PDF file; ToolError if it is none, broken, locked, or too much.

    `ocr` gets a picture of each page without text, up to `scans` of them, and gives the text that
    it sees there.
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
    return replace(content, pages=tuple([await _recognized(page, ocr) for page in content.pages]))


async def render_pdf(
    data: bytes,
    jail: Jail,
    pages: Sequence[int],
    *,
    dpi: int = DPI,
    longest_side: int = LONGEST_SIDE,
) -> PageImages:
    """Pages by their numbers, counted from 1, as pictures within a bound."""
    check_size(data, label=RENDER.label)
    require_form(data, "pdf")
    return await RENDER.read(
        jail, data, work="render", pages=list(pages), longest_side=longest_side, dpi=dpi
    )


async def _recognized(page: PdfPage, ocr: Ocr) -> PdfPage:
    if page.image is None:
        return page
    text = await ocr(page.image)
    if set(text.split()) <= set(page.text.split()):
        return page  # nothing in the picture that the page does not say itself
    kept = f"{page.text.strip()}\n{text}" if page.text.strip() else text
    return replace(page, text=kept, origin="ocr")
