import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.operation.drawing import (
    Anchor,
    PixelBox,
    Point,
    Size,
    read_box,
    read_position,
)

SIZE = Size(300, 200)
numbers = st.floats(-1e6, 1e6, allow_nan=False)


@pytest.mark.parametrize(
    "written",
    [
        "(10, 20, 30, 40)",
        "10, 20, 30, 40",
        "10,20,30,40",
        "[10, 20, 30, 40]",
        "(10, 20), (30, 40)",
        "10 20 30 40",
        " '(10.2, 19.8, 30, 4e1)' ",
        "(30, 40, 10, 20)",
        "(30, 20, 10, 40)",
    ],
)
def test_a_box_is_read_in_many_spellings_and_from_any_corners(written: str) -> None:
    assert read_box(written, SIZE) == PixelBox(10, 20, 30, 40)


@pytest.mark.parametrize(
    ("written", "box"),
    [
        ("(-50, -50, 1000, 1000)", PixelBox(0, 0, 299, 199)),
        ("(290, 190, 500, 500)", PixelBox(290, 190, 299, 199)),
        ("(299.7, 10, 299.9, 20)", PixelBox(299, 10, 299, 20)),
        ("(5, 5, 5, 5)", PixelBox(5, 5, 5, 5)),
    ],
)
def test_a_box_is_cut_to_the_image(written: str, box: PixelBox) -> None:
    assert read_box(written, SIZE) == box


@pytest.mark.parametrize(
    "written",
    ["", "(1, 2, 3)", "(1, 2, 3, 4, 5)", "x1=1, y1=2, x2=3, y2=4", "(1, 2, 3, four)", "nan nan 1 2",
     "(1e999, 2, 3, 4)", "inf, 0, 1, 1", "1" * 5000, "(1, 2, 3, 4"[::-1] + "x"],
)  # fmt: skip
def test_what_is_no_box_is_refused_with_the_form(written: str) -> None:
    with pytest.raises(ToolError, match=r"does not have the form `\(x1, y1, x2, y2\)`") as caught:
        read_box(written, SIZE)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("written", ["(300, 0, 400, 50)", "(0, 200, 9, 999)", "(-9, -9, -1, -1)"])
def test_a_box_outside_of_the_image_is_refused_with_the_images_size(written: str) -> None:
    with pytest.raises(ToolError, match="outside of the image, which has 300 x 200 pixels"):
        read_box(written, SIZE)


@given(x1=numbers, y1=numbers, x2=numbers, y2=numbers)
def test_every_box_that_is_read_lies_inside_in_order(
    x1: float, y1: float, x2: float, y2: float
) -> None:
    try:
        box = read_box(f"({x1}, {y1}, {x2}, {y2})", SIZE)
    except ToolError as exc:
        assert "outside" in str(exc)
        return
    assert 0 <= box.left <= box.right < SIZE.width
    assert 0 <= box.top <= box.bottom < SIZE.height


@given(
    left=st.integers(0, 299),
    top=st.integers(0, 199),
    right=st.integers(0, 299),
    bottom=st.integers(0, 199),
    form=st.sampled_from(["({}, {}, {}, {})", "{},{},{},{}", "[{} {} {} {}]"]),
)
def test_a_box_inside_is_read_exactly(
    left: int, top: int, right: int, bottom: int, form: str
) -> None:
    read = read_box(form.format(left, top, right, bottom), SIZE)
    assert (read.left, read.right) == (min(left, right), max(left, right))
    assert (read.top, read.bottom) == (min(top, bottom), max(top, bottom))


@given(st.text(max_size=60))
def test_any_text_is_a_box_or_refused(written: str) -> None:
    try:
        read_box(written, SIZE)
    except ToolError as exc:
        assert str(exc)


@pytest.mark.parametrize(
    ("written", "position"),
    [
        ("(107, 297)", Point(107, 297)),
        ("5,100", Point(5, 100)),
        ("[-3.5, 8]", Point(-3.5, 8)),
        ("mt", Anchor("m", "t")),
        ("'lb'", Anchor("l", "b")),
        ("RM", Anchor("r", "m")),
        ("mm", Anchor("m", "m")),
        ("tl", Anchor("l", "t")),
        ("bm", Anchor("m", "b")),
        ("mr", Anchor("r", "m")),
    ],
)
def test_a_position_is_a_point_or_two_letters(written: str, position: Point | Anchor) -> None:
    assert read_position(written) == position


@pytest.mark.parametrize(
    "written", ["", "m", "tt", "lr", "xx", "top left", "(1, 2, 3)", "(1)", "nan, 1"]
)
def test_other_positions_are_refused_with_the_known_ones(written: str) -> None:
    with pytest.raises(ToolError, match="neither `\\(x, y\\)` nor one of l, m, r"):
        read_position(written)


@given(st.text(max_size=40))
def test_any_text_is_a_position_or_refused(written: str) -> None:
    try:
        assert isinstance(read_position(written), Point | Anchor)
    except ToolError as exc:
        assert str(exc)


@given(x=numbers, y=numbers)
def test_a_point_is_read_exactly(x: float, y: float) -> None:
    assert read_position(f"({x!r}, {y!r})") == Point(x, y)
