import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.backends.boxes import Box, clamp, parse_box

SIZE = (100, 80)


@pytest.mark.parametrize(
    ("spelling", "box"),
    [
        ("(10, 20, 30, 40)", (10, 20, 30, 40)),
        ("10,20,30,40", (10, 20, 30, 40)),
        ("[30, 40, 10, 20]", (10, 20, 30, 40)),
        ("(10, 40, 30, 20)", (10, 20, 30, 40)),
        ("(-5, -5, 200, 200)", (0, 0, 100, 80)),
        ("x1=10.4 y1=19.6 x2=30 y2=40.2", None),
        ("(10.4, 19.6, 30, 40.2)", (10, 20, 30, 40)),
    ],
)
def test_a_box_is_ordered_and_clamped(spelling: str, box: tuple[int, ...] | None) -> None:
    if box is None:
        with pytest.raises(ToolError, match="is not a box"):
            parse_box(spelling, SIZE)
    else:
        assert parse_box(spelling, SIZE) == box


@pytest.mark.parametrize("spelling", ["", "left", "(1, 2, 3)", "(1, 2, 3, 4, 5)", "(a, b, c, d)"])
def test_what_is_no_box_is_told_with_the_form(spelling: str) -> None:
    with pytest.raises(ToolError, match=r"Write `\(x1, y1, x2, y2\)` in pixels"):
        parse_box(spelling, SIZE)


@pytest.mark.parametrize(
    "spelling", ["(5, 5, 5, 50)", "(100, 0, 300, 80)", "(0, 90, 50, 95)", "(0, 0, 0.2, 80)"]
)
def test_a_box_without_area_is_refused_with_the_image_s_size(spelling: str) -> None:
    with pytest.raises(ToolError, match="has no area inside the image of 100 x 80 pixels"):
        parse_box(spelling, SIZE)


FAR = st.floats(-1e6, 1e6)


@given(st.tuples(FAR, FAR, FAR, FAR))
def test_a_clamped_box_is_inside_the_image(corners: tuple[float, float, float, float]) -> None:
    box = clamp(corners, SIZE)
    assert 0 <= box.x1 <= box.x2 <= SIZE[0]
    assert 0 <= box.y1 <= box.y2 <= SIZE[1]
    assert box.overlap(box) == (1 if box.area else 0)


def test_overlap_is_intersection_over_union() -> None:
    assert Box(0, 0, 10, 10).overlap(Box(5, 0, 15, 10)) == pytest.approx(50 / 150)
    assert Box(0, 0, 10, 10).overlap(Box(10, 0, 20, 10)) == 0
    assert str(Box(1, 2, 3, 4)) == "(1, 2, 3, 4)"


def test_a_box_has_its_left_top_corner_and_not_its_right_bottom_one() -> None:
    box = Box(0, 0, 10, 20)
    assert box.center == (5, 10)
    assert [box.has(point) for point in (box.center, (0, 0), (10, 20), (-1, 5))] == [
        True,
        True,
        False,
        False,
    ]
