"""Layout without a file: everything is placed, once, in order, inside, and apart."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.documents import layout
from gta_bench.tools.documents.blocks import (
    Alignment,
    Block,
    Grid,
    Line,
    Shown,
    TextRun,
    read_blocks,
)
from gta_bench.tools.documents.layout import (
    Page,
    PictureBlock,
    TableBlock,
    TextBlock,
    cut_runs,
    lay_out_pages,
    measure_piece,
    wrap,
)
from gta_bench.tools.documents.pictures import DecodedPicture

WORDS = st.text("ab 中文字W-<", min_size=1, max_size=120)
MARKS = st.sampled_from([None, "•", "3."])
LINES = st.builds(
    lambda text, bold, level, mark: Line((TextRun(text.strip() or "x", bold=bold),), level, mark),
    WORDS,
    st.booleans(),
    st.integers(0, 5),
    MARKS,
)


def _cell(text: str) -> tuple[TextRun, ...]:
    return (TextRun(text),) if text else ()


CELLS = st.text("ab 中", max_size=30).map(_cell)


def _grid(rows: list[list[tuple[TextRun, ...]]]) -> Grid:
    alignments: list[Alignment] = ["left" for _ in rows[0]]
    return Grid(tuple(tuple(row) for row in rows), tuple(alignments), header=1)


GRIDS = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=12)
).map(_grid)  # fmt: skip
PICTURES = st.builds(
    lambda width, height: DecodedPicture("inputs/p.png", b"", "image/png", width, height),
    st.integers(1, 5000),
    st.integers(1, 5000),
)


def texts(pages: list[Page]) -> list[str]:
    return [
        "".join(run.text for run in line.runs)
        for page in pages
        for block in page.blocks
        if isinstance(block, TextBlock)
        for line in block.lines
    ]


def assert_in_order(pages: list[Page]) -> None:
    for page in pages:
        for block in page.blocks:
            box = block.box
            assert box.left >= layout.MARGIN - 0.01
            assert box.top >= layout.BODY_TOP - 0.01
            assert box.left + box.width <= layout.WIDTH - layout.MARGIN + 0.01
            assert box.top + box.height <= layout.BODY_BOTTOM + 0.01
        for one, other in combinations((block.box for block in page.blocks), 2):
            assert (
                one.left + one.width <= other.left + 0.01
                or other.left + other.width <= one.left + 0.01
                or one.top + one.height <= other.top + 0.01
                or other.top + other.height <= one.top + 0.01
            )


@given(st.lists(LINES | GRIDS, max_size=10), st.lists(PICTURES, max_size=7))
@settings(max_examples=40)
def test_nothing_leaves_the_slide_overlaps_or_is_lost(
    blocks: list[Block], pictures: list[DecodedPicture]
) -> None:
    pages = lay_out_pages(blocks, pictures)
    assert_in_order(pages)
    placed = [block for page in pages for block in page.blocks]
    assert sum(isinstance(block, PictureBlock) for block in placed) == len(pictures)
    meant = "".join(run.text for block in blocks if isinstance(block, Line) for run in block.runs)
    assert "".join(texts(pages)).replace(" ", "") == meant.replace(" ", "")
    rows = [
        row
        for block in placed
        if isinstance(block, TableBlock)
        for row in block.grid.rows[block.grid.header :]
    ]
    assert rows == [
        row for block in blocks if isinstance(block, Grid) for row in block.rows[block.header :]
    ]


@given(st.lists(PICTURES, min_size=1, max_size=4))
def test_pictures_keep_their_shape(pictures: list[DecodedPicture]) -> None:
    (page,) = lay_out_pages([Line((TextRun("words"),))], pictures)
    for block in page.blocks:
        if isinstance(block, PictureBlock):
            shape = block.picture.width / block.picture.height
            assert block.box.width / block.box.height == pytest.approx(shape, rel=0.001)


@given(st.lists(st.builds(TextRun, WORDS, bold=st.booleans()), max_size=6), st.floats(40, 900))
@settings(max_examples=100)
def test_wrapped_lines_hold_the_words_and_fit(runs: list[TextRun], room: float) -> None:
    lengths = wrap(runs, room, 20.0)
    assert sum(lengths) == sum(len(run.text) for run in runs)
    rest = tuple(runs)
    for length in lengths:
        line, rest = cut_runs(rest, length)
        if length > 1:
            blanks = sum(measure_piece(" ", run, 20.0) for run in line)
            # A word in two styles may be broken between them, so one letter may be outside.
            most = room + measure_piece("W", TextRun("", bold=True), 20.0) + blanks
            words = "".join(run.text for run in line).rstrip()
            assert measure_piece(words, TextRun("", bold=False), 20.0) <= most
    early = wrap(runs, room, 20.0, most=2)
    assert early[:2] == lengths[:2]
    assert (len(early) > 2) == (len(lengths) > 2)


def test_a_short_text_is_large_and_a_longer_one_smaller() -> None:
    def size(count: int) -> float:
        (page,) = lay_out_pages([Line((TextRun("some words"),))] * count, [])
        (block,) = page.blocks
        assert isinstance(block, TextBlock)
        return block.size

    assert size(3) == layout.SIZES[0]
    assert layout.SIZES[-1] <= size(15) < layout.SIZES[0]


def test_a_paragraph_is_cut_between_words_and_goes_on_without_its_bullet() -> None:
    line = Line((TextRun("word " * 900),), 1, "•")
    pages = lay_out_pages([line], [])
    lines = [
        found
        for page in pages
        for block in page.blocks
        if isinstance(block, TextBlock)
        for found in block.lines
    ]
    assert len(pages) > 1
    assert [found.mark for found in lines] == ["•", *[None] * (len(lines) - 1)]
    assert all(found.hanging for found in lines[1:])
    assert all(found.runs[-1].text.endswith("word ") for found in lines[:-1])


def test_a_table_row_too_tall_for_a_slide_is_refused() -> None:
    with pytest.raises(ToolError, match="too tall for a slide"):
        lay_out_pages([_grid([[(TextRun("x " * 20_000),)]] * 2)], [])


def test_endless_content_is_refused() -> None:
    with pytest.raises(ToolError, match="fills 401 slides; at most 400"):
        lay_out_pages([Line((TextRun("x"),))] * 9_000, [])


def test_a_title_fits_at_some_size_or_at_none() -> None:
    sizes = [layout.fit_title([TextRun("word " * count)]) for count in (3, 20, 28, 200)]
    found = [title.size if title else None for title in sizes]
    assert found[0] == layout.TITLE_SIZES[0]
    assert found[-1] is None
    assert found[1] is not None
    assert found[1] <= found[0]


def test_widths_are_those_of_arial() -> None:
    """`fonts-liberation` has a double with the same widths; where it lies, every letter agrees."""
    from pathlib import Path

    from PIL import ImageFont

    from gta_bench.tools.documents.layout import ARIAL

    font = next(Path("/usr/share/fonts").rglob("LiberationSans-Regular.ttf"), None)
    if font is None:
        pytest.skip("no Liberation Sans here")
    drawn = ImageFont.truetype(str(font), 1000)
    for number, width in enumerate(ARIAL):
        assert abs(drawn.getlength(chr(32 + number)) - width) <= 2, chr(32 + number)


# What pandoc's tree becomes


def text(words: str) -> dict[str, object]:
    return {"t": "Str", "c": words}


def test_pictures_and_words_of_a_paragraph_are_told_apart() -> None:
    image = {"t": "Image", "c": [["", [], []], [], ["inputs/a.png", ""]]}
    paragraph = {"t": "Para", "c": [text("see\ue0003\ue001this"), image, {"t": "LineBreak"}, image]}
    assert read_blocks([paragraph]) == [
        Line((TextRun("seethis"),)),
        Shown(number=3),
        Shown(target="inputs/a.png"),
        Shown(target="inputs/a.png"),
    ]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"t": "HorizontalRule"}, []),
        (
            {"t": "Header", "c": [2, ["", [], []], [text("h")]]},
            [Line((TextRun("h"),), kind="heading")],
        ),
        (
            {"t": "LineBlock", "c": [[text("a")], [text("b")]]},
            [Line((TextRun("a"),)), Line((TextRun("b"),))],
        ),
        (
            {"t": "DefinitionList", "c": [[[text("t")], [[{"t": "Plain", "c": [text("d")]}]]]]},
            [Line((TextRun("t"),)), Line((TextRun("d"),))],
        ),
        (
            {"t": "Div", "c": [["", [], []], [{"t": "Plain", "c": [text("x")]}]]},
            [Line((TextRun("x"),))],
        ),
        (
            {"t": "Para", "c": [text("n"), {"t": "Note", "c": [{"t": "Para", "c": [text("f")]}]}]},
            [Line((TextRun("n (f)"),))],
        ),
        ({"t": "Para", "c": [{"t": "Space"}]}, []),
        (
            {"t": "Para", "c": [{"t": "Code", "c": [["", [], []], "\ue0001\ue001"]}]},
            [Line((TextRun("{{image_1}}", code=True),))],
        ),
    ],
)
def test_every_kind_of_block_is_understood(node: dict[str, object], expected: list[Block]) -> None:
    assert read_blocks([node]) == expected


def test_a_list_in_a_quote_and_a_second_paragraph_keep_their_place() -> None:
    item = [{"t": "Para", "c": [text("a")]}, {"t": "Para", "c": [text("b")]}]
    assert read_blocks([{"t": "BlockQuote", "c": [{"t": "BulletList", "c": [item]}]}]) == [
        Line((TextRun("a"),), 1, "•", "quote"),
        Line((TextRun("b"),), 1, None, "quote", hanging=True),
    ]
