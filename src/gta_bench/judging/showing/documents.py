"""Show Word, PowerPoint and PDF files."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from gta_bench.confine.jail import Jail
from gta_bench.content.docx import DocxContent, read_docx
from gta_bench.content.leftovers import PackagePart, find_leftovers
from gta_bench.content.members import Member
from gta_bench.content.office import PackageFacts, read_package
from gta_bench.content.pdf import PageImages, PdfContent, read_pdf
from gta_bench.content.pptx import PptxContent, SlideChart, SlidePicture, SlideTable, read_pptx
from gta_bench.content.xlsx import XlsxContent
from gta_bench.errors import GtaError
from gta_bench.judging.showing.draft import Draft, Subject, count_words, describe_rest, settle
from gta_bench.judging.showing.pages import add_pages, print_pages, render_pages

FEW_WORDS: Final = 5  # a title may have as many
# Parts of a package that its reader does not show.
UNREAD_PARTS: Final = (
    "word/header", "word/footer", "ppt/comments", "xl/comments", "xl/threadedComments",
)  # fmt: skip
OfficeContent = DocxContent | PptxContent | XlsxContent
_Content = TypeVar("_Content", bound=OfficeContent)
EMOJI: Final = re.compile("[\U0001f300-\U0001faff]")


async def read_office(
    subject: Subject, read: Callable[[bytes, Jail], Awaitable[_Content]]
) -> tuple[_Content | GtaError, PageImages | GtaError, PackageFacts | GtaError]:
    """Read an Office file's content, its printed pages and its package at the same time."""
    return await asyncio.gather(
        settle(read(subject.data, subject.jail)),
        settle(print_pages(subject)),
        settle(read_package(subject.data)),
    )


async def show_docx(draft: Draft) -> None:
    """Show a Word document as Markdown and as pages."""
    content, pages, package = await read_office(draft.subject, read_docx)
    add_pages(draft, pages)
    if (found := draft.take("its text", content)) is not None:
        draft.add_fact("words", count_words(found.markdown))
        draft.add_fact("pictures", found.pictures)
        draft.add_fact("charts", found.charts)
        if found.uncounted:
            draft.cut.append(
                "some labels of its lists are plain numbers in its text, or lack there"
            )
        draft.add_text(found.markdown)
    _note_emoji(draft)
    add_package(draft, package, content)


async def show_pptx(draft: Draft) -> None:
    """Show a deck: the slides, and their texts, tables, charts and notes."""
    content, pages, package = await read_office(draft.subject, read_pptx)
    add_pages(draft, pages, noun="slide")
    _add_pptx(draft, content)
    _note_emoji(draft)
    add_package(draft, package, content)


def _add_pptx(draft: Draft, content: PptxContent | GtaError) -> None:
    if isinstance(content, GtaError):
        draft.add_missing("its text", content)
        return
    parts = [part for slide in content.slides for part in slide.parts]
    if not draft.pictures:
        draft.add_fact("slides", content.slide_count)
    draft.add_fact("hidden slides", sum(slide.hidden for slide in content.slides))
    draft.add_fact("words", count_words(content.as_text()))
    for name, kind in (("tables", SlideTable), ("charts", SlideChart), ("pictures", SlidePicture)):
        draft.add_fact(name, sum(isinstance(part, kind) for part in parts))
    draft.add_fact("slides with notes", sum(bool(slide.notes) for slide in content.slides))
    notes = " ".join(slide.notes for slide in content.slides)
    draft.add_hidden("speaker notes", notes, shown=True)
    hidden = " ".join(slide.as_text() for slide in content.slides if slide.hidden)
    draft.add_hidden("slides that are not shown", hidden, shown=True)
    draft.add_text(content.as_text())
    if len(content.slides) < content.slide_count:
        first = len(content.slides) + 1
        draft.cut.append(describe_rest("slide", first, content.slide_count, how="shown as text"))


async def show_pdf(draft: Draft) -> None:
    """Show the pages of a PDF file, their text and tables; find its attachments."""
    subject = draft.subject
    text, pages = await asyncio.gather(
        settle(read_pdf(subject.data, subject.jail, scans=0)),
        settle(render_pages(subject, subject.data)),
    )
    add_pages(draft, pages)
    _add_pdf(draft, text)


def _add_pdf(draft: Draft, content: PdfContent | GtaError) -> None:
    if isinstance(content, GtaError):
        draft.add_missing("its text", content)
        return
    without = [page.number for page in content.pages if page.origin == "none"]
    draft.add_fact("words", sum(count_words(page.text) for page in content.pages))
    draft.add_fact("tables", sum(len(page.tables) for page in content.pages))
    draft.add_fact("pages without text", len(without))
    add_properties(draft, content.properties, signed=content.signed)
    draft.add_hidden("annotations", " ".join(content.remarks), shown=True)
    draft.add_fact("form fields", len(content.fields))
    if content.scripts:
        draft.cut.append("its scripts (JavaScript) are not shown and were not run")
    if content.layers_off:
        draft.cut.append("what its layers draw that are switched off is not in the pictures")
    if content.xfa:
        draft.cut.append("its form in XML (XFA) is shown as words only, without its pictures")
    if len(without) < len(content.pages):
        draft.add_text("\n\n".join(page.as_text() for page in content.pages))
    elif without:
        draft.findings.append("no page has text of its own: they are scans, drawings or empty")
    draft.attached = tuple(
        Member(one.name, len(one.data or b""), one.data) for one in content.attachments
    )
    beside = content.beside_text()
    if beside:
        draft.add_text(f"\n\n{beside}\n", what="notes and fields")
    read = len(content.pages)
    if read < content.page_count:
        draft.cut.append(describe_rest("page", read + 1, content.page_count, how="shown as text"))


def _note_emoji(draft: Draft) -> None:
    """Tell the judge that LibreOffice 7.4 leaves color emoji out of its PDFs."""
    if draft.pictures and any(EMOJI.search(text) for text in draft.texts):
        draft.cut.append(
            "the pictures lack emoji, which LibreOffice does not draw; the text has them"
        )


def add_package(
    draft: Draft, facts: PackageFacts | GtaError, content: OfficeContent | GtaError
) -> None:
    """Add what an Office file has besides its content, and all text that its reader left out."""
    if isinstance(facts, GtaError):
        return  # reading its text has reported the same problem
    if facts.prefixed:
        draft.findings.append(
            "the names of its lists of parts have a prefix; a copy without it was rendered"
        )
    if facts.macros:
        draft.findings.append("it holds macros; they were not run")
    draft.add_list("linked content that was not loaded", facts.external)
    draft.add_list("embedded files, not shown", facts.embedded)
    add_properties(draft, facts.properties, signed=facts.signed)
    draft.add_unseen(facts.unseen)
    draft.read = "" if isinstance(content, GtaError) else content.as_text()
    if isinstance(content, XlsxContent):  # neighboring cells do not form a sentence
        draft.read = draft.read.replace(",", "\n")
    add_leftovers(draft, facts.parts)


def add_leftovers(draft: Draft, parts: Sequence[PackagePart]) -> None:
    """Add the text of a package that its reader did not show, part by part."""
    blocks = [
        "\n".join([f"[{part.name}]", *part.texts])
        for part in find_leftovers(parts, draft.read, whole=UNREAD_PARTS)
    ]
    if blocks:
        text = "\n\n" + "\n\n".join(blocks) + "\n"
        draft.read += text
        draft.add_text(text, what="further parts")


def add_properties(
    draft: Draft, properties: Sequence[tuple[str, str]], *, signed: bool = False
) -> None:
    """Add title, keywords and the like: short ones as facts, long ones only by name."""
    short = [f"{name}: {value}" for name, value in properties if count_words(value) <= FEW_WORDS]
    if short:
        draft.add_fact("properties", "; ".join(short))
    long = " ".join(value for _, value in properties if count_words(value) > FEW_WORDS)
    draft.add_hidden("its properties", long, shown=False)
    if signed:
        draft.cut.append("its properties are shown without who made it and when")
