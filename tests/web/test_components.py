"""Components of pages: positions are percentages of an axis that starts at zero."""

import pytest

from gta_bench.web.components import PlotPoint, plot_end, plot_intervals, stack_counts


@pytest.mark.parametrize(
    ("highest", "top", "end"),
    [(0, 100, 1), (17.3, 100, 20), (41, 100, 60), (81, 100, 100), (100, 100, 100), (3.4, 10, 4)],
)
def test_an_axis_ends_at_a_short_number_that_is_not_exceeded(
    highest: float, top: float, end: float
) -> None:
    assert plot_end(highest, top=top) == pytest.approx(end)


def test_rows_share_one_axis_and_stay_inside_of_it() -> None:
    points = [PlotPoint("a", 10, 5, 20, "10.0"), PlotPoint("b", 0, 0, 3, "0.0")]
    plot = plot_intervals(points)
    assert [(row.at, row.low, row.high) for row in plot.rows] == [(50, 25, 100), (0, 0, 15)]
    assert [tick.label for tick in plot.ticks] == ["0", "", "10", "", "20 %"]
    assert plot_intervals(points, end=100.0).rows[0].high == 20


def test_a_bar_contains_everything_once() -> None:
    bar = stack_counts([("passed", 1), ("format", 2), ("context", 0)], "Of 3 leaves")
    assert [(one.start, one.end, one.css) for one in bar.segments] == [
        (0, 33.33, "cause-passed"),
        (33.33, 100, "cause-format"),
    ]
    assert bar.about == "Of 3 leaves: 1 passed, 2 format"
