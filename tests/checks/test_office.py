"""Office checks decide the same about files of two producers: a Python library, and LibreOffice."""

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any

import pypandoc
import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from pptx import Presentation
from pptx.util import Inches

from gta_bench.checks.delivery import CheckedWork
from gta_bench.confine.jail import Jail
from gta_bench.content.libreoffice import convert
from gta_bench.records.verdicts import Scored
from tests.checks.works import decide, deliver, value
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("bwrap", "soffice")]

WORD = "# Summary\n\nSales grew in the north.\n\n## Costs\n\n"
TABLE = "| Region | Revenue |\n|---|---|\n| North | 5 |\n"
ROWS = [("Region", "Revenue"), ("North", 48210.55), ("South", 31877.2)]


def make_book() -> bytes:
    book = Workbook()
    sheet = book.create_sheet("Summary", 0)
    del book["Sheet"]
    for row in ROWS:
        sheet.append(list(row))
    sheet.append(("Total", "=SUM(B2:B3)"))
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "E2")
    return _saved(book)


def make_deck() -> bytes:
    deck = Presentation()
    for title in ("Results", "Plan"):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    frame = deck.slides[0].shapes.add_table(3, 2, Inches(1), Inches(2), Inches(4), Inches(2))
    for at, row in enumerate(ROWS):
        for column, cell in enumerate(row):
            frame.table.cell(at, column).text = str(cell)
    deck.slides[1].notes_slide.notes_text_frame.text = "Say it slowly."
    return _saved(deck)


def _saved(made: Any) -> bytes:
    out = BytesIO()
    made.save(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def works(jail: Jail, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CheckedWork]:
    document: Path = tmp_path_factory.mktemp("word") / "a.docx"
    pypandoc.convert_text(WORD + TABLE, "docx", format="gfm", outputfile=str(document))
    files = {"a.xlsx": make_book(), "a.docx": document.read_bytes(), "a.pptx": make_deck()}
    return {
        "library": deliver(files, jail),
        "LibreOffice": deliver(asyncio.run(_convert(files, jail)), jail),
    }


async def _convert(files: dict[str, bytes], jail: Jail) -> dict[str, bytes]:
    """Each file as LibreOffice saves it, by way of its own format."""
    own = {"xlsx": "ods", "docx": "odt", "pptx": "odp"}
    made = {}
    for name, data in files.items():
        kind = name.partition(".")[2]
        middle = await convert(jail, name, data, to=own[kind])
        made[name] = await convert(jail, f"a.{own[kind]}", middle, to=kind)
    return made


DECIDED: list[tuple[dict[str, Any], float]] = [
    (value("a.xlsx", "North", "Revenue", 48210.55, sheet="Summary"), 10),
    (value("a.xlsx", "Total", "Revenue", 80087.75, within=0.001), 10),
    (value("a.xlsx", "Total", "Revenue", 80087.0, within=0.001), 0),
    ({"is": "xlsx.cell", "file": "a.xlsx", "at": "B4", "equals": 80087.75, "formula": True}, 10),
    ({"is": "xlsx.cell", "file": "a.xlsx", "at": "B2", "formula": True}, 0),
    ({"is": "xlsx.no_errors", "file": "a.xlsx"}, 10),
    ({"is": "table.order", "file": "a.xlsx", "by": "Region"}, 10),
    ({"is": "table.order", "file": "a.xlsx", "by": "Revenue", "desc": True}, 0),
    ({"is": "doc.parts", "file": "a.xlsx", "charts": 1}, 10),
    ({"is": "doc.parts", "file": "a.xlsx", "charts": 2}, 0),
    ({"is": "doc.heading", "file": "a.docx", "texts": ["Summary", "Costs"]}, 10),
    ({"is": "doc.heading", "file": "a.docx", "texts": ["Costs", "Summary"]}, 0),
    ({"is": "doc.size", "file": "a.docx", "pages": {"max": 1}}, 10),
    ({"is": "doc.size", "file": "a.docx", "pages": {"min": 2}}, 0),
    ({"is": "text.contains", "file": "a.docx", "all": ["sales grew"]}, 10),
    (value("a.docx", "North", "Revenue", 5), 10),
    (value("a.docx", "North", "Revenue", 6), 0),
    ({"is": "doc.heading", "file": "a.pptx", "texts": ["Results", "Plan"]}, 10),
    ({"is": "doc.size", "file": "a.pptx", "pages": {"min": 2, "max": 2}}, 10),
    ({"is": "doc.parts", "file": "a.pptx", "tables": 1, "notes": 1}, 10),
    ({"is": "doc.parts", "file": "a.pptx", "tables": 2}, 0),
    (value("a.pptx", "South", "Revenue", 31877.2), 10),
    ({"is": "file.kind", "file": "a.pptx", "kind": "docx"}, 0),
]


@pytest.mark.parametrize("producer", ["library", "LibreOffice"])
def test_both_producers_get_the_same_points(works: dict[str, CheckedWork], producer: str) -> None:
    for check, points in DECIDED:
        verdict = decide(works[producer], check)
        assert isinstance(verdict, Scored), (check, verdict)
        assert verdict.value == points, (check, verdict)


def test_the_files_have_different_producers(works: dict[str, CheckedWork]) -> None:
    for name in ("a.xlsx", "a.docx", "a.pptx"):
        first, second = (work.open(name).data for work in works.values())
        assert first != second
