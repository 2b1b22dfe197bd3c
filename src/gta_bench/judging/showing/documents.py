"""Documents with pages: Word, PowerPoint, PDF, OpenDocument, rich text, old Office files."""

import asyncio
import re
from typing import Final

from gta_bench.content.docx import DocxContent, read_docx
from gta_bench.content.office import PackageFacts, read_package
from gta_bench.content.pdf import PdfContent, read_pdf
from gta_bench.content.pptx import PptxContent, SlideChart, SlidePicture, SlideTable, read_pptx
from gta_bench.errors import GtaError, ToolUnavailable
from gta_bench.judging.showing.draft import Draft, left_out, settled, words_in
from gta_bench.judging.showing.pages import add_pages, office_pages, office_pdf, page_images

REMARKS: Final = "comments"  # which a requirement may ask for
EMOJI: Final = re.compile("[\U0001f300-\U0001faff]")


async def show_docx(draft: Draft) -> None:
    """Its Markdown, its pages, and how much there is of what."""
    subject = draft.subject
    text, pages, package = await asyncio.gather(
        settled(read_docx(subject.data, subject.jail)),
        settled(office_pages(subject)),
        settled(read_package(subject.data)),
    )
    add_pages(draft, pages)
    _add_docx(draft, text)
    add_emoji(draft)
    add_package(draft, package)


def _add_docx(draft: Draft, content: DocxContent | GtaError) -> None:
    if isinstance(content, GtaError):
        draft.missed("its text", content)
        return
    draft.probe("words", words_in(content.markdown))
    draft.probe("pictures", content.pictures)
    draft.probe("charts", content.charts)
    draft.text(content.markdown)


async def show_pptx(draft: Draft) -> None:
    """The slides' texts, tables, charts and notes, and the slides themselves."""
    subject = draft.subject
    text, pages, package = await asyncio.gather(
        settled(read_pptx(subject.data, subject.jail)),
        settled(office_pages(subject)),
        settled(read_package(subject.data)),
    )
    add_pages(draft, pages, noun="slide")
    _add_pptx(draft, text)
    add_emoji(draft)
    add_package(draft, package)


def _add_pptx(draft: Draft, content: PptxContent | GtaError) -> None:
    if isinstance(content, GtaError):
        draft.missed("its text", content)
        return
    parts = [part for slide in content.slides for part in slide.parts]
    if not draft.pictures:
        draft.probe("slides", content.slide_count)
    draft.probe("hidden slides", sum(slide.hidden for slide in content.slides))
    draft.probe("words", words_in(content.as_text()))
    for name, kind in (("tables", SlideTable), ("charts", SlideChart), ("pictures", SlidePicture)):
        draft.probe(name, sum(isinstance(part, kind) for part in parts))
    draft.probe("slides with notes", sum(bool(slide.notes) for slide in content.slides))
    notes = " ".join(slide.notes for slide in content.slides)
    draft.hidden("speaker notes", notes, shown=True)
    hidden = " ".join(slide.as_text() for slide in content.slides if slide.hidden)
    draft.hidden("slides that are not shown", hidden, shown=True)
    draft.text(content.as_text())
    if len(content.slides) < content.slide_count:
        first = len(content.slides) + 1
        draft.cut.append(left_out("slide", first, content.slide_count, how="shown as text"))


async def show_pdf(draft: Draft) -> None:
    """Its pages, their text and tables."""
    subject = draft.subject
    text, pages = await asyncio.gather(
        settled(read_pdf(subject.data, subject.jail, scans=0)),
        settled(page_images(subject, subject.data)),
    )
    add_pages(draft, pages)
    add_pdf_text(draft, text)


def add_pdf_text(draft: Draft, content: PdfContent | GtaError) -> None:
    """The text of a PDF's pages, and what can be counted in it."""
    if isinstance(content, GtaError):
        draft.missed("its text", content)
        return
    without = [page.number for page in content.pages if page.origin == "none"]
    draft.probe("words", sum(words_in(page.text) for page in content.pages))
    draft.probe("tables", sum(len(page.tables) for page in content.pages))
    draft.probe("pages without text", len(without))
    draft.hidden("its properties", content.properties, shown=False)
    draft.hidden("annotations", content.remarks, shown=False)
    if len(without) < len(content.pages):
        draft.text("\n\n".join(page.as_text() for page in content.pages))
    elif without:
        draft.findings.append("no page has text of its own: they are scans, drawings or empty")
    read = len(content.pages)
    if read < content.page_count:
        draft.cut.append(left_out("page", read + 1, content.page_count, how="shown as text"))


async def show_by_office(draft: Draft) -> None:
    """A document that only LibreOffice reads: its pages, and the text on them."""
    subject = draft.subject
    pdf = await settled(office_pdf(subject))
    if isinstance(pdf, GtaError):
        draft.missed("its pages and text", pdf)
        return
    text, pages = await asyncio.gather(
        settled(read_pdf(pdf, subject.jail, scans=0)), settled(page_images(subject, pdf))
    )
    add_pages(draft, pages)
    add_pdf_text(draft, text)


def add_emoji(draft: Draft) -> None:
    """LibreOffice 7.4 leaves colour emoji out of its PDFs; the judge must not blame the file."""
    if draft.pictures and any(EMOJI.search(text) for text in draft.texts):
        draft.cut.append(
            "the pictures lack emoji, which LibreOffice does not draw; the text has them"
        )


def add_package(draft: Draft, facts: PackageFacts | GtaError) -> None:
    """What an Office file would load from elsewhere, macros, and text that it does not show."""
    if isinstance(facts, ToolUnavailable | GtaError):
        return  # a package that cannot be opened is told by its text
    if facts.macros:
        draft.findings.append("it holds macros; they were not run")
    if facts.external:
        draft.listed("linked content that was not loaded", facts.external)
    for unseen in facts.unseen:
        remark = unseen.why.startswith(REMARKS)
        draft.hidden(unseen.why, unseen.words, shown=unseen.kept or remark)
        if remark:
            draft.text(f"\n[{unseen.why}]\n{unseen.words}\n", what=unseen.why)
