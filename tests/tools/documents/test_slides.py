import asyncio

import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.documents.blocks import Grid, Line, Shown, TextRun
from gta_bench.tools.documents.slides import SlideSource, read_slides, read_sources
from tests.tools.documents.making import as_json, jail


def texts(*slides: object) -> tuple[SlideSource, ...]:
    return read_sources(as_json(list(slides)))


def blocks(content: object) -> list[object]:
    (slide,) = asyncio.run(read_slides(jail(), texts({"title": "t", "content": content})))
    return list(slide.blocks)


# JSON


def test_title_content_and_notes_are_read() -> None:
    (text,) = texts({"title": " A \n title ", "content": "x", "notes": "say {{image_1}}"})
    assert text == SlideSource("A title", "x", "say \ue0001\ue001")


def test_numbers_are_text_and_null_is_nothing() -> None:
    assert texts({"title": 2026, "content": None}) == (SlideSource("2026", "", ""),)


@pytest.mark.parametrize(
    ("points", "markdown"),
    [
        (["a", "b"], "- a\n- b"),
        (["a", ["b", ["c"]]], "- a\n  - b\n    - c"),
        (["- a", "* b", "1. c"], "- a\n* b\n1. c"),
        (["# head", "> quote", "| a |"], "# head\n> quote\n| a |"),
        (["```", "code", "```"], "```\n- code\n```"),
        (["{{image_1}}"], "\ue0001\ue001"),
        (["text {{image_1}}"], "- text \ue0001\ue001"),
        (["two\nlines"], "two\nlines"),
        (["", "a"], "\n- a"),
        ([1, 2.5], "- 1\n- 2.5"),
        (["• a", "●b"], "- a\n- b"),
    ],
)
def test_a_list_s_entries_are_points_unless_they_are_markdown(
    points: list[object], markdown: str
) -> None:
    assert texts({"content": points})[0].content.replace("\n\n", "\n") == markdown


@pytest.mark.parametrize(
    ("slides", "said"),
    [
        ([], "not a list of slides"),
        ([{}], "Slide 1 is not an object"),
        ([{"title": "a"}, 7], "Slide 2 is not an object"),
        ([{"title": "a", "image": "x"}], "unknown key 'image'"),
        ([{"content": {"a": "b"}}], "'content' is not text"),
        ([{"notes": ["a"]}], "'notes' is not text"),
        ([{"content": [[[[[["deep"]]]]]]}], "'content' is not text"),
        ([{"title": "x"}] * 201, "201 slides; at most 200"),
    ],
)
def test_an_invalid_slide_is_named_by_its_number(slides: list[object], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        read_sources(as_json(slides))


def test_an_object_of_slides_and_a_single_slide_are_lists() -> None:
    slide = {"title": "a"}
    assert (
        read_sources(as_json({"slides": [slide]})) == read_sources(as_json(slide)) == texts(slide)
    )


# Markdown


def test_lists_keep_level_mark_and_order() -> None:
    assert blocks("- a\n  1. b\n  2. c\n- d") == [
        Line((TextRun("a"),), 1, "•"),
        Line((TextRun("b"),), 2, "1."),
        Line((TextRun("c"),), 2, "2."),
        Line((TextRun("d"),), 1, "•"),
    ]


def test_a_task_s_box_is_its_mark() -> None:
    assert blocks("- [x] done\n- [ ] open") == [
        Line((TextRun("done"),), 1, "☒"),
        Line((TextRun("open"),), 1, "☐"),
    ]


def test_words_have_the_looks_of_their_marks() -> None:
    (line,) = blocks("a **b *c*** `d` ~~e~~ <u>f</u> H<sub>2</sub>")
    assert isinstance(line, Line)
    looks = {run.text.strip(): run for run in line.runs}
    assert looks["b"].bold
    assert looks["c"].bold
    assert looks["c"].italic
    assert looks["d"].code
    assert looks["e"].strike
    assert looks["f"].underline
    assert looks["2"].raised == -1


@pytest.mark.parametrize(
    ("target", "link"),
    [("https://a.b", "https://a.b"), ("mailto:a@b.c", "mailto:a@b.c"), ("file:///etc", None)],
)
def test_only_links_that_lead_out_are_kept(target: str, link: str | None) -> None:
    assert blocks(f"[words]({target})") == [Line((TextRun("words", link=link),))]


def test_a_table_has_its_cells_alignments_and_header() -> None:
    assert blocks("| a | b | c |\n|:--|--:|:-:|\n| **x** | | z |") == [
        Grid(
            (
                ((TextRun("a"),), (TextRun("b"),), (TextRun("c"),)),
                ((TextRun("x", bold=True),), (), (TextRun("z"),)),
            ),
            ("left", "right", "center"),
            header=1,
        )
    ]


def test_pictures_in_a_table_stand_after_it() -> None:
    grid, shown = blocks("| a |\n|--|\n| x {{image_2}} |")
    assert isinstance(grid, Grid)
    assert grid.rows[1] == ((TextRun("x"),),)
    assert shown == Shown(number=2)


def test_html_tables_are_tables() -> None:
    made = blocks("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>")
    (grid,) = made
    assert isinstance(grid, Grid)
    assert [[cell[0].text for cell in row] for row in grid.rows] == [["a"], ["1"]]


def test_slides_do_not_reach_into_each_other() -> None:
    """An open comment, fence, list or link definition ends with its slide."""
    slides = asyncio.run(
        read_slides(
            jail(),
            texts(
                {"content": "<!-- open"},
                {"content": "~~~\nopen"},
                {"content": "[a]: https://a.b"},
                {"content": "[a] and **b**"},
            ),
        )
    )
    assert slides[3].blocks == (Line((TextRun("[a] and "), TextRun("b", bold=True))),)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Plain", "Plain"),
        ("**Bold** title", "Bold title"),
        ("1. Start", "1. Start"),
        ("- dash", "- dash"),
        ("# Heading", "Heading"),
        ("2026: $x^2$", "2026: x2"),
        ("a | b", "a | b"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_a_title_is_one_line_of_words(title: str, expected: str) -> None:
    (slide,) = asyncio.run(read_slides(jail(), texts({"title": title, "content": "x"})))
    assert "".join(run.text for run in slide.title) == expected
