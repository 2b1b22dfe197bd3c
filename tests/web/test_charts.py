import pytest

from gta_bench.records.workflow_scores import CurvePoint
from gta_bench.web.charts import HEIGHT, WIDTH, Spent, axis_end, draw_curve, draw_front, find_front

CHEAP, GOOD, BAD = Spent("1", 0.1, 40), Spent("2", 0.8, 70), Spent("3", 0.5, 30)


def test_the_front_holds_what_no_other_beats() -> None:
    assert find_front([CHEAP, GOOD, BAD]) == [CHEAP, GOOD]
    same = CHEAP._replace(label="4")
    assert find_front([CHEAP, same]) == [CHEAP, same]


def test_dots_lie_where_their_numbers_say() -> None:
    chart = draw_front([CHEAP, GOOD, BAD], x_label="US$", y_label="Root SR")
    assert [tick.label for tick in chart.x_ticks] == ["0", "0.25", "0.5", "0.75", "1"]
    assert (chart.dots[0].x, chart.dots[0].y) == pytest.approx((WIDTH * 0.1, HEIGHT * 0.6))
    assert [dot.front for dot in chart.dots] == [True, True, False]
    assert "on the front: 1, 2." in chart.about
    assert chart.lines[0].points == "26,78 208,39"


@pytest.mark.parametrize(
    ("highest", "end"), [(0, 1), (0.063, 0.1), (1, 1), (1.5, 2), (3, 4), (4.1, 10), (90, 100)]
)
def test_an_axis_ends_at_a_short_number(highest: float, end: float) -> None:
    assert axis_end(highest) == pytest.approx(end)


def test_a_curve_leaves_out_what_was_not_measured() -> None:
    points = [
        CurvePoint(threshold=0, leaf_sr=100, root_sr=None),
        CurvePoint(threshold=10, leaf_sr=0, root_sr=None),
    ]
    leaf, root = draw_curve(points).lines
    assert leaf.points == f"0,0 {WIDTH},{HEIGHT}"
    assert root.points == ""
