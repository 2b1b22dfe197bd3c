"""The file itself: order of elements that PowerPoint insists on, fonts, marks, tables."""

import io
from typing import Any

import pytest
from pptx import Presentation

from gta_bench.tools.documents import layout
from gta_bench.tools.documents.blocks import Grid, Line, TextRun
from gta_bench.tools.documents.layout import (
    Page,
    PictureBlock,
    SlideBox,
    TextBlock,
    Title,
    lay_out_pages,
)
from gta_bench.tools.documents.pictures import DecodedPicture
from gta_bench.tools.documents.presentation import DeckSlide, build_deck
from tests.tools.documents.making import parts
from tests.tools.documents.sample import wide_picture

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
# The order in which the standard has the parts of a paragraph's and of a run's properties.
PARAGRAPH_ORDER = ["lnSpc", "spcBef", "spcAft", "buFont", "buNone", "buAutoNum", "buChar"]
RUN_ORDER = ["solidFill", "latin", "ea", "hlinkClick"]


def deck(*lines: Line, title: str = "t") -> Any:
    return opened(
        [DeckSlide(layout.fit_title([TextRun(title)]), page) for page in lay_out_pages(lines, [])]
    )


def opened(sheets: list[DeckSlide]) -> Any:
    return Presentation(io.BytesIO(build_deck(sheets)))


def paragraphs(made: Any) -> list[Any]:
    return [
        paragraph
        for slide in made.slides
        for shape in slide.shapes
        if shape.has_text_frame and shape != slide.shapes.title
        for paragraph in shape.text_frame.paragraphs
    ]


def names(element: Any) -> list[str]:
    return [child.tag.removeprefix(A) for child in element]


LOOKS = [
    TextRun("plain"),
    TextRun("bold", bold=True),
    TextRun("linked", link="https://a.b"),
    TextRun("raised", raised=1),
    TextRun("struck", strike=True),
    TextRun("中文", italic=True, underline=True),
    TextRun("code", code=True),
]


@pytest.mark.parametrize("mark", [None, "•", "7.", "☒"])
@pytest.mark.parametrize("kind", ["text", "heading", "quote", "code"])
def test_properties_stand_in_the_order_that_the_standard_has(mark: str | None, kind: Any) -> None:
    made = deck(Line(tuple(LOOKS), 1, mark, kind))
    for paragraph in paragraphs(made):
        found = names(paragraph._p.pPr)
        assert found == sorted(found, key=PARAGRAPH_ORDER.index)
        for run in paragraph.runs:
            found = names(run._r.rPr)
            assert found == sorted(found, key=RUN_ORDER.index)


def test_heights_of_lines_are_fixed_so_that_no_font_changes_them() -> None:
    (paragraph,) = paragraphs(deck(Line((TextRun("中文 English"),))))
    size = paragraph.runs[0].font.size.pt
    assert paragraph.line_spacing.pt == pytest.approx(size * layout.LEADING, abs=0.1)


@pytest.mark.parametrize(
    ("level", "char"), [(1, "•"), (2, "\u2013"), (3, "▪"), (4, "\u2013"), (5, "▪"), (9, "▪")]
)
def test_deeper_points_have_other_bullets_and_stand_further_in(level: int, char: str) -> None:
    (paragraph,) = paragraphs(deck(Line((TextRun("x"),), level, "•")))
    properties = paragraph._p.pPr
    assert properties.find(f"{A}buChar").get("char") == char
    size = paragraph.runs[0].font.size.pt
    left = int(properties.get("marL")) / 12700
    assert left == pytest.approx(size * layout.INDENT * level, abs=0.1)
    assert int(properties.get("indent")) < 0


def test_a_line_without_a_mark_has_none() -> None:
    (paragraph,) = paragraphs(deck(Line((TextRun("x"),))))
    assert paragraph._p.pPr.find(f"{A}buNone") is not None
    assert paragraph._p.pPr.get("marL") == "0"


def test_a_deck_is_wide_and_has_a_slide_for_each_sheet() -> None:
    sheets = [DeckSlide(Title((TextRun(str(n)),), 32.0), Page(())) for n in range(3)]
    made = opened(sheets)
    assert made.slide_width / made.slide_height == pytest.approx(16 / 9, rel=0.001)
    assert [slide.shapes.title.text for slide in made.slides] == ["0", "1", "2"]


def test_a_sheet_without_title_has_no_empty_box_for_one() -> None:
    made = opened([DeckSlide(None, lay_out_pages([Line((TextRun("x"),))], [])[0])])
    (slide,) = made.slides
    assert slide.shapes.title is None
    assert len(list(slide.shapes)) == 1


def test_notes_are_on_the_sheet_that_has_them() -> None:
    made = opened([DeckSlide(None, Page(()), "said"), DeckSlide(None, Page(()))])
    first, second = made.slides
    assert first.notes_slide.notes_text_frame.text == "said"
    assert not second.has_notes_slide


def test_a_picture_has_words_for_those_who_cannot_see_it() -> None:
    picture = DecodedPicture("inputs/sales 2026.png", wide_picture(), "image/png", 3000, 200)
    made = opened([DeckSlide(None, Page((PictureBlock(SlideBox(50, 150, 600, 40), picture),)))])
    (shape,) = made.slides[0].shapes
    assert shape._element.nvPicPr.cNvPr.get("descr") == "sales 2026"
    assert shape.width / shape.height == pytest.approx(15, rel=0.01)


def table(*rows: tuple[str, ...], header: int = 1) -> Any:
    cells = tuple(tuple((TextRun(text),) if text else () for text in row) for row in rows)
    grid = Grid(cells, ("left", "right", "center")[: len(rows[0])], header)  # type: ignore[arg-type]
    made = opened([DeckSlide(None, page) for page in lay_out_pages([grid], [])])
    (shape,) = made.slides[0].shapes
    return shape.table


def test_a_table_has_widths_heights_and_alignments() -> None:
    made = table(("a", "b", "c"), ("long text in this cell", "1", ""))
    widths = [column.width for column in made.columns]
    assert widths[0] > widths[1] > 0
    assert widths[1] == pytest.approx(widths[2], rel=0.05)
    alignments = [made.cell(1, column).text_frame.paragraphs[0].alignment for column in range(3)]
    assert [int(alignment) for alignment in alignments if alignment is not None] == [1, 3, 2]
    assert all(row.height > 0 for row in made.rows)


def test_a_header_is_bold_and_a_table_without_one_is_not() -> None:
    def is_bold(made: Any) -> bool:
        return bool(made.cell(0, 0).text_frame.paragraphs[0].runs[0].font.bold)

    assert is_bold(table(("a",), ("b",)))
    assert not is_bold(table(("a",), ("b",), header=0))


def test_a_line_break_in_a_cell_is_one() -> None:
    assert table(("a\nb",)).cell(0, 0).text_frame.text == "a\x0bb"


def test_text_with_markup_in_it_stays_text() -> None:
    words = '<a:t> & "quotes" \' ]]> \u2028 {{image_1}}'
    made = deck(Line((TextRun(words),)), title=words)
    assert paragraphs(made)[0].text == words
    assert made.slides[0].shapes.title.text == words


def test_a_block_of_text_is_as_tall_as_its_lines() -> None:
    (page,) = lay_out_pages([Line((TextRun("one"),)), Line((TextRun("two"),))], [])
    (block,) = page.blocks
    assert isinstance(block, TextBlock)
    height = 2 * block.size * (layout.LEADING + layout.PARAGRAPH_GAP)
    assert block.box.height == pytest.approx(height)


def test_the_file_has_no_slide_left_of_the_template() -> None:
    made = parts(build_deck([DeckSlide(None, Page(()))]))
    assert [name for name in made if name.startswith("ppt/slides/slide")] == [
        "ppt/slides/slide1.xml"
    ]
