"""chart: a picture of a bar chart becomes a CSV of its values, sorted."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.draft import (
    CheckTable,
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
    Wrong,
    group,
    leaf,
)
from gta_bench.forge.drawing import BLUES, OCHRES, Axis, BarSeries, draw_bars
from gta_bench.forge.files import ForgedCell, write_csv
from gta_bench.forge.words import PLACES, PRODUCTS

FILE: Final = "values.csv"
INPUT: Final = "chart.png"
SIZES: Final = {1: 4, 2: 7, 3: 8}
STEPS: Final = (10, 20, 40, 50, 100, 200, 500)
TOLERANCE: Final = 0.03  # of the highest line of the axis
# Values lie at least 3 % of the axis apart, so that the largest bar is plain to see.
CELLS: Final = range(3, 19)


class Theme(NamedTuple):
    """What a chart is about: the column of its labels and that of its values."""

    title: str
    label: str
    value: str
    words: tuple[str, ...]


THEMES: Final = (
    Theme("Visitors of {company} by branch", "Branch", "Visitors", PLACES),
    Theme("Deliveries of {company} by depot", "Depot", "Deliveries", PLACES),
    Theme("Units sold by {company}", "Product", "Units", PRODUCTS),
    Theme("Returns to {company} by product", "Product", "Returns", PRODUCTS),
)


@dataclass(frozen=True)
class _Plan:
    """What a table shows, and what the answer names."""

    theme: Theme
    rows: tuple[tuple[str, int], ...]
    best: str
    ranked: bool = False

    def build(self) -> Work:
        """Write the table and the answer."""
        head = (self.theme.label, self.theme.value)
        rows: list[tuple[ForgedCell, ...]] = [head, *self.rows]
        if self.ranked:
            rows = [("Rank", *head), *((at, *row) for at, row in enumerate(self.rows, 1))]
        return Work({FILE: write_csv(rows)}, f"I read the bars.\n\nAnswer: {self.best}")


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    theme = dice.choice(THEMES)
    axis = Axis(theme.value, dice.choice(STEPS), dice.choice((5, 6)))
    labels = [one.capitalize() for one in dice.sample(theme.words, SIZES[level])]
    values, others = _draw_values(dice, axis, len(labels)), _draw_values(dice, axis, len(labels))
    year = dice.randint(2021, 2024)
    series = [BarSeries(str(year), values, dice.choice(BLUES), shown=level == 1)]
    if level == 3:
        other = BarSeries(str(year - 1), others, dice.choice(OCHRES))
        series.insert(dice.randrange(2), other)
    rows = _rank(labels, values)
    plan = _Plan(theme, rows, rows[0][0])
    # The second gold is read off the picture: to one percent of the axis.
    unit = max(1, axis.top // 100)
    coarse = tuple((label, round(value / unit) * unit) for label, value in rows)
    title = theme.title.format(company=dice.company())
    return TaskDraft(
        request=_ask(dice, theme, axis, len(rows), str(year) if level == 3 else ""),
        category="Data Analysis & Quantitative Reasoning",
        tools=("OCR", "ImageDescription", "Calculator", "CsvFileGenerator"),
        inputs={INPUT: draw_bars(title, axis, labels, series)},
        deliverables={FILE: "csv"},
        nodes=_score(plan, axis),
        gold={"exact": plan.build(), "as-read": replace(plan, rows=coarse, ranked=True).build()},
        wrong=_break(plan, axis, _rank(labels, others) if level == 3 else ()),
        cheat={"axis-pasted": _paste_axis(theme, axis)},
    )


def _draw_values(dice: TaskDice, axis: Axis, count: int) -> list[int]:
    """Return different values; a cell is 5 % of the axis, and a value lies within 1 % of one."""
    cells = dice.sample(CELLS, count)
    return [round(axis.top * (0.05 * cell + dice.uniform(-0.01, 0.01))) for cell in cells]


def _rank(labels: list[str], values: list[int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(zip(labels, values, strict=True), key=lambda one: -one[1]))


def _paste_axis(theme: Theme, axis: Axis) -> Work:
    """Return the numbers of the axis as if they were the bars'."""
    lines = [(str(axis.step * number), axis.step * number) for number in range(axis.lines + 4)]
    return Work({FILE: write_csv([(theme.label, theme.value), *lines])})


def _ask(dice: TaskDice, theme: Theme, axis: Axis, count: int, year: str) -> str:
    opening = dice.choice(
        (
            f"inputs/{INPUT} is a bar chart whose data got lost. Read the bars back into a table.",
            f"We only have the picture inputs/{INPUT} of a bar chart. Please turn it into data.",
            f"Read the values of the bar chart in inputs/{INPUT}.",
        )
    )
    only = f" Only the bars of {year} count; see the legend." if year else ""
    return (
        f"{opening}{only} Deliver {FILE} with a head and the columns {theme.label} and "
        f"{theme.value}: one row for each of the {count} labels below the axis, spelled as in the "
        "chart, and no other row, sorted by value from large to small. A value may be off by at "
        f"most {axis.top * TOLERANCE:g}, which is 3 % of the highest line of the axis. End your "
        "answer with a line `Answer: LABEL`, where LABEL is the one with the largest value and "
        "nothing else."
    )


def _score(plan: _Plan, axis: Axis) -> tuple[GroupEntry, ...]:
    label, value = plan.theme.label, plan.theme.value
    count, table = len(plan.rows), {"file": FILE}
    within = axis.top * TOLERANCE
    values: Iterator[CheckTable] = (
        {"is": "table.value", **table, "row": name, "column": value, "equals": float(number),
         "within": within}
        for name, number in plan.rows
    )  # fmt: skip
    return (
        group(
            "table",
            leaf("labels", f"The table has the {count} labels of the chart, spelled as there.",
                 {"is": "text.contains", **table, "all": [name for name, _ in plan.rows]}),
            leaf("values", f"The value of each of the {count} labels is that of its bar in the "
                 f"chart, or off by at most {within:g}.", *values, weight=3, needs=("labels",)),
            leaf("rows", f"The table has the columns {label} and {value}, and {count} rows.",
                 {"is": "table.shape", **table, "rows": {"min": count, "max": count},
                  "head": [label, value]}),
            leaf("order", "The rows are sorted by value, from large to small.",
                 {"is": "table.order", **table, "by": value, "desc": True}),
            weight=4,
        ),
        group("answer", leaf("best", "The last line of the answer is `Answer: ` and the label with "
                             "the largest value.",
              {"is": "answer.line", "equals": plan.best})),
    )  # fmt: skip


def _break(plan: _Plan, axis: Axis, others: tuple[tuple[str, int], ...]) -> dict[str, Wrong]:
    (first, most), (second, less), *rest = plan.rows
    last, least = rest[-1]
    far = round(axis.top * 3 * TOLERANCE)
    swapped = ((last, most), (second, less), *rest[:-1], (first, least))
    misspelled = ((f"{first[:-2]}z", most), (second, less), *rest)
    made = {
        "value-off": (replace(plan, rows=((first, most + far), *plan.rows[1:])), ("values",)),
        "bars-swapped": (replace(plan, rows=swapped), ("values",)),
        "label-misspelled": (replace(plan, rows=misspelled), ("labels", "values")),
        "row-invented": (replace(plan, rows=(*plan.rows, ("Other", 0))), ("rows",)),
        "not-sorted": (replace(plan, rows=(*plan.rows[1:], plan.rows[0])), ("order",)),
        "two-named": (replace(plan, best=f"{first} or {second}"), ("best",)),
        "second-named": (replace(plan, best=second), ("best",)),
    }
    if others:
        made["other-bars"] = (replace(plan, rows=others), ("values",))
    return {name: Wrong(one.build(), breaks, "exact") for name, (one, breaks) in made.items()}


FAMILY: Final = TaskFamily(
    "chart",
    "a picture of a bar chart becomes a CSV of its values, sorted",
    (
        "4 bars with their values written above",
        "7 bars without values, to be read by the lines of the axis",
        "8 pairs of bars without values, of which one color counts",
    ),
    make,
)
