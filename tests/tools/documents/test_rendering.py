"""The demanding sample as a person sees it, compared with pictures that were looked at."""

import io
from pathlib import Path

import pytest
from PIL import Image

from tests.tools.documents import rendering
from tests.tools.documents.making import Bench, as_json, bench
from tests.tools.documents.sample import MARKDOWN, PAGE, SHEETS, SLIDES

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "documents"
# Another release of LibreOffice or of a font moves letters by a point or two; a cut, overlapping,
# boxed or raw piece changes whole blocks.
MOST_MEAN = 0.02
MOST_BLOCK = 0.45

CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "docx": ("DocxFileGenerator", {"content": MARKDOWN, "image_paths": "inputs/wide.png"}),
    "pdf": ("PdfFileGenerator", {"content": MARKDOWN, "image_paths": "inputs/wide.png"}),
    "html": ("HtmlFileGenerator", {"html_code": PAGE}),
    "pptx": (
        "PptxFileGenerator",
        {
            "slides_content_str": as_json(SLIDES),
            "image_paths": "inputs/wide.png, inputs/tall.png",
        },
    ),
    "xlsx": ("XlsxFileGenerator", {"data_str": as_json(SHEETS)}),
}


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def drawn(desk: Bench, kind: str, folder: Path) -> list[Image.Image]:
    tool, arguments = CALLS[kind]
    data = desk.make(tool, **arguments)
    if kind != "html":
        return rendering.pages(data, kind)
    page = folder / "page.html"
    page.write_bytes(data)
    return [rendering.screenshot(page)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CALLS))
def test_the_demanding_sample_looks_as_it_did(
    desk: Bench, kind: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    made = rendering.sheet(drawn(desk, kind, tmp_path))
    golden = GOLDEN / f"{kind}.png"
    if pytestconfig.getoption("--update-golden"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        made.quantize(64).save(golden, optimize=True)
    assert golden.is_file(), "no golden picture: run with --update-golden and look at it"
    with Image.open(io.BytesIO(golden.read_bytes())) as stored:
        apart = rendering.difference(made, stored.convert("RGB"))
    if apart.mean > MOST_MEAN or apart.worst_block > MOST_BLOCK:
        made.save(tmp_path / f"{kind}.png")
    assert apart.mean <= MOST_MEAN, f"compare {tmp_path / kind}.png with {golden}"
    assert apart.worst_block <= MOST_BLOCK, f"compare {tmp_path / kind}.png with {golden}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["docx", "pdf", "pptx"])
def test_every_page_has_something_on_it_and_nothing_at_its_edge(
    desk: Bench, kind: str, tmp_path: Path
) -> None:
    for page in drawn(desk, kind, tmp_path):
        assert rendering.share_of_ink(page) > 0.0005
        assert rendering.edge_is_clear(page, margin=12)


def test_the_golden_pictures_are_small() -> None:
    assert sum(file.stat().st_size for file in GOLDEN.glob("*.png")) < 2_000_000


def test_a_moved_block_is_a_difference_and_a_copy_is_none() -> None:
    page = Image.new("RGB", (420, 300), "white")
    other = page.copy()
    other.paste("black", (100, 100, 160, 130))
    assert rendering.difference(page, page.copy()) == (0.0, 0.0)
    assert rendering.difference(page, other).worst_block == 1.0
    assert rendering.difference(page, other.resize((42, 30))).mean == 1.0
    assert rendering.edge_is_clear(other, margin=12)
    assert not rendering.edge_is_clear(other, margin=140)
