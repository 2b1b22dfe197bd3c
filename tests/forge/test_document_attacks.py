"""Works that once passed without doing what was asked, and right ones that once failed."""

import io
from pathlib import Path
from typing import Any

import docx
import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import LEVELS, TaskDraft, TaskLevel, Work
from gta_bench.forge.writing import Order, make_task
from tests.content.conftest import jail
from tests.forge.scored_works import list_passed

__all__ = ["jail"]


def forge(name: str, level: TaskLevel) -> TaskDraft:
    return make_task(FAMILIES[name], Order("public", "attack", level), 1)


def save(made: Any) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def draw_blank() -> io.BytesIO:
    out = io.BytesIO()
    Image.new("RGB", (1, 1), "white").save(out, "PNG")
    out.seek(0)
    return out


@pytest.mark.parametrize("level", LEVELS)
def test_a_report_with_everything_below_its_last_heading(
    level: TaskLevel, tmp_path: Path, jail: Jail
) -> None:
    draft = forge("report", level)
    gold = docx.Document(io.BytesIO(draft.gold["plain"].files["report.docx"]))
    lines = [one.text for one in gold.paragraphs]
    made = docx.Document()
    for one in gold.paragraphs:
        if one.style is not None and one.style.name == "Heading 1":
            made.add_heading(one.text, 1)
    table = made.add_table(0, len(gold.tables[0].columns))
    for row in gold.tables[0].rows:
        for cell, given in zip(table.add_row().cells, row.cells, strict=True):
            cell.text = given.text
    made.add_paragraph(next(one for one in lines if one.startswith("Total")) + " is not it")
    made.add_paragraph(next(one for one in lines if one.startswith("Strongest")) + " is not it")
    made.add_picture(draw_blank())
    passed = list_passed(draft, Work({"report.docx": save(made)}), tmp_path, jail)
    assert passed == {"headings", "values", "rows", "order"}


@pytest.mark.parametrize(
    ("form", "style"),
    [("${:,}.00", None), ("€ {:,}", None), ("USD {:,}", "List Bullet"), ("{} EUR", "List Number")],
)
def test_a_report_with_a_currency(form: str, style: str | None, tmp_path: Path, jail: Jail) -> None:
    draft = forge("report", 2)
    made = docx.Document(io.BytesIO(draft.gold["plain"].files["report.docx"]))
    for one in made.paragraphs:
        label, mark, number = one.text.partition(": ")
        if mark and label.startswith("Total"):
            one.text = f"{label}: {form.format(int(number.replace(',', '')))}"
            one.style = style
    for row in made.tables[0].rows[1:]:
        for cell in row.cells[1:]:
            cell.text = f"${cell.text}"
    passed = list_passed(draft, Work({"report.docx": save(made)}), tmp_path, jail)
    assert len(passed) == 8
