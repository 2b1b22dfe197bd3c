"""Checks of files, texts, documents, pictures, media, pages and archives."""

import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from gta_bench.checks.delivery import CheckedFile, CheckedWork
from gta_bench.checks.numbers import find_numbers
from gta_bench.checks.outcome import (
    CheckBroken,
    Outcome,
    compare_number,
    compare_text,
    normalize,
    shorten,
)
from gta_bench.confine.limits import JailLimits
from gta_bench.content.browser import WebPage, missing_browser, show_page
from gta_bench.content.docx import DocxContent
from gta_bench.content.images import ImageContent
from gta_bench.content.libreoffice import convert, missing_office
from gta_bench.content.links import (
    References,
    find_html_references,
    find_markdown_references,
    resolve_reference,
)
from gta_bench.content.media import MediaInfo, measure_sound
from gta_bench.content.members import ZipContent
from gta_bench.content.needs import require
from gta_bench.content.pdf import PdfContent, read_pdf
from gta_bench.content.pptx import PptxContent, SlideChart, SlidePicture
from gta_bench.content.text import TextContent
from gta_bench.content.xlsx import XlsxContent
from gta_bench.errors import ConfinedError, ToolError, join_first
from gta_bench.records import checks as kinds

PLACEHOLDERS: Final = (
    r"lorem ipsum", r"\btodo\b", r"\btbd\b", r"\[insert\b", r"\{\{", r"\bxxx+\b",
    r"\[your [a-z ]{1,40}\]", r"placeholder text",
)  # fmt: skip
_MARKS: Final = dict.fromkeys(map(ord, "*_`\"'"))
MOST_NUMBERS: Final = 50  # different ones in an answer; with more, one of them fits by chance
REGEX: Final = """
import json, re
from pathlib import Path

def prepare():
    return {}

def finish(names):
    asked = json.loads(Path("asked.json").read_text(encoding="utf-8"))
    text = Path("text").read_text(encoding="utf-8")
    return str(sum(1 for _ in re.finditer(asked, text, re.MULTILINE)))
"""
# Processor time decides, so that a busy machine changes no score.
REGEX_LIMITS: Final = JailLimits(wall_seconds=60.0, cpu_seconds=10)


def in_range(where: str, what: str, value: float, wanted: kinds.WantedRange) -> Outcome:
    """Check that a number is in a range."""
    low = "" if wanted.min is None else f"at least {wanted.min:g}"
    high = "" if wanted.max is None else f"at most {wanted.max:g}"
    holds = (wanted.min is None or value >= wanted.min) and (
        wanted.max is None or value <= wanted.max
    )
    said = " and ".join(filter(None, (low, high)))
    return Outcome(holds, where, f"{value:,.10g} {what}", said)


def _find_outside(
    where: str, *sizes: tuple[str, float, kinds.WantedRange | None]
) -> Outcome | None:
    """Return the outcome of the first size that is not in its range, or None."""
    for what, value, wanted in sizes:
        if wanted is not None and not (found := in_range(where, what, value, wanted)).holds:
            return found
    return None


def check_exists(check: kinds.FileExists, work: CheckedWork) -> Outcome:
    """A delivered file that is not empty."""
    file = work.find(check.file)
    size = f"{len(file.data):,} bytes"
    blank = not file.data.strip()
    found = f"{size} of white space" if blank and file.data else size
    return Outcome(not blank, file.path, found, "a file with content")


def check_kind(check: kinds.FileIsKind, work: CheckedWork) -> Outcome:
    """A file whose bytes are of a kind."""
    file = work.find(check.file)
    found = file.identity.kind if file.data else "empty"
    return Outcome(found == check.kind, file.path, found, check.kind)


async def check_opens(check: kinds.FileOpens, work: CheckedWork) -> Outcome:
    """A file that its reader can read."""
    file = work.find(check.file)
    await work.read_whole(file)
    return Outcome(True, file.path, "a file that opens")


def check_not_input(check: kinds.FileNotInput, work: CheckedWork) -> Outcome:
    """A file that is no copy of an input."""
    file = work.find(check.file)
    copied = work.is_input(file)
    return Outcome(not copied, file.path, "a copy of an input" if copied else "another content",
                   "work of its own")  # fmt: skip


def match_texts(
    where: str,
    text: str,
    *,
    all_: Iterable[str] | None = None,
    any_: Iterable[str] | None = None,
    none: Iterable[str] | None = None,
    case: bool = False,
) -> Outcome:
    """Check which texts occur in another."""
    plain = normalize(text, case=case)

    def occurs(one: str) -> bool:
        return normalize(one, case=case) in plain

    missing = [one for one in all_ or () if not occurs(one)]
    if missing:
        return Outcome(False, where, f"no {join_first([repr(one) for one in missing])}", "it")
    choices = list(any_ or ())
    if choices and not any(map(occurs, choices)):
        return Outcome(False, where, "none of them", join_first([repr(one) for one in choices]))
    present = [one for one in none or () if occurs(one)]
    if present:
        return Outcome(False, where, join_first([repr(one) for one in present]), "no such text")
    return Outcome(True, where, "every wanted text")


async def check_contains(check: kinds.TextContains, work: CheckedWork) -> Outcome:
    """Texts that a file shows, and texts that it has nowhere."""
    file = work.find(check.file)
    text = await work.text(file)
    found = match_texts(file.path, text, all_=check.all, any_=check.any, case=check.case)
    if found.holds and check.none:
        whole = await work.whole_text(file)
        return match_texts(file.path, whole, none=check.none, case=check.case)
    return found


def check_answer(check: kinds.AnswerContains, work: CheckedWork) -> Outcome:
    """Texts and a number in the final answer."""
    found = match_texts("the answer", work.answer, all_=check.all, any_=check.any)
    if not found.holds or check.number is None:
        return found
    read = list(dict.fromkeys(value for one in find_numbers(work.answer) for value in one))
    if len(read) > MOST_NUMBERS:
        most = f"at most {MOST_NUMBERS}, of which one is {check.number:,.10g}"
        return Outcome(False, "the answer", f"{len(read)} different numbers", most)
    numbers = [
        compare_number("the answer", value, check.number, within=check.within) for value in read
    ]
    best = next((one for one in numbers if one.holds), None)
    if best is not None:
        return best
    seen = join_first([one.found for one in numbers]) or "no number"
    return Outcome(False, "the answer", seen, f"{check.number:,.10g}")


def check_answer_line(check: kinds.AnswerLine, work: CheckedWork) -> Outcome:
    """The last line of the final answer; marks of Markdown and a final period do not count."""
    where = "the last line of the answer"
    lines = [line for line in work.answer.splitlines() if line.strip()]
    last = lines[-1].translate(_MARKS).strip() if lines else ""
    start, colon, found = last.partition(":")
    if not colon or normalize(start) != normalize(check.start):
        return Outcome(False, where, repr(shorten(last)), f"{check.start}: {check.equals}")
    found = found.strip().removesuffix(".")
    if isinstance(check.equals, str):
        return compare_text(where, found, check.equals)
    return compare_number(where, found, check.equals, within=check.within)


async def check_regex(check: kinds.TextRegex, work: CheckedWork) -> Outcome:
    """So many matches; in the jail, because a pattern can take forever on a hostile text."""
    file = work.find(check.file)
    text = await work.text(file)
    try:
        re.compile(check.pattern, re.MULTILINE)
    except re.error as exc:
        raise CheckBroken(f"{check.pattern!r} is not a regular expression: {exc}.") from exc
    wanted = kinds.WantedRange(min=check.min, max=check.max)
    what = f"matches of {check.pattern!r}"
    try:
        done = await work.jail.run_snippet(
            "",
            driver=REGEX,
            files={
                "asked.json": json.dumps(check.pattern).encode(),
                "text": text.encode("utf-8", "replace"),
            },
            limits=REGEX_LIMITS,
            label="The pattern",
        )
    except ConfinedError as exc:
        if exc.cause != "timeout":
            raise
        # Right work is matched in time, as the pilot of a task shows.
        took = f"finding {what} took more than {REGEX_LIMITS.cpu_seconds} s"
        return Outcome(False, file.path, took)
    return in_range(file.path, what, int(str(done.value)), wanted)


async def check_placeholder(check: kinds.TextNoPlaceholder, work: CheckedWork) -> Outcome:
    """No text that stands for a missing one."""
    file = work.find(check.file)
    text = normalize(await work.text(file))
    patterns = [*PLACEHOLDERS, *(re.escape(normalize(one)) for one in check.more or ())]
    found = next(filter(None, (re.search(pattern, text) for pattern in patterns)), None)
    if found is None:
        return Outcome(True, file.path, "no placeholder")
    return Outcome(False, file.path, repr(found[0]), "no placeholder")


async def check_heading(check: kinds.DocHeading, work: CheckedWork) -> Outcome:
    """Headings in an order, with others between them."""
    file = work.find(check.file)
    found = await work.headings(file)
    rest = iter([normalize(one.text) for one in found if check.level in (None, one.level)])
    for wanted in check.texts:
        if not any(normalize(wanted) in one for one in rest):
            listed = join_first([repr(shorten(one.text)) for one in found]) or "no heading"
            return Outcome(False, file.path, listed, f"the heading {wanted!r} in this order")
    return Outcome(True, file.path, "all headings in order")


async def check_size(check: kinds.DocSize, work: CheckedWork) -> Outcome:
    """Pages as LibreOffice prints them, and words."""
    file = work.find(check.file)
    found = Outcome(True, file.path, "the size")
    if check.words is not None:
        words = len(re.findall(r"\w+(?:[-'\u2019]\w+)*", await work.text(file)))
        found = in_range(file.path, "words", words, check.words)
    if check.pages is not None and found.holds:
        found = in_range(file.path, "pages", await _count_pages(file, work), check.pages)
    return found


async def _count_pages(file: CheckedFile, work: CheckedWork) -> int:
    content = await work.read(file)
    match content:
        case PdfContent():
            return content.page_count
        case PptxContent():
            return content.slide_count
        case DocxContent() | XlsxContent():
            require(missing_office(work.jail))
            name = f"file.{file.identity.kind}"
            printed = await convert(work.jail, name, file.data, to="pdf")
            return (await read_pdf(printed, work.jail, scans=0)).page_count
        case _:
            raise ToolError(f"is {file.identity.kind}, which has no pages")


async def check_parts(check: kinds.DocParts, work: CheckedWork) -> Outcome:
    """At least so many parts of each kind."""
    file = work.find(check.file)
    counts = await _count_parts(file, work)
    for name in ("pictures", "charts", "tables", "notes"):
        wanted = getattr(check, name)
        if wanted is None:
            continue
        if name not in counts:
            raise ToolError(f"{name} of {file.identity.kind} files cannot be counted")
        if counts[name] < wanted:
            return Outcome(False, file.path, f"{counts[name]} {name}", f"at least {wanted}")
    return Outcome(True, file.path, "every wanted part")


async def _count_parts(file: CheckedFile, work: CheckedWork) -> dict[str, int]:
    content = await work.read_whole(file)
    match content:
        case DocxContent():
            tables = len(await work.tables(file))
            return {"pictures": content.pictures, "charts": content.charts, "tables": tables}
        case PptxContent():
            parts = [part for slide in content.slides for part in slide.parts]
            return {
                "pictures": sum(isinstance(part, SlidePicture) for part in parts),
                "charts": sum(isinstance(part, SlideChart) for part in parts),
                "tables": len(await work.tables(file)),
                "notes": sum(bool(slide.notes) for slide in content.slides),
            }
        case XlsxContent():
            return {"pictures": content.pictures, "charts": content.charts}
        case PdfContent():
            return {"tables": len(await work.tables(file))}
        case TextContent() if file.identity.kind in ("html", "markdown"):
            shown = _references(file, content.text).loads
            pictures = sum(bool(re.search(r"\.(png|jpe?g|gif|svg|webp)$|^data:image", one))
                           for one in shown)  # fmt: skip
            return {"pictures": pictures, "tables": len(await work.tables(file))}
        case _:
            raise ToolError(f"is {file.identity.kind}, which has no such parts")


async def check_image(check: kinds.ImageFacts, work: CheckedWork) -> Outcome:
    """Size in pixels, and more than one color."""
    file = work.find(check.file)
    content = await work.read(file)
    if not isinstance(content, ImageContent):
        raise ToolError(f"is {file.identity.kind}, not a picture")
    outside = _find_outside(
        file.path,
        ("pixels of width", content.width, check.width),
        ("pixels of height", content.height, check.height),
    )
    if outside is not None:
        return outside
    if check.not_blank and all(preview.blank for preview in content.previews):
        return Outcome(False, file.path, "a single color", "a picture")
    return Outcome(True, file.path, f"{content.width} x {content.height} pixels")


async def check_media(check: kinds.MediaFacts, work: CheckedWork) -> Outcome:
    """Length, size, streams and share of silence."""
    file = work.find(check.file)
    content = await work.read(file)
    if not isinstance(content, MediaInfo):
        raise ToolError(f"is {file.identity.kind}, not audio or video")
    for name in ("video", "audio"):
        wanted, there = getattr(check, name), getattr(content, name) is not None
        if wanted is not None and wanted != there:
            return Outcome(False, file.path, f"{name}" if there else f"no {name}",
                           name if wanted else f"no {name}")  # fmt: skip
    film = content.video
    outside = _find_outside(
        file.path,
        ("seconds", content.seconds or 0.0, check.seconds),
        ("pixels of width", film.width if film else 0, check.width),
        ("pixels of height", film.height if film else 0, check.height),
    )
    if outside is not None:
        return outside
    if check.silence is not None:
        if content.audio is None:
            return Outcome(False, file.path, "no audio", "audio")
        share = (await measure_sound(file.data, work.jail, content)).silent
        wanted = f"at most {check.silence:.0%}"
        return Outcome(share <= check.silence, file.path, f"{share:.0%} silence", wanted)
    return Outcome(True, file.path, "the wanted length, size and streams")


def _references(file: CheckedFile, text: str) -> References:
    if file.identity.kind == "markdown":
        return find_markdown_references(text)
    return find_html_references(text)


async def check_links(check: kinds.HtmlLinks, work: CheckedWork) -> Outcome:
    """Local files and anchors that exist."""
    file = work.find(check.file)
    content = await work.read(file)
    if not isinstance(content, TextContent):
        raise ToolError(f"is {file.identity.kind}, not a page or Markdown")
    references = _references(file, content.text)
    lost = [one for one in references.files
            if resolve_reference(one, base=file.path) not in work.paths]  # fmt: skip
    lost += references.lost_anchors
    if lost:
        return Outcome(False, file.path, f"broken links: {join_first(lost)}", "links that resolve")
    return Outcome(True, file.path, "links that resolve")


async def check_page(check: kinds.HtmlOpens, work: CheckedWork) -> Outcome:
    """A page that a browser opens without script errors."""
    file = work.find(check.file)
    page = await _open_page(file, work)
    if page.faults or not page.scripts:
        fault = shorten(page.faults[0]) if page.faults else "scripts that do not end"
        return Outcome(False, file.path, fault, "no script error")
    return Outcome(True, file.path, "a page without script errors")


async def check_sight(check: kinds.HtmlShows, work: CheckedWork) -> Outcome:
    """Texts that a reader of a page sees."""
    file = work.find(check.file)
    seen = normalize((await _open_page(file, work)).seen)
    lacking = [one for one in check.all if normalize(one) not in seen]
    if lacking:
        return Outcome(False, file.path, f"does not show {join_first(lacking)}", "all of the texts")
    return Outcome(True, file.path, "shows all of the texts")


async def _open_page(file: CheckedFile, work: CheckedWork) -> WebPage:
    """Open a page in a browser, once for all checks of a work."""
    content = await work.read(file)
    if not isinstance(content, TextContent) or file.identity.kind != "html":
        raise ToolError(f"is {file.identity.kind}, not a page")
    require(missing_browser(work.jail))

    async def show() -> WebPage:
        paths = {resolve_reference(one, base=file.path)
                 for one in _references(file, content.text).files}  # fmt: skip
        beside = {path: work.open(path).data for path in paths if path in work.paths}
        return await show_page(file.data, work.jail, path=file.path, beside=beside)

    return await work.once("shown", file, show)


async def check_members(check: kinds.ZipMembers, work: CheckedWork) -> Outcome:
    """Files that an archive has or lacks."""
    file = work.find(check.file)
    content = await work.read(file)
    if not isinstance(content, ZipContent):
        raise ToolError(f"is {file.identity.kind}, not a zip archive")

    # As `zip` and `tar` write the names of a folder's files.
    names = [name.removeprefix("./") for name in content.names]

    def matching(patterns: Iterable[str] | None) -> Iterator[tuple[str, list[str]]]:
        for pattern in patterns or ():
            yield pattern, [name for name in names if fnmatchcase(name, pattern)]

    lacking = [pattern for pattern, found in matching(check.all) if not found]
    if lacking:
        return Outcome(False, file.path, join_first(names) or "no file",
                       join_first(lacking))  # fmt: skip
    extra = [name for _, found in matching(check.none) for name in found]
    if extra:
        return Outcome(False, file.path, join_first(extra), "no such file")
    return Outcome(True, file.path, "the wanted files")
