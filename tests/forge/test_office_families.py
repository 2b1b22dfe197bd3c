"""The truth in families that end in documents, decks, workbooks and pages."""

import csv
import io
import re
from functools import cache
from itertools import pairwise
from typing import Any

import docx
import openpyxl
import pptx
import pytest

from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import LEVELS, TaskDraft, TaskLevel
from gta_bench.forge.writing import Order, make_task


@cache
def forge(name: str, level: TaskLevel) -> TaskDraft:
    """A task, which the tests only read."""
    return make_task(FAMILIES[name], Order("public", "t", level), 1)


def read_rows(data: bytes, sheet: str) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    return list(book[sheet].iter_rows(values_only=True))


def test_a_report_has_the_profit_that_follows_from_the_workbook() -> None:
    draft = forge("report", 3)
    figures = draft.inputs["figures.xlsx"]
    costs = {row[0]: sum(row[1:]) for row in read_rows(figures, "Costs")[1:]}
    profit = {row[0]: sum(row[1:]) - costs[row[0]] for row in read_rows(figures, "Revenue")[1:]}
    for work in draft.gold.values():
        document = docx.Document(io.BytesIO(work.files["report.docx"]))
        head, *rows = [[cell.text for cell in row.cells] for row in document.tables[0].rows]
        at = head.index("Profit")
        assert {row[0]: int(row[at].replace(",", "")) for row in rows} == profit
        lines = [one.text for one in document.paragraphs]
        assert f"Total profit: {sum(profit.values()):,}" in lines
        assert f"Strongest region: {max(profit, key=profit.__getitem__)}" in lines
        assert len(document.inline_shapes) == 1


def test_a_deck_follows_the_running_order_of_its_brief_and_keeps_internal_points_out() -> None:
    draft = forge("deck", 3)
    brief = draft.inputs["brief.md"].decode()
    order = re.findall(r"^\d+\. (.+)$", brief, re.MULTILINE)
    secrets = re.findall(r"^- \(internal\) (.+)$", brief, re.MULTILINE)
    assert len(secrets) == 4
    for work in draft.gold.values():
        slides = list(pptx.Presentation(io.BytesIO(work.files["deck.pptx"])).slides)
        assert [slide.shapes.title.text for slide in slides[1:]] == order
        texts = [shape.text for slide in slides for shape in slide.shapes if shape.has_text_frame]
        assert not any(secret in text for secret in secrets for text in texts)
        for slide in slides[1:]:
            part = brief.partition(f"## {slide.shapes.title.text}\n")[2]
            note = slide.notes_slide.notes_text_frame.text
            assert part.partition("Note: ")[2].startswith(note)


def test_a_budget_stores_the_amounts_that_follow_from_its_assumptions() -> None:
    draft = forge("budget", 3)
    valid = draft.inputs["assumptions.md"].decode().partition("## Replaced")[0]
    units, price, cost, rent, growth, staff, salary, fair = (
        float(one) for one in re.findall(r"^- .+: ([\d.]+)$", valid, re.MULTILINE)
    )
    wanted = []
    for month in range(12):
        fixed = rent + staff * salary + (fair if month == 11 else 0)
        wanted.append((units * price, units * cost + fixed))
        units *= 1 + growth / 100
    for work in draft.gold.values():
        rows = read_rows(work.files["budget.xlsx"], "Budget")[1:]
        assert [row[1:3] for row in rows[:-1]] == [pytest.approx(one) for one in wanted]
        total = sum(one - other for one, other in wanted)
        sums = [sum(one) for one in zip(*wanted, strict=True)]
        assert rows[-1][1:4] == pytest.approx((*sums, total))
        assert f"{total:,.2f}" in work.answer


def test_a_page_lists_the_confirmed_events_of_a_room_by_date() -> None:
    draft = forge("page", 3)
    events = list(csv.DictReader(io.StringIO(draft.inputs["program.csv"].decode())))
    for work in draft.gold.values():
        page = work.files["index.html"].decode()
        body = page.partition("<tbody>")[2].partition("</tbody>")[0]
        rows = [re.findall(r"<td>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]
        room = rows[0][2]
        assert f"in the {room}" in draft.request
        wanted = [one for one in events if (one["Room"], one["Status"]) == (room, "confirmed")]
        assert sorted(rows) == sorted([*one.values()][:4] for one in wanted)
        assert all(first[0] < second[0] for first, second in pairwise(rows))


def test_workbooks_look_like_careful_work() -> None:
    """Seen on the printed golds: heads beside their numbers, shares as text, a plain total."""
    files = make_task(FAMILIES["sales"], Order("public", "t", 1), 1).gold["with-shares"].files
    book = openpyxl.load_workbook(io.BytesIO(files["summary.xlsx"]))
    rows = [*book["Summary"].iter_rows()]
    assert [cell.alignment.horizontal for cell in rows[0]] == [None, "right", "right"]
    assert all(isinstance(row[2].value, float) for row in rows[1:])
    assert [cell.number_format for cell in rows[1]] == ["General", "#,##0.00", "0.0%"]
    assert book["Total"]["B1"].font.bold


@pytest.mark.parametrize("level", LEVELS)
def test_a_report_with_a_long_table_has_its_chart_on_the_next_page(level: TaskLevel) -> None:
    """The last heading stood alone on a second page."""
    for work in forge("report", level).gold.values():
        document = docx.Document(io.BytesIO(work.files["report.docx"]))
        breaks = [one.paragraph_format.page_break_before for one in document.paragraphs]
        assert (True in breaks) == (level == 3)
