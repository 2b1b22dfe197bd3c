"""What a tool costs over the bare program on the same input in the same run."""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gta_bench.content.libreoffice import convert, find_libreoffice
from gta_bench.content.needs import find_pandoc
from gta_bench.tools.documents.markdown import build_reference_docx
from gta_bench.tools.documents.pandoc import READER
from tests.needs import needs
from tests.tools.documents.making import Bench, as_json, bench, jail
from tests.tools.documents.sample import MARKDOWN, SHEETS, SLIDES, tall_picture, wide_picture

ROUNDS = 7
MOST = 1.5

BARE_TYPST = """
import sys, typst
typst.compile(sys.argv[1], output=sys.argv[2], root=sys.argv[3])
"""


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def ratio(name: str, tool: Callable[[], object], bare: Callable[[], object]) -> float:
    """Medians of calls in turn, so that a busy machine slows both."""
    tool(), bare()
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        for call, times in ((tool, ours), (bare, theirs)):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    mine, other = statistics.median(ours), statistics.median(theirs)
    start = statistics.median(jail_start() for _ in range(ROUNDS))
    print(
        f"{name}: {mine:.2f} s, bare program {other:.2f} s, ratio {mine / other:.2f}; "
        f"an empty jail {start:.2f} s, ratio without it {(mine - start) / other:.2f}"
    )
    return (mine - start) / other


def jail_start() -> float:
    """What any program in the jail costs before it begins."""
    start = time.perf_counter()
    asyncio.run(jail().run_program(["true"]))
    return time.perf_counter() - start


def long_markdown() -> str:
    """A report of some ten pages: the sample's text over and over, pictures once."""
    text = MARKDOWN.replace("{{image_1}}", "").replace("![A tall picture](inputs/tall.png)", "")
    return text * 12 + "\n\n![](wide.png)\n\n![](tall.png)\n"


def files(folder: Path) -> Path:
    folder.mkdir()
    (folder / "in.md").write_text(long_markdown(), encoding="utf-8")
    (folder / "wide.png").write_bytes(wide_picture())
    (folder / "tall.png").write_bytes(tall_picture())
    (folder / "reference.docx").write_bytes(build_reference_docx())
    return folder


def pandoc(folder: Path, *arguments: str) -> None:
    program = find_pandoc()
    assert program is not None
    subprocess.run([program, "-f", READER, "in.md", *arguments], cwd=folder, check=True)


@pytest.mark.measure
def test_docx_costs_little_more_than_pandoc(desk: Bench, tmp_path: Path) -> None:
    folder = files(tmp_path / "bare")
    content = long_markdown()
    found = ratio(
        "DocxFileGenerator",
        lambda: desk.make("DocxFileGenerator", content=content, image_paths=""),
        lambda: pandoc(folder, "--reference-doc=reference.docx", "-o", "out.docx"),
    )
    assert found <= MOST


@pytest.mark.measure
def test_pdf_costs_little_more_than_pandoc_and_typst(desk: Bench, tmp_path: Path) -> None:
    folder = files(tmp_path / "bare")
    content = long_markdown()

    def bare() -> None:
        pandoc(folder, "-s", "-t", "typst", "-o", "out.typ")
        command = [sys.executable, "-c", BARE_TYPST, "out.typ", "out.pdf", "."]
        subprocess.run(command, cwd=folder, check=True)

    found = ratio(
        "PdfFileGenerator",
        lambda: desk.make("PdfFileGenerator", content=content, image_paths=""),
        bare,
    )
    assert found <= MOST


@pytest.mark.measure
@needs("bwrap", "soffice")
def test_xlsx_costs_little_more_than_libreoffice(desk: Bench, tmp_path: Path) -> None:
    data = desk.make("XlsxFileGenerator", data_str=as_json(SHEETS))
    book = tmp_path / "in.xlsx"
    book.write_bytes(data)
    office = find_libreoffice() or ""

    def bare() -> None:
        command = [office, f"-env:UserInstallation=file://{tmp_path}/profile{time.time_ns()}"]
        command += [
            "--headless",
            "--convert-to",
            "xlsx",
            "--outdir",
            str(tmp_path / "out"),
            str(book),
        ]
        subprocess.run(command, check=True, capture_output=True)

    found = ratio(
        "XlsxFileGenerator",
        lambda: desk.make("XlsxFileGenerator", data_str=as_json(SHEETS)),
        bare,
    )
    assert found <= MOST


@pytest.mark.measure
def test_the_other_tools_are_fast(desk: Bench) -> None:
    """They have no bare program to compare with."""
    calls = {
        "PptxFileGenerator": {
            "slides_content_str": as_json(SLIDES),
            "image_paths": "inputs/wide.png, inputs/tall.png",
        },
        "HtmlFileGenerator": {"html_code": "<p>x</p>" * 10_000},
        "CsvFileGenerator": {"data_str": as_json([[n, "text"] for n in range(10_000)])},
    }
    for tool, arguments in calls.items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            desk.make(tool, **arguments)
            times.append(time.perf_counter() - start)
        print(f"{tool}: {statistics.median(times):.3f} s")
        assert statistics.median(times) < 3


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_libreoffice_in_the_jail_converts_and_says_when_it_cannot() -> None:
    made = asyncio.run(convert(jail(), "a.csv", b"a,b\n1,2\n", to="pdf"))
    assert made.startswith(b"%PDF")
