"""Works that once passed without doing what was asked, and right ones that once failed."""

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import docx
import pptx
import pytest
from PIL import Image, ImageDraw

from gta_bench.confine.jail import Jail
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import TaskDraft, TaskLevel, Work
from gta_bench.forge.writing import Order, make_task
from tests.content.conftest import jail
from tests.forge.scored_works import list_passed

__all__ = ["jail"]


@cache
def forge(name: str, level: TaskLevel) -> TaskDraft:
    return make_task(FAMILIES[name], Order("public", "attack", level), 1)


def save(made: Any) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def save_png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def draw_blank() -> io.BytesIO:
    return io.BytesIO(save_png(Image.new("RGB", (1, 1), "white")))


def test_a_report_with_everything_below_its_last_heading(tmp_path: Path, jail: Jail) -> None:
    draft = forge("report", 3)
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
    [
        ("${:,}.00", None),
        ("€ {:,}", None),
        ("USD {:,}", "List Bullet"),
        ("{} EUR", "List Number"),
        ("{:,} dollars", None),
        ("CHF {:,}", None),
    ],
)
def test_a_report_with_a_currency(form: str, style: str | None, tmp_path: Path, jail: Jail) -> None:
    draft = forge("report", 2)
    made = docx.Document(io.BytesIO(draft.gold["plain"].files["report.docx"]))
    for one in made.paragraphs:
        label, mark, number = one.text.partition(": ")
        if mark and label.startswith("Total"):
            one.text = f"{label}: {form.format(int(number.replace(',', '')))}"
            if form.startswith("CHF"):
                one.text = one.text.replace(",", "\u2019")
            one.style = style
    for row in made.tables[0].rows[1:]:
        for cell in row.cells[1:]:
            cell.text = f"${cell.text}"
    passed = list_passed(draft, Work({"report.docx": save(made)}), tmp_path, jail)
    assert len(passed) == 8


def test_a_page_without_links_and_with_a_hidden_picture(tmp_path: Path, jail: Jail) -> None:
    draft = forge("page", 3)
    page = draft.gold["in-one-file"].files["index.html"].decode()
    page = page.replace("<img", "<img style='display:none'").replace("<nav>", "<nav hidden>")
    work = Work({"index.html": page.encode()})
    passed = list_passed(draft, work, tmp_path, jail, without=["opens"])
    assert passed == {"headings", "values", "rows", "order", "caption"}


def test_a_page_with_arrows_in_its_heads_and_a_picture_without_quotes(
    tmp_path: Path, jail: Jail
) -> None:
    draft = forge("page", 2)
    place = (
        draft.gold["in-one-file"].files["index.html"].decode().partition("<title>")[2].split()[0]
    )
    files = dict(draft.gold["picture-beside"].files)
    page = (
        files["index.html"].decode().replace("<th>Date", "<th>Date ▲").replace("</th>", " ↕</th>")
    )
    begin, _, rest = page.partition("<img")
    page = f"{begin}<img alt={place} src=./media/small.png?v=1{rest[rest.index('>') :]}"
    page = page.replace('<section id="venue"><h2>', "<section><h2 id=venue>")
    work = Work({**files, "index.html": page.encode()})
    assert len(list_passed(draft, work, tmp_path, jail, without=["opens"])) == 7


def test_a_deck_with_its_points_in_the_notes_of_the_cover(tmp_path: Path, jail: Jail) -> None:
    draft = forge("deck", 3)
    gold = pptx.Presentation(io.BytesIO(draft.gold["native-chart"].files["deck.pptx"]))
    made = pptx.Presentation()
    notes = [one.notes_slide.notes_text_frame.text for one in list(gold.slides)[1:]]
    texts = [
        shape.text.replace("\n", " ")
        for slide in gold.slides
        for shape in slide.shapes
        if shape.has_text_frame
    ]
    for slide, note in zip(gold.slides, ["\n".join(texts), *notes[1:], notes[0]], strict=True):
        page = made.slides.add_slide(made.slide_layouts[5])
        page.shapes.title.text = slide.shapes.title.text
        page.notes_slide.notes_text_frame.text = note
        if any(shape.has_chart for shape in slide.shapes):
            page.shapes.add_picture(draw_blank(), 0, 0)
    box = page.shapes.add_textbox(0, 0, 999, 999)
    box.text_frame.text = "(internal) This is not for everybody"
    passed = list_passed(draft, Work({"deck.pptx": save(made)}), tmp_path, jail)
    assert passed == {"slides", "titles"}


def test_boxes_everywhere_and_a_red_picture(tmp_path: Path, jail: Jail) -> None:
    draft = forge("annotate", 3)
    with Image.open(io.BytesIO(draft.inputs["scene.png"])) as scene:
        size = scene.size
    red = save_png(Image.new("RGB", size, (255, 0, 0)))
    first, *others = json.loads(draft.gold["exact"].files["boxes.json"])
    grid = [
        {"label": first["label"], "box": [x, y, x + side, y + side]}
        for side in (50, 60, 74, 99)
        for x in range(0, size[0], 16)
        for y in range(0, size[1], 16)
    ]
    junk = [{"label": "circle", "box": [0, 0, 5, 5]} for _ in others]
    for boxes in (grid, [first, *junk]):
        work = Work({"boxes.json": json.dumps(boxes).encode(), "marked.png": red})
        assert list_passed(draft, work, tmp_path, jail) == set()


def test_a_transparent_picture_a_red_grid_and_objects_painted_over(
    tmp_path: Path, jail: Jail
) -> None:
    draft = forge("annotate", 1)
    gold = draft.gold["exact"].files
    boxes = [one["box"] for one in json.loads(gold["boxes.json"])]
    with Image.open(io.BytesIO(gold["marked.png"])) as marked:
        clear, opaque = marked.convert("RGBA"), marked.convert("RGBA")
    clear.putalpha(0)
    with Image.open(io.BytesIO(draft.inputs["scene.png"])) as scene:
        grid, painted = scene.convert("RGB"), scene.convert("RGB")
    draw = ImageDraw.Draw(grid)
    for at in range(10, 720, 20):
        draw.line((0, at, 720, at), fill="red")
        draw.line((at, 0, at, 500), fill="red")
    for box in boxes:
        ImageDraw.Draw(painted).rectangle(box, fill="white", outline="red", width=3)
    for picture, lost in ((clear, {"frames", "size"}), (opaque, set()), (painted, {"frames"})):
        work = Work({**gold, "marked.png": save_png(picture)})
        passed = list_passed(draft, work, tmp_path, jail)
        assert passed == {"found", "count", "labels", "frames", "size"} - lost
    work = Work({**gold, "marked.png": save_png(grid)})
    assert "frames" not in list_passed(draft, work, tmp_path, jail)


def test_a_page_with_its_own_name_in_links_and_a_picture_that_cannot_be_decoded(
    tmp_path: Path, jail: Jail
) -> None:
    draft = forge("page", 1)
    files = dict(draft.gold["picture-beside"].files)
    page = files["index.html"].decode().replace('href="#', 'href="index.html#')
    for picture, lost in ((files["media/small.png"], set()), (b"", {"alt"})):
        broken = files["media/small.png"][:40] + b"x" * 4000
        work = Work({"index.html": page.encode(), "media/small.png": picture or broken})
        passed = list_passed(draft, work, tmp_path, jail, without=["opens"])
        every = {"links", "headings", "values", "rows", "order", "alt", "caption"}
        assert passed == every - lost
