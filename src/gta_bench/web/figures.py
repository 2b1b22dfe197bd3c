"""Figures of runs for papers: SVG, PDF, and the numbers of each as CSV beside it.

Colors are those of Okabe and Ito, which color-blind people can tell apart; hatches, markers and
dashes say the same again.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gta_bench.metrics import table
from gta_bench.records.failures import FailureCause
from gta_bench.reports.findings import FAULTLESS, PASSED, UNSCORED, pair_runs
from gta_bench.web.boards import TITLES, per_task
from gta_bench.web.first_screen import Headline, find_headlines, list_contenders
from gta_bench.web.material import AtomicRun, RunMaterial, run_mode

if TYPE_CHECKING:
    # Drawing is not part of the core.
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#7F7F7F"
CAUSE_COLORS: Final[Mapping[FailureCause | str, str]] = {
    PASSED: GREEN,
    "wrong content": ORANGE,
    "missing deliverable": "#56B4E9",
    "tool error": "#E69F00",
    "tool unavailable": "#8C6D1F",
    "format": "#CC79A7",
    "wrong tool": BLUE,
    "arguments": "#332288",
    "context": "#999933",
    "turn limit": "#882255",
    "judge unscored": GRAY,
    "infrastructure": "#BBBBBB",
    UNSCORED: "#DDDDDD",
}
HATCHED: Final = frozenset({*FAULTLESS, UNSCORED})
MARKERS: Final = "osD^vP*X"
WIDTH: Final = 6.0  # inches, the text width of most papers
ROW: Final = 0.32
_Cell = str | float | int | None
_NumberedRuns = Sequence[tuple[int, RunMaterial]]


class PaperFigure(NamedTuple):
    """A figure: its numbers, which the CSV file has, and how it is drawn."""

    name: str
    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[_Cell, ...], ...]
    draw: Callable[["Axes", "PaperFigure"], None]
    height: float


def write_figures(runs: Sequence[RunMaterial], folder: Path) -> list[Path]:
    """Write every figure that the runs have numbers for, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [file for figure in list_figures(runs) for file in _write(figure, folder)]


def list_figures(runs: Sequence[RunMaterial]) -> Iterator[PaperFigure]:
    """Yield intervals, causes, thresholds, costs and paired differences, by mode."""
    headlines = [find_headlines(run) for run in runs]
    for mode in TITLES:
        chosen = [index for index, run in enumerate(runs) if run_mode(run) == mode]
        own = [(index + 1, runs[index]) for index in chosen]
        found = [headlines[index] for index in chosen]
        for make in (_intervals, _causes, _thresholds, _costs, _differences):
            figure = make(own, found)
            if figure is not None and figure.rows:
                yield figure._replace(name=f"{figure.name}-{mode}")


def _intervals(runs: _NumberedRuns, headlines: Sequence[Sequence[Headline]]) -> PaperFigure | None:
    rows: list[tuple[_Cell, ...]] = []
    for (_, run), found in zip(runs, headlines, strict=True):
        for one in found:
            if (own := one.primary) is not None:
                tasks = own.n, len(run.summary.manifest.spec.tasks)
                rows.append((_label(run, one), own.value, own.low, own.high, *tasks))
    if not rows:
        return None
    metric = table.primary(run_mode(runs[0][1])).label
    heading = ("run", metric, "low", "high", "tasks", "of tasks")
    title = f"{metric} in %, with 95 % intervals over tasks"
    return PaperFigure("intervals", title, heading, tuple(rows), _draw_intervals, _height(rows))


def _label(run: RunMaterial, one: Headline) -> str:
    several = not isinstance(run, AtomicRun) and len(run.summary.scores.judges) > 1
    return f"{run.summary.name}, {one.judge}" if several else run.summary.name


def _causes(runs: _NumberedRuns, headlines: Sequence[Sequence[Headline]]) -> PaperFigure | None:
    rows: list[tuple[_Cell, ...]] = []
    for (_, run), found in zip(runs, headlines, strict=True):
        for one in found:
            if (own := one.finding.outcomes) is not None:
                counts = dict(own.counts())
                label = _label(run, one)
                rows += [(label, name, counts[name]) for name in CAUSE_COLORS if counts.get(name)]
    count = len({row[0] for row in rows})
    title = "Outcomes by first cause, in %"
    heading = ("run", "outcome", "number")
    height = 1.6 + ROW * count
    return PaperFigure("causes", title, heading, tuple(rows), _draw_causes, height)


def _thresholds(runs: _NumberedRuns, headlines: Sequence[Sequence[Headline]]) -> PaperFigure | None:
    rows: list[tuple[_Cell, ...]] = []
    for (_, run), found in zip(runs, headlines, strict=True):
        if isinstance(run, AtomicRun):
            return None
        for judge, one in zip(run.summary.scores.judges, found, strict=False):
            rows += [
                (_label(run, one), point.threshold, point.leaf_sr, point.root_sr)
                for point in judge.curve
            ]
    heading = ("run", "threshold", table.LEAF_SR.label, table.ROOT_SR.label)
    title = "Success rates in %, by the score from which a leaf or task passes"
    return PaperFigure("thresholds", title, heading, tuple(rows), _draw_thresholds, 3.4)


def _costs(runs: _NumberedRuns, headlines: Sequence[Sequence[Headline]]) -> PaperFigure | None:
    rows: list[tuple[_Cell, ...]] = []
    for (_, run), found in zip(runs, headlines, strict=True):
        cost, own = per_task(run)[0], found[0].primary
        if cost is not None and own is not None:
            rows.append((run.summary.name, cost, own.value, own.low, own.high, own.n))
    if not rows:
        return None
    metric = table.primary(run_mode(runs[0][1])).label
    heading = ("run", "US$ a task", metric, "low", "high", "tasks")
    return PaperFigure("costs", f"{metric} in %, by cost", heading, tuple(rows), _draw_costs, 3.4)


def _differences(
    runs: _NumberedRuns, headlines: Sequence[Sequence[Headline]]
) -> PaperFigure | None:
    """Return the best run minus each other one, on their common tasks."""
    contenders = sorted(list_contenders(runs, headlines), key=lambda one: -one.headline.value)
    if len(contenders) < 2:
        return None
    best, *others = contenders
    row = table.metric(best.headline.metric)
    rows: list[tuple[_Cell, ...]] = []
    for other in others:
        if (found := pair_runs(best, other)) is not None:
            own = found.interval.scaled(row.factor)
            name = f"{best.metrics.run} - {other.metrics.run}"
            rows.append((name, own.estimate, own.low, own.high, own.n, found.p_value))
    heading = ("difference", row.label, "low", "high", "tasks", "p, uncorrected")
    title = f"Differences in {row.label}, points, paired by task, with 95 % intervals"
    return PaperFigure("differences", title, heading, tuple(rows), _draw_signed, _height(rows))


def _height(rows: Sequence[object]) -> float:
    return 1.0 + ROW * len(rows)


def _draw_intervals(axes: "Axes", figure: PaperFigure) -> None:
    _draw_rows(axes, figure)
    axes.set_xlim(0, 100)


def _draw_signed(axes: "Axes", figure: PaperFigure) -> None:
    _draw_rows(axes, figure)
    axes.axvline(0, color=GRAY, linewidth=0.8)


def _draw_rows(axes: "Axes", figure: PaperFigure) -> None:
    """Draw a point with its interval in each row, the first row on top."""
    names: list[str] = []
    for place, row in enumerate(figure.rows):
        name, value, low, high = (str(row[0]), *(_number(one) for one in row[1:4]))
        names.append(name)
        axes.plot([low, high], [place, place], color=BLUE, linewidth=2, alpha=0.6)
        axes.plot([value], [place], "o", color=BLUE, markersize=6)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _draw_causes(axes: "Axes", figure: PaperFigure) -> None:
    names = list(dict.fromkeys(str(row[0]) for row in figure.rows))
    whole = {name: sum(_number(row[2]) for row in figure.rows if row[0] == name) for name in names}
    starts = dict.fromkeys(names, 0.0)
    for cause, color in CAUSE_COLORS.items():
        own = [row for row in figure.rows if row[1] == cause]
        for row in own:
            name = str(row[0])
            share = 100 * _number(row[2]) / whole[name]
            axes.barh(
                names.index(name),
                share,
                left=starts[name],
                height=0.62,
                color=color,
                edgecolor="white",
                hatch="///" if cause in HATCHED else None,
                label=cause if row is own[0] else None,
            )
            starts[name] += share
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.legend(ncols=3, fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.25))


def _draw_thresholds(axes: "Axes", figure: PaperFigure) -> None:
    for index, name in enumerate(dict.fromkeys(str(row[0]) for row in figure.rows)):
        own = [row for row in figure.rows if row[0] == name]
        marker = MARKERS[index % len(MARKERS)]
        for column, (label, color, dash) in enumerate(
            (("Leaf SR", BLUE, "-"), ("Root SR", ORANGE, "--")), start=2
        ):
            known = [
                (_number(row[1]), _number(row[column])) for row in own if row[column] is not None
            ]
            axes.plot(
                [one for one, _ in known],
                [two for _, two in known],
                dash,
                color=color,
                marker=marker,
                markersize=3.5,
                linewidth=1.4,
                label=f"{label}, {name}",
            )
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 102)
    axes.legend(fontsize=7, frameon=False)


def _draw_costs(axes: "Axes", figure: PaperFigure) -> None:
    for index, row in enumerate(figure.rows):
        cost, value, low, high = (_number(one) for one in row[1:5])
        axes.plot([cost, cost], [low, high], color=BLUE, linewidth=1.5, alpha=0.6)
        axes.plot([cost], [value], MARKERS[index % len(MARKERS)], color=BLUE)
        axes.annotate(str(row[0]), (cost, value), (5, 3), textcoords="offset points", fontsize=7)
    axes.set_xlabel("US$ a task")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)


def _number(value: _Cell) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _write(figure: PaperFigure, folder: Path) -> Iterator[Path]:
    """Write the numbers and both drawings; the same numbers give the same bytes."""
    import matplotlib

    numbers = folder / f"{figure.name}.csv"
    with numbers.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([figure.heading, *figure.rows])
    yield numbers
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": figure.name,
                "svg.fonttype": "none",
                "pdf.fonttype": 42,
                "font.size": 8,
                "text.parse_math": False,
            }
        )
        drawing = _draw(figure)
        for suffix, date in (("svg", "Date"), ("pdf", "CreationDate")):
            file = folder / f"{figure.name}.{suffix}"
            drawing.savefig(file, metadata={date: None}, bbox_inches="tight")
            yield file


def _draw(figure: PaperFigure) -> "Drawing":
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(WIDTH, figure.height))
    axes = drawing.subplots()
    figure.draw(axes, figure)
    axes.set_title(figure.title, fontsize=9, loc="left")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return drawing
