"""Files that hide words where their readers do not look: Office, PDF, pictures, sound."""

import io
import subprocess
import tempfile
import textwrap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Final, Literal
from xml.sax.saxutils import escape

from gta_bench.errors import EnvironmentProblem

BODY: Final = "The sea rises and falls twice a day, for the Moon pulls at it."
_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_SPEECH_SECONDS: Final = 60


def build_zip(parts: Mapping[str, str | bytes], comment: str = "") -> bytes:
    """Return a zip archive of these members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = comment.encode()[:60_000]
    return stream.getvalue()


def build_docx(
    words: str, *, style: str = "", comment: bool = False, properties: bool = False
) -> bytes:
    """Return a Word document with the words in a styled run, a comment or its properties."""
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
    return build_zip(
        {
            "[Content_Types].xml": types,
            "_rels/.rels": _relations(root),
            "word/document.xml": document,
            "word/_rels/document.xml.rels": _relations(relations),
            **parts,
        }
    )


def build_pptx(words: str, *, where: str) -> bytes:
    """Return a deck with the words in the notes, in a hidden shape or outside of the slide."""
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Tides"
    box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(7), Inches(1))
    box.text_frame.text = BODY
    if where == "notes":
        slide.notes_slide.notes_text_frame.text = words
    else:
        left = Inches(-30) if where == "outside" else Inches(1)
        shape = slide.shapes.add_textbox(left, Inches(4), Inches(8), Inches(2))
        shape.text_frame.text = words
        if where == "hidden":
            shape._element.nvSpPr.cNvPr.set("hidden", "1")
    stream = io.BytesIO()
    show.save(stream)
    return stream.getvalue()


def build_xlsx(words: str, *, where: str) -> bytes:
    """Return a workbook with the words on a hidden sheet, in a comment or in white."""
    import openpyxl
    from openpyxl.comments import Comment
    from openpyxl.styles import Font

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["day", "height in m"])
    sheet.append(["Monday", 6.1])
    if where == "sheet":
        hidden = book.create_sheet("Data")
        hidden.sheet_state = "hidden"
        hidden["A1"] = words
    elif where == "comment":
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


def build_pdf(words: str, *, where: Literal["white", "layer", "properties", "annotation"]) -> bytes:
    """Return a page with the words in white, on a hidden layer, in its properties or in a note."""
    white = _lines(words, 500) if where in ("white", "layer") else ""
    if where == "white":
        white = f"1 1 1 rg {white}"
    elif where == "layer":
        white = f"/OC /Off BDC {white} EMC"
    content = f"{_lines(BODY, 700)} {white}"
    note = (
        f"<< /Type /Annot /Subtype /Text /Rect [500 700 510 710] /F 2 /Contents {_text(words)} >>"
    )
    annotations = f"/Annots [{note}]" if where == "annotation" else ""
    layers = "/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >>" if where == "layer" else ""
    about = f"<< /Subject {_text(words)} >>" if where == "properties" else "<< >>"
    return _pdf(
        f"<< /Type /Catalog /Pages 2 0 R {layers} >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << "
        f"/Font << /F 4 0 R >> /Properties << /Off 6 0 R >> >> {annotations} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        "<< /Type /OCG /Name (Notes) >>",
        about,
    )


def draw_words(words: str) -> bytes:
    """Return a PNG picture with the words written on it."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(28)
    lines = [BODY, *(part for line in words.split("\n") for part in textwrap.wrap(line, 60))]
    image = Image.new("RGB", (1000, 60 + 44 * len(lines)), "white")
    drawing = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        drawing.text((30, 30 + 44 * number), line, fill="black", font=font)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def build_tagged_picture(words: str, *, png: bool) -> bytes:
    """Return a picture with the words in a text chunk (PNG) or in its properties (JPEG)."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    stream = io.BytesIO()
    image = Image.effect_noise((300, 200), 60)
    if png:
        about = PngInfo()
        about.add_itxt("Comment", words)
        image.save(stream, "PNG", pnginfo=about)
    else:
        fields = Image.Exif()
        fields[0x010E] = words
        image.save(stream, "JPEG", exif=fields)
    return stream.getvalue()


def build_speech(words: str) -> bytes:
    """Return a WAV file of a voice that says the words; needs the program flite."""
    program = which("flite")
    if program is None:
        raise EnvironmentProblem("flite is not installed. Run `apt install flite`.")
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "said.wav"
        argv = [program, "-t", f"{BODY} {words}", "-o", str(sound)]
        subprocess.run(argv, check=True, capture_output=True, timeout=_SPEECH_SECONDS)
        return sound.read_bytes()


def _lines(words: str, top: int) -> str:
    wrapped = [part for line in words.split("\n") for part in textwrap.wrap(line, 90) or [""]]
    moves = " ".join(f"{_text(line)} Tj 0 -16 Td" for line in wrapped)
    return f"BT /F 11 Tf 60 {top} Td {moves} ET"


def _text(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"({escaped.encode('latin-1', 'replace').decode('latin-1')})"


def _pdf(*objects: str) -> bytes:
    """Return a PDF file of these objects: the first is the root, the last the document info."""
    data, offsets = b"%PDF-1.5\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
    tail += f"<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R >>\n"
    return data + f"{tail}startxref\n{len(data)}\n%%EOF\n".encode("latin-1")
