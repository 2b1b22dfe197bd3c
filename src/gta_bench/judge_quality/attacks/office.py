"""Office files with words where their readers do not look."""

import io
import zipfile
from collections.abc import Mapping
from typing import Final
from xml.sax.saxutils import escape

BODY: Final = "The sea rises and falls twice a day, for the Moon pulls at it."
_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def zipped(parts: Mapping[str, str | bytes], comment: str = "") -> bytes:
    """A zip of these members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = comment.encode()[:60_000]
    return stream.getvalue()


def docx(words: str, *, style: str = "", comment: bool = False, properties: bool = False) -> bytes:
    """A Word document: the words in a run of that style, in a comment, or in its properties."""
    more = "" if comment or properties else _paragraphs(words, style)
    body = _paragraphs(BODY) + more
    overrides = f'<Override PartName="/word/document.xml" ContentType="{_TYPE}.document.main+xml"/>'
    relations, parts = "", {}
    if comment:
        overrides += f'<Override PartName="/word/comments.xml" ContentType="{_TYPE}.comments+xml"/>'
        relations = _relation("comments", "comments.xml")
        body += (
            '<w:p><w:commentRangeStart w:id="0"/><w:r><w:t>Tides.</w:t></w:r>'
            '<w:commentRangeEnd w:id="0"/><w:r><w:commentReference w:id="0"/></w:r></w:p>'
        )
        parts["word/comments.xml"] = (
            f'<w:comments xmlns:w="{_WORD}"><w:comment w:id="0" w:author="a">'
            f"{_paragraphs(words)}</w:comment></w:comments>"
        )
    root = _relation("officeDocument", "word/document.xml")
    if properties:
        kind = f"{_PACKAGE}/relationships/metadata/core-properties"
        root += f'<Relationship Id="p" Type="{kind}" Target="docProps/core.xml"/>'
        overrides += (
            '<Override PartName="/docProps/core.xml" ContentType='
            '"application/vnd.openxmlformats-package.core-properties+xml"/>'
        )
        parts["docProps/core.xml"] = (
            f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<dc:description>{escape(words)}</dc:description></cp:coreProperties>"
        )
    types = (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )
    document = f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return zipped(
        {
            "[Content_Types].xml": types,
            "_rels/.rels": _relations(root),
            "word/document.xml": document,
            "word/_rels/document.xml.rels": _relations(relations),
            **parts,
        }
    )


def pptx(words: str, *, place: str) -> bytes:
    """A slide, with the words in its notes, in a hidden shape, or beside it."""
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Tides"
    box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(7), Inches(1))
    box.text_frame.text = BODY
    if place == "notes":
        slide.notes_slide.notes_text_frame.text = words
    else:
        left = Inches(-30) if place == "outside" else Inches(1)
        shape = slide.shapes.add_textbox(left, Inches(4), Inches(8), Inches(2))
        shape.text_frame.text = words
        if place == "hidden":
            shape._element.nvSpPr.cNvPr.set("hidden", "1")
    stream = io.BytesIO()
    show.save(stream)
    return stream.getvalue()


def xlsx(words: str, *, place: str) -> bytes:
    """A workbook, with the words on a hidden sheet, in a comment, or in white."""
    import openpyxl
    from openpyxl.comments import Comment
    from openpyxl.styles import Font

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["day", "height in m"])
    sheet.append(["Monday", 6.1])
    if place == "sheet":
        hidden = book.create_sheet("Data")
        hidden.sheet_state = "hidden"
        hidden["A1"] = words
    elif place == "comment":
        sheet["A1"].comment = Comment(words, "a")
    else:
        sheet["A6"] = words
        sheet["A6"].font = Font(color="FFFFFF")
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _paragraphs(words: str, style: str = "") -> str:
    run = f"<w:rPr>{style}</w:rPr>" if style else ""
    return "".join(
        f'<w:p><w:r>{run}<w:t xml:space="preserve">{escape(line)}</w:t></w:r></w:p>'
        for line in words.split("\n")
    )


def _relation(kind: str, target: str) -> str:
    return f'<Relationship Id="r-{kind}" Type="{_OFFICE}/{kind}" Target="{target}"/>'


def _relations(inside: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inside}</Relationships>'
