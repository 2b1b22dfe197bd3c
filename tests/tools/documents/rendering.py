"""Looking at documents: each page drawn, all pages on one sheet, sheets compared."""

import asyncio
import io
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pypdfium2
from PIL import Image, ImageChops, ImageStat

from gta_bench.content.libreoffice import convert
from tests.needs import require_programs
from tests.tools.documents.making import jail

PAGE_WIDTH = 420
COLUMNS = 3
BLOCK = 12


def pages(document: bytes, suffix: str) -> list[Image.Image]:
    """The pages of a document, as LibreOffice shows it; a PDF is drawn as it is."""
    if suffix != "pdf":
        require_programs("bwrap", "soffice")
        document = asyncio.run(convert(jail(), f"made.{suffix}", document, to="pdf"))
    pdf = pypdfium2.PdfDocument(document)
    drawn = [page.render(scale=1.5).to_pil().convert("RGB") for page in pdf]
    pdf.close()
    return drawn


def screenshot(page: Path) -> Image.Image:
    """A page as Chromium shows it, without network."""
    require_programs("chromium")
    program = shutil.which("chromium") or "chromium-browser"
    picture = page.with_suffix(".png")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--window-size=1000,900"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, capture_output=True, timeout=90, check=True)
    return Image.open(io.BytesIO(picture.read_bytes())).convert("RGB")


def sheet(drawn: list[Image.Image]) -> Image.Image:
    """All pages side by side, small, in few colors."""
    small = [
        page.resize(
            (PAGE_WIDTH, round(page.height * PAGE_WIDTH / page.width)), Image.Resampling.BOX
        )
        for page in drawn
    ]
    height = max(page.height for page in small)
    columns = min(COLUMNS, len(small))
    rows = -(-len(small) // columns)
    whole = Image.new("RGB", (columns * PAGE_WIDTH, rows * height), "gray")
    for number, page in enumerate(small):
        whole.paste(page, ((number % columns) * PAGE_WIDTH, (number // columns) * height))
    return whole.quantize(64).convert("RGB")


class Difference(NamedTuple):
    """Between two sheets: of all points in the mean, and of the worst small block."""

    mean: float
    worst_block: float


def difference(one: Image.Image, other: Image.Image) -> Difference:
    """In shares of the whole range from black to white."""
    if one.size != other.size:
        return Difference(1.0, 1.0)
    apart = ImageChops.difference(one.convert("L"), other.convert("L"))
    blocks = apart.reduce(BLOCK)
    extrema = blocks.getextrema()
    worst = extrema[1] if not isinstance(extrema[1], tuple) else extrema[1][1]
    return Difference(ImageStat.Stat(apart).mean[0] / 255, worst / 255)


def share_of_ink(drawn: Image.Image) -> float:
    """How much of a page is not white."""
    gray = drawn.convert("L")
    return sum(gray.histogram()[:200]) / (gray.width * gray.height)


def edge_is_clear(drawn: Image.Image, margin: int) -> bool:
    """Whether nothing reaches into the outermost points of a page."""
    gray = drawn.convert("L")
    inner = (margin, margin, gray.width - margin, gray.height - margin)
    frame = gray.copy()
    frame.paste(255, inner)
    return frame.getextrema()[0] > 200  # type: ignore[operator]
