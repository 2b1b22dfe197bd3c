"""Text and pictures before pandoc: what is found, what is numbered, what is bounded."""

import json
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.documents.markdown import MOST_PICTURES, Manuscript, read_manuscript
from tests.tools.documents.making import Bench, back_to_markdown, bench


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def read(desk: Bench, content: str, images: str = "", *, render: bool = True) -> Manuscript:
    return read_manuscript(desk.workspace, content, images, render_markdown=render)


def plan(manuscript: Manuscript) -> dict[str, object]:
    found = json.loads(manuscript.inputs(embed=True)["plan.json"])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "content",
    [
        "![a](inputs/wide.png)",
        "![](<inputs/wide.png>)",
        "![](  wide.png 'title')",
        '<img alt="x" src="inputs/wide.png">',
        "<IMG SRC='inputs/wide.png'/>",
        "![a](inputs/none.png) ![b](inputs/wide.png)",
    ],
)
def test_pictures_that_the_text_names_are_found(desk: Bench, content: str) -> None:
    manuscript = read(desk, content)
    assert [picture.path for picture in manuscript.pictures] == ["inputs/wide.png"]
    assert set(manuscript.targets.values()) == {1}
    assert manuscript.numbered == 0


def test_a_picture_that_is_numbered_and_named_is_there_once(desk: Bench) -> None:
    manuscript = read(desk, "{{image_1}} ![](inputs/wide.png)", "wide.png")
    assert len(manuscript.pictures) == 1
    assert manuscript.targets["inputs/wide.png"] == 1
    assert plan(manuscript)["append"] == [1]


def test_files_beside_the_text_have_plain_names(desk: Bench) -> None:
    inputs = read(desk, "x", "wide.png, tall.png").inputs(embed=False)
    assert sorted(inputs) == [
        "filter.lua",
        "picture-1.png",
        "picture-2.png",
        "plan.json",
        "raw.lua",
    ]
    assert plan(read(desk, "x"))["embed"] is True


@pytest.mark.parametrize(
    ("content", "marks", "formats"),
    [
        ("words", False, False),
        ("{{image_1}}", True, False),
        ("a <b>bold</b>", False, True),
        ("a < b", False, False),
        ("<br>", False, False),
    ],
)
def test_dear_steps_are_taken_only_where_they_are_needed(
    desk: Bench, content: str, marks: bool, formats: bool
) -> None:
    found = plan(read(desk, content, "wide.png"))
    assert found["marks"] is marks
    assert found["formats"] is formats


def test_too_many_pictures_are_refused(desk: Bench) -> None:
    images = ", ".join(["wide.png"] * 3)
    assert len(read(desk, "x", images).pictures) == 3
    with pytest.raises(ToolError, match=f"at most {MOST_PICTURES}"):
        read(desk, "x", ", ".join(["wide.png"] * (MOST_PICTURES + 1)))


def test_text_without_markup_is_pandoc_s_own_form(desk: Bench) -> None:
    manuscript = read(desk, "# a\n  b  c\n\n\nd\t{{image_1}}", "wide.png", render=False)
    assert manuscript.reader == "json"
    blocks = json.loads(manuscript.text)["blocks"]
    assert [block["t"] for block in blocks] == ["Para", "Para"]
    words = [inline.get("c", inline["t"]) for inline in blocks[0]["c"]]
    assert words == ["#", "Space", "a", "LineBreak", "\u00a0\u00a0b", "Space", "Space", "c"]


# HTML in Markdown, through the whole tool


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("a <b>b</b> c", "a **b** c"),
        ("<strong>x <em>y</em></strong>", "**x *y***"),
        ("<i>x</i> and <del>y</del>", "*x* and ~~y~~"),
        ("one<br/>two", "one\\\ntwo"),
        ("<span style='color:red'>red</span>", "red"),
        ("<center>middle</center>", "middle"),
        ("<p>para</p>", "para"),
        ("<h2>head</h2>", "## head"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<blockquote>q</blockquote>", "> q"),
        ("<!-- gone -->x", "x"),
        ("<b>never closed", "\\<b\\>never closed"),
        ("x</b>", "x\\</b\\>"),
        ("<object data='x'></object>", "\\<object data='x'\\>\\</object\\>"),
        ("<a href='https://a.b'>l</a>", "l"),
    ],
)
def test_simple_html_means_what_it_says_and_other_html_is_shown(
    desk: Bench, html: str, markdown: str
) -> None:
    made = desk.make("DocxFileGenerator", content=html, image_paths="")
    assert back_to_markdown(made).strip() == markdown


def test_a_table_of_html_has_its_cells(desk: Bench) -> None:
    html = (
        "<table>\n<thead><tr><th>Region</th><th>Q3</th></tr></thead>\n"
        "<tbody><tr><td>East <b>1</b></td><td>1,350</td></tr></tbody>\n</table>"
    )
    made = back_to_markdown(desk.make("DocxFileGenerator", content=html, image_paths=""))
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in made.splitlines()]
    assert rows[0] == ["Region", "Q3"]
    assert rows[2] == ["East **1**", "1,350"]
