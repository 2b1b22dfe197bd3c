"""Show text of every kind: plain, Markdown, JSON, code, web pages, SVG drawings."""

import asyncio
import json
import posixpath
import re
from typing import Final
from urllib.parse import unquote

from gta_bench.content.browser import WebPage, missing_browser, show_drawing, show_page
from gta_bench.content.leftovers import find_unseen_markup
from gta_bench.content.links import (
    References,
    find_html_references,
    find_markdown_references,
    resolve_reference,
)
from gta_bench.content.needs import require
from gta_bench.content.text import TextContent, read_text
from gta_bench.judging.showing.draft import Draft, Subject, count_words, settle

DATA: Final = re.compile(r"data:[\w/+.-]{1,60};base64,[A-Za-z0-9+/=%]{200,}")
PAGE_TEXT: Final = "[Text of the page as a browser shows it]\n"
SOURCE: Final = "[Source of the page]\n"
MOST_BYTES: Final = 4 << 20
ABOVE: Final = re.compile(r"^(?:/|\.\./)+")
SCREENS: Final = 0.5  # the largest share of the text for what the browser shows


async def show_text(draft: Draft) -> None:
    """Show the text itself."""
    content = await _decode(draft)
    if content is not None:
        draft.add_fact("lines", content.text.count("\n") + 1)
        draft.add_fact("words", count_words(content.text))
        draft.add_text(content.text)


async def show_markdown(draft: Draft) -> None:
    """Show the text, and which of its references are broken."""
    content = await _decode(draft)
    if content is not None:
        draft.add_fact("words", count_words(content.text))
        references = find_markdown_references(content.text)
        draft.add_fact("pictures", len(references.loads))
        _add_references(draft, references)
        draft.add_text(content.text)


async def show_json(draft: Draft) -> None:
    """Show the text, and whether it is valid JSON; JSON lines are checked line by line."""
    content = await _decode(draft)
    if content is None:
        return
    draft.add_fact(
        "valid JSON", await asyncio.to_thread(_is_json, draft.subject.path, content.text)
    )
    draft.add_text(content.text)


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
    """Show the page as a browser renders it, its text there, and its source."""
    subject = draft.subject
    content = await _decode(draft)
    if content is None:
        return
    page = draft.take("pictures of the page", await settle(_render_page(subject)))
    if page is not None:
        _add_page(draft, page)
        shown = f"{PAGE_TEXT}{page.text.strip()}\n\n"
        most = int(subject.limits.characters * SCREENS)
        draft.add_text(shown, what="text in the browser", most=most)
    references = find_html_references(content.text)
    _add_references(draft, references)
    if page is not None:
        _add_refused(draft, page, references)
        draft.add_hidden("words that the page does not show", page.unseen, shown=True)
    draft.add_unseen(find_unseen_markup(content.text))
    draft.add_text(SOURCE + _without_data(draft, content.text), what="source")


async def _render_page(subject: Subject) -> WebPage:
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
    draft.add_fact("title", page.title[:200])
    draft.add_fact("words", count_words(page.text))
    draft.add_fact("height in a window of 1280 pixels", page.height)
    for strip in page.strips:
        bottom = min(strip.top + strip.height, page.height)
        label = "the page" if len(page.strips) == 1 else f"the page, {strip.top} to {bottom} pixels"
        draft.add_picture(strip.data, label)
    shown = sum(strip.height for strip in page.strips)
    if shown < page.height:
        draft.cut.append(f"the page below {shown:,} of {page.height:,} pixels is not shown")
    width = max((strip.width for strip in page.strips), default=page.width)
    if width < page.width:
        draft.cut.append(f"the page right of {width:,} of {page.width:,} pixels is not shown")
    if not page.scripts:
        draft.findings.append("its scripts come to no end: the page is shown without them")
    draft.add_list("script errors", page.faults)


def _add_refused(draft: Draft, page: WebPage, references: References) -> None:
    """List what scripts requested, except what `_add_references` lists from the source."""
    known = {
        *references.remote,
        *(resolve_reference(lost, base=draft.subject.path) for lost in references.files),
    }
    more = [address for address in page.refused if unquote(address) not in known]
    draft.add_list("further requests that got no answer", more)


def _add_references(draft: Draft, references: References) -> None:
    draft.add_fact("links", len(references.leads))
    lost = [*draft.subject.lost, *references.lost_anchors]
    draft.add_list("broken links", lost, even_empty=True)
    draft.add_list("content from the web that was not loaded", references.remote)


async def show_svg(draft: Draft) -> None:
    """Show the drawing, and its source."""
    subject = draft.subject
    content = await _decode(draft)
    if content is None:
        return
    page = draft.take("a picture of the drawing", await settle(_render_drawing(subject)))
    for strip in page.strips if page is not None else ():
        draft.add_picture(strip.data, "the drawing")
    references = find_html_references(content.text)
    draft.add_list("content from the web that was not loaded", references.remote)
    draft.add_unseen(find_unseen_markup(content.text))
    draft.add_text(_without_data(draft, content.text), what="source")


async def _render_drawing(subject: Subject) -> WebPage:
    require(missing_browser(subject.equipment.jail))
    limits = subject.limits
    return await show_drawing(
        subject.data, subject.jail, longest_side=limits.picture_side, seconds=limits.seconds
    )


async def _decode(draft: Draft) -> TextContent | None:
    found = await settle(asyncio.to_thread(read_text, draft.read_lines(MOST_BYTES)))
    content = draft.take("its text", found)
    if content is not None:
        draft.add_fact("encoding", content.encoding)
    return content


def _without_data(draft: Draft, source: str) -> str:
    """Remove the encoded bytes of embedded files from the source, and note it."""
    short, count = DATA.subn(lambda found: f"data:… ({len(found[0]):,} characters)", source)
    if count:
        draft.cut.append(f"the bytes of {count:,} embedded files are left out of the source")
    return short
