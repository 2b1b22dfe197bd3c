"""What a system delivered, as checks read it: every file once, by its reader in the jail."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

from gta_bench.checks.outcome import CheckBroken
from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB
from gta_bench.content.docx import DocxContent, read_docx
from gta_bench.content.identify import Identity, identify
from gta_bench.content.images import ImageContent, read_image
from gta_bench.content.kinds import KINDS
from gta_bench.content.libreoffice import convert, missing_office
from gta_bench.content.media import MediaInfo, probe_media, read_frame
from gta_bench.content.members import ZipContent, read_zip
from gta_bench.content.needs import require
from gta_bench.content.office import normalize_package
from gta_bench.content.page import PageContent, read_page
from gta_bench.content.pdf import PdfContent, read_pdf
from gta_bench.content.pptx import PptxContent, SlideTable, read_pptx
from gta_bench.content.shown import drop_comments, show_book, show_deck
from gta_bench.content.tables import CsvContent, TableRows, read_csv
from gta_bench.content.text import TextContent, read_text
from gta_bench.content.xlsx import XlsxContent, change_cells, read_xlsx
from gta_bench.errors import ToolError, ToolUnavailable, join_first
from gta_bench.records.files import Deliverable
from gta_bench.records.tool_servers import ServerState

Content = (
    DocxContent | PptxContent | XlsxContent | PdfContent | CsvContent | TextContent
    | ImageContent | MediaInfo | ZipContent
)  # fmt: skip
_Value = TypeVar("_Value")
HEADING: Final = re.compile(r"^(#{1,6}) +(.{1,500}?) *#*$", re.MULTILINE)
_CELLS: Final = re.compile(r"(?<!\\)\|")
_RULE: Final = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
# A mark that Markdown takes literally; those that begin headings and cells stay as they are.
_ESCAPED: Final = re.compile(r"\\([!-\"$-/:-@\[-`{}~])")
# What shows the order of a sorted column is no part of its name.
_ARROWS: Final = " ▲▼△▽↑↓↕⇅⇵"
OUTPUTS: Final = "outputs/"
# Text and CSV are read in this process. More than this is refused: the file fails its checks.
MOST_TEXT: Final = 16 * MIB
MOST_CELLS: Final = 1_000_000
FRAME_SIDE: Final = 960  # pixels; recognition misreads plain titles of films that are 384 wide
PICTURE_SIDE: Final = 4000  # pixels; larger pictures are scaled down for recognition


async def _read_pages(data: bytes, jail: Jail) -> PdfContent:
    return await read_pdf(data, jail, scans=0)


async def _list_members(data: bytes, jail: Jail) -> ZipContent:
    return await read_zip(data, skip_bad=True)


JAILED: Final[Mapping[str, Callable[[bytes, Jail], Awaitable[Content]]]] = {
    "docx": partial(read_docx, as_shown=True),
    "pptx": read_pptx,
    "xlsx": read_xlsx,
    "pdf": _read_pages,
    "image": read_image,
    "media": probe_media,
    "zip": _list_members,
}


class FoundTable(NamedTuple):
    """A table of a file; the first row is its head. `place` says where it is."""

    place: str
    rows: TableRows


class Heading(NamedTuple):
    """A heading and its level, from 1."""

    level: int
    text: str


class CheckedFile(NamedTuple):
    """A delivered file."""

    path: str
    data: bytes
    identity: Identity


class Recognition(NamedTuple):
    """Models of this machine that read pictures and hear recordings.

    Both raise ToolUnavailable if a model is missing or fails, and ToolError for a damaged file.
    """

    read_picture: Callable[[bytes], Awaitable[str]]
    hear: Callable[[bytes, str], Awaitable[str]]


class CheckedState(NamedTuple):
    """The state of a tool server, and how to read a file of it by its digest."""

    state: ServerState
    read: Callable[[str], bytes]

    def find(self, path: str) -> Deliverable:
        """Return the one file with this path or pattern; raise ToolError if there is not one."""
        found = self.match(path)
        if len(found) != 1:
            there = join_first([file.path for file in found or self.state.after.files])
            problem = "matches several files" if found else "does not exist"
            raise ToolError(f"{problem}; the server has: {there or 'no file'}")
        return found[0]

    def match(self, path: str) -> list[Deliverable]:
        """Return the files after the last call that have this path or pattern."""
        files = self.state.after.files
        exact = [file for file in files if file.path == path]
        return exact or [file for file in files if fnmatchcase(file.path, path)]


class CheckedWork:
    """The answer and files of a unit. Contents are read at most once.

    Reading raises ToolError for a file that is at fault, and ToolUnavailable or a ConfinedError
    for what this machine cannot do.
    """

    def __init__(
        self,
        answer: str,
        files: Mapping[str, Callable[[], bytes]],
        jail: Jail,
        *,
        inputs: Collection[str] = (),
        recognition: Recognition | None = None,
        states: Iterable[CheckedState] = (),
    ) -> None:
        self.answer = answer
        self.jail = jail
        self.inputs = frozenset(inputs)
        self._files = {path.removeprefix(OUTPUTS): read for path, read in files.items()}
        self._opened: dict[str, CheckedFile] = {}
        self._recognition = recognition
        self._states = {one.state.server: one for one in states}
        self._kept: dict[tuple[str, str], Any] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all files, without the folder `outputs`."""
        return tuple(self._files)

    def find(self, pattern: str) -> CheckedFile:
        """Return the one file with this path or pattern; raise ToolError if there is not one."""
        wanted = pattern.removeprefix(OUTPUTS)
        found = [wanted] if wanted in self._files else []
        found = found or [path for path in self._files if fnmatchcase(path, wanted)]
        if len(found) != 1:
            there = join_first(sorted(found or self._files)) or "no file"
            problem = "matches several files" if found else "was not delivered"
            raise ToolError(f"{problem}; delivered: {there}")
        return self.open(found[0])

    def open(self, path: str) -> CheckedFile:
        """Return a file by its exact path."""
        if path not in self._opened:
            data = self._files[path]()
            self._opened[path] = CheckedFile(path, data, identify(path, data))
        return self._opened[path]

    def is_input(self, file: CheckedFile) -> bool:
        """Whether the file has the bytes of an input."""
        return hashlib.sha256(file.data).hexdigest() in self.inputs

    def state(self, server: str) -> CheckedState:
        """Return the state of a tool server; raise CheckBroken if it is not known.

        Raises ToolError if it became too large.
        """
        if server not in self._states:
            known = join_first(sorted(self._states)) or "no tool server"
            raise CheckBroken(
                f"There is no state of the tool server {server!r}, but of {known}. Declare `state` "
                f"in [tool_servers.{server}], offer its tools, and run the task again."
            )
        found = self._states[server]
        if found.state.unknown:
            raise CheckBroken(
                f"The state of the tool server {server!r} is not known: {found.state.unknown}."
            )
        if found.state.excess:
            raise ToolError(f"the state of the server is too large: {found.state.excess}")
        return found

    async def read(self, file: CheckedFile) -> Content:
        """Return a file's content as the reader for its kind gives it."""
        return await self.once("content", file, partial(self._read, file))

    async def read_whole(self, file: CheckedFile) -> Content:
        """Return a file's content; raise ToolError if our limits let only a part be read."""
        content = await self.read(file)
        unread = _find_unread(content)
        if unread:
            raise ToolError(f"is too large: {unread}")
        return content

    async def _show(self, file: CheckedFile) -> Content:
        """Return a file's content without what its readers do not see."""
        content = await self.read_whole(file)
        match content:
            case XlsxContent():
                return show_book(content)
            case PptxContent():
                return show_deck(content)
            case TextContent() if file.identity.kind == "markdown":
                return TextContent(drop_comments(content.text), content.encoding)
            case _:
                return content

    async def once(
        self, what: str, file: CheckedFile, make: Callable[[], Awaitable[_Value]]
    ) -> _Value:
        """Return what is made of a file; what was made before, or why it failed, is kept."""
        key = what, file.path
        if key not in self._kept:
            try:
                self._kept[key] = await make()
            except ToolError as exc:
                self._kept[key] = exc
        found = self._kept[key]
        if isinstance(found, ToolError):
            raise found
        return cast(_Value, found)

    async def _read(self, file: CheckedFile) -> Content:
        reader = KINDS[file.identity.kind].reader
        if not file.data:
            raise ToolError("is empty")
        if reader is None:
            raise ToolError(f"is {file.identity.kind}, which checks cannot read")
        if reader in ("csv", "text") and len(file.data) > MOST_TEXT:
            raise ToolError(f"has more than {MOST_TEXT // MIB} MiB of text")
        if reader == "csv":
            return read_csv(file.data, most_cells=MOST_CELLS)
        if reader == "text":
            return read_text(file.data)
        content = await JAILED[reader](file.data, self.jail)
        return await self._calculate(file.data, content)

    async def _calculate(self, data: bytes, book: Content) -> Content:
        """Compute values that a workbook was saved without, as evidence for judges does."""
        if not isinstance(book, XlsxContent):
            return book
        formulas = [cell for sheet in book.sheets for cell in sheet.formulas]
        if not any(cell.type == "empty" for cell in formulas) and not (book.stale and formulas):
            return book
        require(missing_office(self.jail))
        clean = normalize_package(data) or data
        return await read_xlsx(await convert(self.jail, "book.xlsx", clean, to="xlsx"), self.jail)

    async def recalculate(self, file: CheckedFile, change: Mapping[str, float]) -> XlsxContent:
        """Return a workbook as it is after these cells got other numbers."""

        async def compute() -> XlsxContent:
            require(missing_office(self.jail))
            changed = await change_cells(file.data, self.jail, change)
            made = await convert(self.jail, "book.xlsx", changed, to="xlsx")
            return await read_xlsx(made, self.jail)

        return await self.once(f"changed by {sorted(change.items())}", file, compute)

    async def text(self, file: CheckedFile) -> str:
        """Return the text of a file that its readers see; of a page without its tags."""
        return await self._write(file, await self._show(file))

    async def whole_text(self, file: CheckedFile) -> str:
        """Return the text of a file with comments, deleted and hidden text; of a page as shown."""
        content = await self.read_whole(file)
        if isinstance(content, DocxContent):
            content = await self.once("whole", file, partial(read_docx, file.data, self.jail))
        return await self._write(file, content)

    async def _write(self, file: CheckedFile, content: Content) -> str:
        match content:
            case TextContent() if file.identity.kind == "html":
                return (await self._page(file, content.text)).text
            case TextContent():
                return content.text
            case ImageContent() | MediaInfo() | ZipContent():
                raise ToolError(f"is {file.identity.kind}, which has no text")
            case DocxContent():
                return _unescape(content.as_text())
            case _:
                return content.as_text()

    async def picture_text(self, file: CheckedFile) -> str:
        """Return the text that recognition reads on a picture."""
        if not isinstance(await self.read(file), ImageContent):
            raise ToolError(f"is {file.identity.kind}, not a picture")
        recognition = self._need_recognition()

        async def recognize() -> str:
            # Decoded in the jail, so that recognition gets pixels and no foreign file.
            shown = await read_image(file.data, self.jail, longest_side=PICTURE_SIDE)
            return await recognition.read_picture(shown.previews[0].data)

        return await self.once("pictured text", file, recognize)

    async def film_text(self, file: CheckedFile, seconds: float) -> str:
        """Return the text that recognition reads on the frame of a film at a time."""
        content = await self.read(file)
        if not isinstance(content, MediaInfo):
            raise ToolError(f"is {file.identity.kind}, not audio or video")
        if content.video is None:
            raise ToolError("has no film")
        recognition = self._need_recognition()

        async def recognize() -> str:
            return await recognition.read_picture(
                await read_frame(
                    file.data, self.jail, seconds, longest_side=PICTURE_SIDE, least=FRAME_SIDE
                )
            )

        return await self.once(f"text at {seconds}", file, recognize)

    async def speech(self, file: CheckedFile) -> str:
        """Return the words that recognition hears in a recording."""
        content = await self.read(file)
        if not isinstance(content, MediaInfo):
            raise ToolError(f"is {file.identity.kind}, not audio or video")
        if content.audio is None:
            raise ToolError("has no sound")
        hear = self._need_recognition().hear
        return await self.once("speech", file, partial(hear, file.data, file.path))

    def _need_recognition(self) -> Recognition:
        if self._recognition is None:
            fix = "Pass `recognition` to CheckedWork."
            raise ToolUnavailable("There is no recognition of text and speech.", fix=fix)
        return self._recognition

    async def headings(self, file: CheckedFile) -> list[Heading]:
        """Return the headings of a document, in order; titles of slides have level 1."""
        content = await self._show(file)
        match content:
            case PptxContent():
                return [Heading(1, slide.title) for slide in content.slides if slide.title]
            case DocxContent():
                return _find_headings(content.markdown)
            case TextContent() if file.identity.kind == "html":
                page = await self._page(file, content.text)
                return [Heading(level, text) for level, text in page.headings]
            case TextContent():
                return _find_headings(content.text)
            case PdfContent():
                return [Heading(1, text) for text in content.bookmarks]
            case _:
                raise ToolError(f"is {file.identity.kind}, which has no headings")

    async def tables(self, file: CheckedFile, sheet: str | None = None) -> list[FoundTable]:
        """Return the tables of a file; with `sheet`, that sheet of a workbook."""
        content = await self._show(file)
        if sheet is not None and not isinstance(content, XlsxContent):
            raise ToolError(f"is {file.identity.kind}, which has no sheets")
        match content:
            case XlsxContent():
                return _sheet_tables(content, sheet)
            case CsvContent():
                return [FoundTable("", content.rows)]
            case DocxContent():
                return await self._written_tables(file, content.markdown)
            case PptxContent():
                return [
                    FoundTable(f"slide {slide.number}", part.rows)
                    for slide in content.slides
                    for part in slide.parts
                    if isinstance(part, SlideTable)
                ]
            case PdfContent():
                return [
                    FoundTable(f"page {page.number}", rows)
                    for page in content.pages
                    for rows in page.tables
                ]
            case TextContent():
                return await self._written_tables(file, content.text)
            case _:
                raise ToolError(f"is {file.identity.kind}, which has no tables")

    async def _written_tables(self, file: CheckedFile, text: str) -> list[FoundTable]:
        """Return the tables of Markdown and HTML."""
        rows = find_tables(text)
        if "<table" in text.lower():
            rows += map(_drop_arrows, (await self._page(file, text)).tables)
        return [FoundTable(f"table {number}", one) for number, one in enumerate(rows, 1)]

    async def _page(self, file: CheckedFile, markup: str) -> PageContent:
        return await self.once("page", file, partial(read_page, markup, self.jail))


def _find_unread(content: Content) -> str:
    """Return which part of a file was read if it was not all of it."""
    match content:
        case XlsxContent() if content.cut:
            return "only its first cells were read"
        case PptxContent() if len(content.slides) < content.slide_count:
            return f"{len(content.slides)} of {content.slide_count} slides were read"
        case PdfContent() if content.pages_searched_for_tables < content.page_count:
            return f"{content.pages_searched_for_tables} of {content.page_count} pages were read"
        case _:
            return ""


def _sheet_tables(book: XlsxContent, sheet: str | None) -> list[FoundTable]:
    names = [one.name for one in book.sheets]
    if sheet is not None and sheet not in names:
        raise ToolError(f"there is no visible sheet {sheet!r}; sheets: {join_first(names)}")
    chosen = [one for one in book.sheets if sheet in (None, one.name)]
    return [FoundTable(one.name, _trim(tuple(map(tuple, one.lines())))) for one in chosen]


def _trim(rows: TableRows) -> TableRows:
    """Drop empty rows, so that a table may begin below a title or a gap."""
    return tuple(row for row in rows if any(cell.strip() for cell in row))


def _find_headings(markdown: str) -> list[Heading]:
    found = HEADING.findall(markdown)
    return [Heading(len(marks), _unescape(text).strip()) for marks, text in found]


def _unescape(markdown: str) -> str:
    """Return Markdown without the backslashes before its marks: `\\$5` becomes `$5`."""
    return _ESCAPED.sub(r"\1", markdown)


def _drop_arrows(rows: TableRows) -> TableRows:
    """Return a table of a page without the arrows of its head."""
    return tuple(tuple(cell.strip(_ARROWS) for cell in row) for row in rows[:1]) + rows[1:]


def find_tables(text: str) -> list[TableRows]:
    """Find the tables of Markdown: a head, a rule below it, and all lines that have bars."""
    found: list[TableRows] = []
    lines = text.splitlines()
    at = 1
    while at < len(lines):
        end = at + 1
        if "|" in lines[at - 1] and "-" in lines[at] and _RULE.match(lines[at]):
            while end < len(lines) and "|" in lines[end]:
                end += 1
            found.append(tuple(map(_split_row, [lines[at - 1], *lines[at + 1 : end]])))
        at = end
    return found


def _split_row(line: str) -> tuple[str, ...]:
    bare = line.strip().removeprefix("|")
    bare = bare if bare.endswith("\\|") else bare.removesuffix("|")
    cells = (cell.replace("\\|", "|").strip(" *`") for cell in _CELLS.split(bare))
    return tuple(map(_unescape, cells))
