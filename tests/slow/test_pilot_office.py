"""A pilot of Office files: formulas are calculated, and a judge sees rendered evidence."""

import io
import json
from pathlib import Path

import pypandoc
import pytest
from openpyxl import Workbook

from gta_bench.authoring import pilot
from gta_bench.judge_quality.judge_runs import NULLS
from tests.authored import write_task
from tests.cli.test_task_pilot import gta
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("soffice")]

TASK = """\
format = 1
id = "q3-sales"
allow = ["T33: two ways are tried elsewhere", "T38: as well"]
[deliverables]
"book.xlsx" = "xlsx"
"memo.docx" = "docx"
[[leaf]]
id = "total"
says = "B4 is the total."
checks = [{ is = "xlsx.cell", file = "book.xlsx", at = "B4", sheet = "Sums", equals = 30 }]
[[leaf]]
id = "formula"
needs = ["total"]
says = "The total is calculated."
checks = [{ is = "xlsx.cell", file = "book.xlsx", at = "B4", sheet = "Sums", formula = true }]
[[leaf]]
id = "memo"
says = "Outlook explains growth."
by = "check-then-judge"
checks = [{ is = "doc.heading", file = "memo.docx", texts = ["Outlook"] }]
"""


def make_book(total: object) -> bytes:
    book = Workbook()
    sheet = book.create_sheet("Sums", 0)
    for row in (["Region", "Revenue"], ["North", 10], ["South", 20], ["Total", total]):
        sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def make_memo(folder: Path, text: str) -> bytes:
    file = folder / "memo.docx"
    pypandoc.convert_text(text, "docx", format="gfm", outputfile=str(file))
    return file.read_bytes()


def test_gold_without_stored_values_passes_and_a_typed_value_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pilot, "NULLS", {"empty": NULLS["empty"]})
    memo = make_memo(tmp_path, "# Outlook\n\nThe plan explains why growth continues: outlook 2027.")
    other = make_memo(tmp_path, "# Summary\n\nNothing.")
    books = {
        "gold/sum": make_book("=SUM(B2:B3)"),
        "wrong/typed": make_book(30),
        "wrong/memo": make_book("=SUM(B2:B3)"),
    }
    breaks = {"wrong/typed": "formula", "wrong/memo": "memo"}
    files = {f"{work}/book.xlsx": data for work, data in books.items()}
    files |= {f"{work}/memo.docx": memo for work in books if work != "wrong/memo"}
    files |= {
        f"{work}/wrong.toml": f'breaks = ["{leaf}"]'.encode() for work, leaf in breaks.items()
    }
    files |= {"wrong/memo/memo.docx": other}
    write_task(Path("tasks"), TASK, request="Write book.xlsx and memo.docx.", files=files)
    done = gta("task", "pilot", "tasks", "--judge", "scripted/honest", "--json")
    (found,) = json.loads(done.stdout)
    leaves = {one["leaf"]: one for one in found["leaves"]}
    assert [(leaf, one["gold"], one["floor"]) for leaf, one in leaves.items()] == [
        *(("total", 10, 0), ("formula", 10, 0), ("memo", 10, 0)),
    ]
    assert [(one["hits"], one["wrongs"], one["alarms"]) for one in leaves.values()] == [
        *((0, 0, 0), (1, 1, 0), (1, 1, 0)),
    ]
    assert (leaves["memo"]["repeated"], leaves["memo"]["flips"]) == (2, 0)
    assert (done.exit_code, found["state"], found["reasons"]) == (0, "ready", [])
