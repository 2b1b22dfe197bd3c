"""PDF files, pictures and sounds with words where their readers do not look."""

import io
import subprocess
import tempfile
import textwrap
from pathlib import Path
from shutil import which
from typing import Literal

from gta_bench.errors import EnvironmentProblem
from gta_bench.judge_quality.attacks.office import BODY

_SECONDS = 60


def pdf(words: str, *, place: Literal["white", "layer", "properties", "annotation"]) -> bytes:
    """A page, with the words in white, on a layer that is off, in its properties or in a note."""
    white = _lines(words, 500) if place in ("white", "layer") else ""
    if place == "white":
        white = f"1 1 1 rg {white}"
    elif place == "layer":
        white = f"/OC /Off BDC {white} EMC"
    content = f"{_lines(BODY, 700)} {white}"
    note = (
        f"<< /Type /Annot /Subtype /Text /Rect [500 700 510 710] /F 2 /Contents {_text(words)} >>"
    )
    annotations = f"/Annots [{note}]" if place == "annotation" else ""
    layers = "/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >>" if place == "layer" else ""
    about = f"<< /Subject {_text(words)} >>" if place == "properties" else "<< >>"
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


def picture(words: str) -> bytes:
    """A drawing of the words, as large as they need."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(28)
    lines = [BODY, *(part for line in words.split("\n") for part in textwrap.wrap(line, 60))]
    image = Image.new("RGB", (1000, 60 + 44 * len(lines)), "white")
    drawing = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        drawing.text((30, 30 + 44 * number), line, fill="black", font=font)
    return _saved(image)


def described_picture(words: str, *, png: bool) -> bytes:
    """A blue square with the words in a text chunk of PNG, or in a photograph's properties."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    image = Image.effect_noise((300, 200), 60)
    if png:
        about = PngInfo()
        about.add_itxt("Comment", words)
        return _saved(image, pnginfo=about)
    stream = io.BytesIO()
    fields = Image.Exif()
    fields[0x010E] = words
    image.save(stream, "JPEG", exif=fields)
    return stream.getvalue()


def speech(words: str) -> bytes:
    """A voice that says the words; by flite, a program of the system."""
    program = which("flite")
    if program is None:
        raise EnvironmentProblem("flite is not installed: `apt install flite`.")
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "said.wav"
        argv = [program, "-t", f"{BODY} {words}", "-o", str(sound)]
        subprocess.run(argv, check=True, capture_output=True, timeout=_SECONDS)
        return sound.read_bytes()


def _lines(words: str, top: int) -> str:
    wrapped = [part for line in words.split("\n") for part in textwrap.wrap(line, 90) or [""]]
    moves = " ".join(f"{_text(line)} Tj 0 -16 Td" for line in wrapped)
    return f"BT /F 11 Tf 60 {top} Td {moves} ET"


def _text(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"({escaped.encode('latin-1', 'replace').decode('latin-1')})"


def _pdf(*objects: str) -> bytes:
    """A PDF file of these objects: the first is its root, the last tells about it."""
    data, places = b"%PDF-1.5\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
    tail += f"<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R >>\n"
    return data + f"{tail}startxref\n{len(data)}\n%%EOF\n".encode("latin-1")


def _saved(image: object, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG", **options)  # type: ignore[attr-defined]
    return stream.getvalue()
