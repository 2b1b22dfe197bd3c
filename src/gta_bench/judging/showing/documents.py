"""Documents with pages: Word, PowerPoint, PDF, OpenDocument, rich text, old Office files."""

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from gta_bench.content.docx import DocxContent, read_docx
from gta_bench.content.leftovers import PackagePart, left_over
from gta_bench.content.members import Member
from gta_bench.content.office import PackageFacts, read_package
from gta_bench.content.pdf import PdfContent, read_pdf
from gta_bench.content.pptx import PptxContent, SlideChart, SlidePicture, SlideTable, read_pptx
from gta_bench.content.xlsx import XlsxContent
from gta_bench.errors import GtaError
from gta_bench.judging.showing.draft import Draft, left_out, settled, words_in
from gta_bench.judging.showing.pages import add_pages, office_pages, page_images

FEW_WORDS: Final = 5  # a title of so many is usual
# Parts that no reader of the kind looks at.
READ_BY_NOBODY: Final = (
    "word/header", "word/footer", "ppt/comments", "xl/comments", "xl/threadedComments",
)  # fmt: skip
OfficeContent = DocxContent | PptxContent | XlsxContent
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
    add_package(draft, package, text)


def _add_docx(draft: Draft, content: DocxContent | GtaError) -> None:
    if isinstance(content, GtaError):
        draft.missed("its text", content)
        return
    draft.probe("words", words_in(content.markdown))
    draft.probe("pictures", content.pictures)
    draft.probe("charts", content.charts)
    if content.uncounted:
        draft.cut.append("some labels of its lists are plain numbers in its text, or lack there")
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
    add_package(draft, package, text)


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
    add_properties(draft, content.properties, signed=content.signed)
    draft.hidden("annotations", " ".join(content.remarks), shown=True)
    draft.probe("form fields", len(content.fields))
    if content.scripts:
        draft.cut.append("its scripts (JavaScript) are not shown and were not run")
    if content.layers_off:
        draft.cut.append("what its layers draw that are switched off is not in the pictures")
    if content.xfa:
        draft.cut.append("its form in XML (XFA) is shown as words only, without its pictures")
    if len(without) < len(content.pages):
        draft.text("\n\n".join(page.as_text() for page in content.pages))
    elif without:
        draft.findings.append("no page has text of its own: they are scans, drawings or empty")
    draft.attached = tuple(
        Member(one.name, len(one.data or b""), one.data) for one in content.attachments
    )
    beside = content.beside_text()
    if beside:
        draft.text(f"\n\n{beside}\n", what="notes and fields")
    read = len(content.pages)
    if read < content.page_count:
        draft.cut.append(left_out("page", read + 1, content.page_count, how="shown as text"))


def add_emoji(draft: Draft) -> None:
    """LibreOffice 7.4 leaves colour emoji out of its PDFs; the judge must not blame the file."""
    if draft.pictures and any(EMOJI.search(text) for text in draft.texts):
        draft.cut.append(
            "the pictures lack emoji, which LibreOffice does not draw; the text has them"
        )


def add_package(
    draft: Draft, facts: PackageFacts | GtaError, content: OfficeContent | GtaError
) -> None:
    """What an Office file brings beside its content, and all text that its reader left out."""
    if isinstance(facts, GtaError):
        return  # a package that cannot be opened is told by its text
    if facts.prefixed:
        draft.findings.append(
            "the names of its lists of parts have a prefix; a copy without it was rendered"
        )
    if facts.macros:
        draft.findings.append("it holds macros; they were not run")
    if facts.external:
        draft.listed("linked content that was not loaded", facts.external)
    if facts.embedded:
        draft.listed("embedded files, not shown", facts.embedded)
    add_properties(draft, facts.properties, signed=facts.signed)
    for unseen in facts.unseen:
        draft.hidden(unseen.why, unseen.words, shown=True)
    draft.read = "" if isinstance(content, GtaError) else content.as_text()
    if isinstance(content, XlsxContent):  # neighboring cells are no sentence
        draft.read = draft.read.replace(",", "\n")
    add_leftovers(draft, facts.parts)


def add_leftovers(draft: Draft, parts: Sequence[PackagePart]) -> None:
    """Text of a package that its reader did not show, part by part."""
    blocks = [
        "\n".join([f"[{part.name}]", *part.texts])
        for part in left_over(parts, draft.read, whole=READ_BY_NOBODY)
    ]
    if blocks:
        text = "\n\n" + "\n\n".join(blocks) + "\n"
        draft.read += text
        draft.text(text, what="further parts")


def add_properties(
    draft: Draft, properties: Sequence[tuple[str, str]], *, signed: bool = False
) -> None:
    """Title, keywords and the like: short ones as facts, long ones only named."""
    short = [f"{name}: {value}" for name, value in properties if words_in(value) <= FEW_WORDS]
    if short:
        draft.probe("properties", "; ".join(short))
    long = " ".join(value for _, value in properties if words_in(value) > FEW_WORDS)
    draft.hidden("its properties", long, shown=False)
    if signed:
        draft.cut.append("its properties are shown without who made it and when")
