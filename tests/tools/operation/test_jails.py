"""Each document tool in each kind of jail that works here."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailKind
from gta_bench.confine.probe import probe
from gta_bench.content.libreoffice import find_libreoffice, missing_office
from gta_bench.settings import Settings
from gta_bench.tools.contract import Available, Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.tools.documents.making import Bench, as_json, bench

KINDS: tuple[JailKind, ...] = ("bubblewrap", "landlock")
CALLS = {
    "DocxFileGenerator": {"content": "**中文** {{image_1}}", "image_paths": "inputs/wide.png"},
    "PdfFileGenerator": {"content": "**中文** {{image_1}}", "image_paths": "inputs/wide.png"},
    "PptxFileGenerator": {
        "slides_content_str": as_json([{"title": "t", "content": "**中文** {{image_1}}"}]),
        "image_paths": "inputs/wide.png",
    },
    "XlsxFileGenerator": {"data_str": as_json([["a", "=1+1"]])},
    "HtmlFileGenerator": {"html_code": "<p>x"},
    "CsvFileGenerator": {"data_str": "[[1]]"},
}
STARTS = {"Docx": b"PK", "Pdf": b"%PDF", "Pptx": b"PK", "Xlsx": b"PK"}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> JailKind:
    found = {entry.kind: entry for entry in asyncio.run(probe())}
    entry = found[request.param]
    if not entry.works:
        pytest.skip(f"no {entry.kind} here: {entry.reason}")
    return entry.kind


@pytest.fixture
def desk(kind: JailKind, tmp_path: Path) -> Iterator[Bench]:
    with Jail(kind, slots=1) as jail:
        made = bench(tmp_path)
        yield Bench(made.workspace, Toolbox(Equipment(Settings(), jail=jail)))


@pytest.mark.parametrize("tool", [name for name in CALLS if name != "XlsxFileGenerator"])
def test_every_tool_makes_its_file_in_every_jail(desk: Bench, kind: JailKind, tool: str) -> None:
    data = desk.make(tool, **CALLS[tool])
    assert data.startswith(STARTS.get(tool.removesuffix("FileGenerator"), b""))
    assert desk.results[0].jail in (kind, None)


@pytest.mark.slow
def test_formulas_are_computed_where_libreoffice_can_run(desk: Bench, kind: JailKind) -> None:
    """Landlock's filter refuses the sockets that it needs: the file is made anyway."""
    desk.make("XlsxFileGenerator", **CALLS["XlsxFileGenerator"])
    computed = find_libreoffice() is not None and kind == "bubblewrap"
    assert ("LibreOffice" in desk.results[0].backend) == computed
    state = desk.toolbox.availability("XlsxFileGenerator")
    assert isinstance(state, Available)
    assert ("LibreOffice" in state.backend) == computed


def test_libreoffice_needs_a_jail() -> None:
    assert missing_office(None) is not None
