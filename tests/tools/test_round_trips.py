"""What our generators write, our readers give back."""

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.content.pdf import read_pdf
from gta_bench.content.pptx import SlideTable, SlideText, read_pptx
from gta_bench.content.xlsx import read_xlsx
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.needs import needs

ROWS = [["地区 Region", "Q2", "Q3"], ["华东 East", "1200", "1350"], ["South", "980", "1010"]]
MARKDOWN = """# 市场报告 Report

Revenue grew by **12 %** against *Q2*, see `total`.

- first
  - nested 嵌套
- second

| 地区 Region | Q2   | Q3   |
|-------------|------|------|
| 华东 East   | 1200 | 1350 |
| South       | 980  | 1010 |

> a quotation

    def f(x):
        return x < 3

Euler: $e^{i\\pi} + 1 = 0$
"""


class Desk:
    """A workspace and the toolbox of this machine."""

    def __init__(self, folder: Path, jail: Jail) -> None:
        self.workspace = Workspace.create(folder, {})
        self.toolbox = Toolbox(Equipment(Settings(), jail=jail))

    def call(self, tool: str, **arguments: JsonValue) -> str:
        result = asyncio.run(self.toolbox.call(self.workspace, tool, arguments))
        return result.parts[0].content

    def made(self, tool: str, **arguments: JsonValue) -> bytes:
        return self.workspace.read(self.call(tool, **arguments))


@pytest.fixture
def desk(tmp_path: Path, jail: Jail) -> Desk:
    return Desk(tmp_path, jail)


def test_a_word_document_comes_back_as_the_markdown_it_was_made_from(desk: Desk) -> None:
    path = desk.call("DocxFileGenerator", filename="report", content=MARKDOWN, image_paths="")
    assert desk.call("ReadDOCX", file=path) == MARKDOWN


@needs("bwrap", "soffice")
def test_a_sheet_comes_back_cell_by_cell_with_its_formulas(desk: Desk, jail: Jail) -> None:
    sheets: dict[str, JsonValue] = {
        "Sales": [["item", "price", "sum"], ["007", 2.5, "=B2*2"], ["茶", 3, "=B3*2"]],
        "Notes": [["x"], [True]],
    }
    data = desk.made("XlsxFileGenerator", filename="s", data_str=json.dumps(sheets))
    content = asyncio.run(read_xlsx(data, jail))
    first = {cell.address: (cell.value, cell.formula) for cell in content.sheets[0].cells}
    assert first["A2"] == ("007", None)
    assert first["B2"] == ("2.5", None)
    assert first["C2"] == ("5", "=B2*2"), "LibreOffice computes what formulas are worth"
    assert first["C3"] == ("6", "=B3*2")
    assert first["A3"] == ("茶", None)
    assert [sheet.name for sheet in content.sheets] == ["Sales", "Notes"]


def test_a_csv_file_comes_back_exactly(desk: Desk) -> None:
    path = desk.call("CsvFileGenerator", filename="t", data_str=json.dumps(ROWS))
    assert desk.call("ReadCSV", csv_file=path) == "".join(f"{','.join(row)}\n" for row in ROWS)


def test_slides_come_back_with_their_text_and_tables(desk: Desk, jail: Jail) -> None:
    table = "| " + " |\n| ".join(" | ".join(row) for row in ROWS) + " |"
    lines = table.splitlines()
    lines.insert(1, "|---|---|---|")
    slides = [
        {"title": "概览 Overview", "content": "- one 一\n- two"},
        {"title": "Table", "content": "\n".join(lines)},
    ]
    data = desk.made(
        "PptxFileGenerator",
        filename="deck",
        slides_content_str=json.dumps(slides),
        image_paths="",
    )
    content = asyncio.run(read_pptx(data, jail))
    assert [slide.title for slide in content.slides] == ["概览 Overview", "Table"]
    said = " ".join(part.text for part in content.slides[0].parts if isinstance(part, SlideText))
    assert "one 一" in said
    assert "two" in said
    tables = [part for part in content.slides[1].parts if isinstance(part, SlideTable)]
    assert [list(row) for row in tables[0].rows] == ROWS


def test_a_pdf_comes_back_with_every_word_and_its_table_cell_by_cell(
    desk: Desk, jail: Jail
) -> None:
    data = desk.made("PdfFileGenerator", filename="report", content=MARKDOWN, image_paths="")
    content = asyncio.run(read_pdf(data, jail))
    text = "".join(content.pages[0].text.split())
    for word in ("市场报告", "Revenue", "grew", "nested", "嵌套", "1350", "quotation", "Euler"):
        assert word in text
    assert [list(row) for row in content.pages[0].tables[0]] == ROWS
