"""Text of every kind: plain, Markdown, JSON, code, web pages, drawings in SVG."""

import asyncio
import json
import posixpath
import re
from typing import Final
from urllib.parse import unquote

from gta_bench.content.browser import WebPage, missing_browser, show_drawing, show_page
from gta_bench.content.leftovers import unseen_in_markup
from gta_bench.content.links import (
    References,
    html_references,
    markdown_references,
    resolve,
)
from gta_bench.content.needs import require
from gta_bench.content.text import TextContent, read_text
from gta_bench.errors import GtaError
from gta_bench.judging.showing.draft import Draft, Subject, settled, words_in

DATA: Final = re.compile(r"data:[\w/+.-]{1,60};base64,[A-Za-z0-9+/=%]{200,}")
PAGE_TEXT: Final = "[Text of the page as a browser shows it]\n"
SOURCE: Final = "[Source of the page]\n"
MOST_BYTES: Final = 4 << 20
ABOVE: Final = re.compile(r"^(?:/|\.\./)+")
SCREENS: Final = 0.5  # of the room for text, at most, goes to what the browser shows


async def show_text(draft: Draft) -> None:
    """The text itself."""
    content = await _decoded(draft)
    if content is not None:
        draft.probe("lines", content.text.count("\n") + 1)
        draft.probe("words", words_in(content.text))
        draft.text(content.text)


async def show_markdown(draft: Draft) -> None:
    """The text, and whether what it refers to is there."""
    content = await _decoded(draft)
    if content is not None:
        draft.probe("words", words_in(content.text))
        references = markdown_references(content.text)
        draft.probe("pictures", len(references.loads))
        _add_references(draft, references)
        draft.text(content.text)


async def show_json(draft: Draft) -> None:
    """The text, and whether it is JSON; a file of JSON lines is looked at line by line."""
    content = await _decoded(draft)
    if content is None:
        return
    draft.probe("valid JSON", await asyncio.to_thread(_is_json, draft.subject.path, content.text))
    draft.text(content.text)


def _is_json(path: str, text: str) -> bool:
    parts = text.splitlines() if path.lower().endswith(".jsonl") else [text]
    try:
        for part in parts:
            if part.strip() or len(parts) == 1:
                json.loads(part)
    except (ValueError, RecursionError):
        return False
    return True


async def show_html(draft: Draft) -> None:
    """The page in a browser from top to bottom, its text there, its source."""
    subject = draft.subject
    content = await _decoded(draft)
    if content is None:
        return
    page = await settled(_page(subject))
    if isinstance(page, GtaError):
        draft.missed("pictures of the page", page)
    else:
        _add_page(draft, page)
        shown = f"{PAGE_TEXT}{page.text.strip()}\n\n"
        most = int(subject.limits.characters * SCREENS)
        draft.text(shown, what="text in the browser", most=most)
    references = html_references(content.text)
    _add_references(draft, references)
    if not isinstance(page, GtaError):
        _add_refused(draft, page, references)
        draft.hidden("words that the page does not show", page.unseen, shown=True)
    _add_unseen(draft, content.text)
    draft.text(SOURCE + _without_data(draft, content.text), what="source")


async def _page(subject: Subject) -> WebPage:
    require(missing_browser(subject.equipment.jail))
    return await show_page(
        subject.data,
        subject.jail,
        path=ABOVE.sub("", posixpath.normpath(subject.path)),
        beside=subject.beside,
        most_pictures=subject.limits.pages,
        longest_side=subject.limits.picture_side,
        seconds=subject.limits.seconds,
    )


def _add_page(draft: Draft, page: WebPage) -> None:
    draft.probe("title", page.title[:200])
    draft.probe("words", words_in(page.text))
    draft.probe("height in a window of 1280 pixels", page.height)
    for strip in page.strips:
        bottom = min(strip.top + strip.height, page.height)
        label = "the page" if len(page.strips) == 1 else f"the page, {strip.top} to {bottom} pixels"
        draft.picture(strip.data, label)
    shown = sum(strip.height for strip in page.strips)
    if shown < page.height:
        draft.cut.append(f"the page below {shown:,} of {page.height:,} pixels is not shown")
    width = max((strip.width for strip in page.strips), default=page.width)
    if width < page.width:
        draft.cut.append(f"the page right of {width:,} of {page.width:,} pixels is not shown")
    if not page.scripts:
        draft.findings.append("its scripts come to no end: the page is shown without them")
    if page.faults:
        draft.listed("script errors", page.faults)


def _add_refused(draft: Draft, page: WebPage, references: References) -> None:
    """What scripts asked for; what the source itself names is told by `_add_references`."""
    told = {
        *references.remote,
        *(resolve(lost, base=draft.subject.path) for lost in references.files),
    }
    more = [address for address in page.refused if unquote(address) not in told]
    if more:
        draft.listed("further requests that got no answer", more)


def _add_references(draft: Draft, references: References) -> None:
    draft.probe("links", len(references.leads))
    draft.listed("broken links", [*draft.subject.lost, *references.lost_anchors])
    if references.remote:
        draft.listed("content from the web that was not loaded", references.remote)


async def show_svg(draft: Draft) -> None:
    """The drawing, and its source."""
    subject = draft.subject
    content = await _decoded(draft)
    if content is None:
        return
    page = await settled(_drawing(subject))
    if isinstance(page, GtaError):
        draft.missed("a picture of the drawing", page)
    else:
        for strip in page.strips:
            draft.picture(strip.data, "the drawing")
    references = html_references(content.text)
    if references.remote:
        draft.listed("content from the web that was not loaded", references.remote)
    _add_unseen(draft, content.text)
    draft.text(_without_data(draft, content.text), what="source")


def _add_unseen(draft: Draft, source: str) -> None:
    for unseen in unseen_in_markup(source):
        draft.hidden(unseen.why, unseen.words, shown=True)


async def _drawing(subject: Subject) -> WebPage:
    require(missing_browser(subject.equipment.jail))
    limits = subject.limits
    return await show_drawing(
        subject.data, subject.jail, longest_side=limits.picture_side, seconds=limits.seconds
    )


async def _decoded(draft: Draft) -> TextContent | None:
    content = await settled(asyncio.to_thread(read_text, draft.whole_lines(MOST_BYTES)))
    if isinstance(content, GtaError):
        draft.missed("its text", content)
        return None
    draft.probe("encoding", content.encoding)
    return content


def _without_data(draft: Draft, source: str) -> str:
    """The source without the bytes of embedded files, which no reader wants as letters."""
    short, count = DATA.subn(lambda found: f"data:… ({len(found[0]):,} characters)", source)
    if count:
        draft.cut.append(f"the bytes of {count:,} embedded files are left out of the source")
    return short
