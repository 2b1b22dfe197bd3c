"""report: a workbook with quarterly figures becomes a Word report with a table and a chart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from PIL import Image

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.books import BookSheet, write_book
from gta_bench.forge.documents import (
    BLUE,
    GREEN,
    Head,
    WordBlock,
    WordPicture,
    WordTable,
    draw_bars,
    write_document,
)
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
from gta_bench.forge.drawing import encode_png
from gta_bench.forge.files import ForgedCell
from gta_bench.forge.inside import write_check

FILE: Final = "report.docx"
CHECK: Final = "checks/report.py"
QUARTERS: Final = ("Q1", "Q2", "Q3", "Q4")
COUNTS: Final = {1: 4, 2: 6, 3: 9}
ONE_PAGE: Final = 6
HEADINGS: Final = (
    ("Summary", "At a glance", "Key results"),
    ("Results by region", "Regional results", "The regions compared"),
    ("Chart", "The year in one picture", "Comparison of regions"),
    ("Outlook", "Next steps", "What follows"),
)
CAPTION: Final = "Figure 1. {} by region, whole year."
CLOSING: Final = "The figures for the next year are due in the first week of January."
ADVICE: Final = "The regional leads meet once the next quarter has closed."


@dataclass(frozen=True)
class _Plan:
    """What the report shows. `rows` have a region and its figures, the last of which counts."""

    company: str
    columns: tuple[str, ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]
    total: int
    best: str
    bars: tuple[tuple[str, int], ...]
    chart: bool = True
    rich: bool = False
    tiny: bool = False
    denial: str = ""
    doubt: str = ""
    later: str = ""
    early: bool = False
    white: bool = False
    closing: bool = True

    @property
    def label(self) -> str:
        """The column that counts."""
        return self.columns[-1]

    def build(self) -> Work:
        """Write the report."""
        first, second, third, *others = self.headings
        blocks: list[WordBlock] = [
            Head(first),
            f"Total {self.label.lower()}: {self.total:,}{self.denial}",
            f"Strongest region: {self.best}{self.doubt}",
        ]
        if self.later:
            blocks.append(self.later)
        if self.rich:
            blocks.append(f"The report covers {len(self.bars)} regions and all four quarters.")
        shown: list[WordBlock] = [f"{self.label} of the whole year, largest first.", self._table()]
        blocks += [*shown, Head(second)] if self.early else [Head(second), *shown]
        # The chart of a long table does not fit below it, with what follows.
        blocks.append(Head(third, new_page=len(self.bars) > ONE_PAGE))
        if self.rich:
            blocks.append(Head("How to read the chart", 2))
            blocks.append("The longer the bar, the larger the figure of the whole year.")
        if self.chart:
            blocks.append(self._draw())
        else:
            blocks.append("The chart is available on request.")
        for number, text in enumerate(others):
            blocks += [Head(text), *((CLOSING, ADVICE)[number : number + 1] * self.closing)]
        title = f"{self.company}: {self.label.lower()} of the year"
        color = GREEN if self.rich else BLUE
        return Work({FILE: write_document(title, *blocks, color=color, white=self.white)})

    def _table(self) -> WordTable:
        if not self.rich:
            return WordTable([("Region", *self.columns), *self.rows])
        shares = [f"{int(row[-1]) / self.total:.1%}" for row in self.rows]
        rows = [(*row, share) for row, share in zip(self.rows, shares, strict=True)]
        return WordTable([("Region", *self.columns, "Share"), *rows])

    def _draw(self) -> WordPicture:
        title = f"{self.label} by region"
        color = GREEN if self.rich else BLUE
        size = (6.4, 2.6) if self.rich else (6.4, 3.4)
        if self.tiny:
            drawn = encode_png(Image.new("RGB", (1, 1), "white"))
        else:
            drawn = draw_bars(title, self.bars, color=color, size=size, lying=self.rich)
        return WordPicture(drawn, f"Bar chart: {title.lower()}", CAPTION.format(self.label))


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    places, company = dice.places(COUNTS[level]), dice.company()
    revenue = _draw_year(dice, places, 40_000, 90_000)
    costs = _draw_year(dice, places, 12_000, 39_000)
    sums = {place: sum(revenue[place]) for place in places}
    spent = {place: sum(costs[place]) for place in places}
    figures = {place: sums[place] - (spent[place] if level > 1 else 0) for place in places}
    order = sorted(places, key=lambda one: (-figures[one], one))
    headings = tuple(dice.choice(one) for one in HEADINGS[: 3 if level == 1 else 4])
    plan = _Plan(
        company,
        columns=("Revenue",) if level == 1 else ("Revenue", "Costs", "Profit"),
        headings=headings,
        rows=tuple(
            (one, sums[one], *((spent[one], figures[one]) if level > 1 else ())) for one in order
        ),
        total=sum(figures.values()),
        best=order[0],
        bars=tuple((one, figures[one]) for one in order),
    )
    sheets = [_list("Revenue", revenue)]
    if level > 1:
        sheets.append(_list("Costs", costs))
    if level > 2:
        sheets.insert(0, _list("Prior year", _draw_year(dice, places, 38_000, 88_000)))
    request = _ask(dice, plan, level)
    return TaskDraft(
        request=request,
        category="Data Analysis & Quantitative Reasoning",
        tools=("ReadXLSX", "Calculator", "Plot", "DocxFileGenerator"),
        inputs={"figures.xlsx": write_book(*sheets, title=f"Figures of {company}")},
        deliverables={FILE: "docx"},
        nodes=_score(plan),
        gold={"plain": plan.build(), "with-shares": replace(plan, rich=True).build()},
        wrong=_break(plan),
        cheat={"request-pasted": Work({FILE: write_document("Report", *request.split(". "))})},
        checks={
            "report.py": write_check(
                "report",
                HEADINGS=[*headings],
                WHAT=plan.label.lower(),
                TOTAL=plan.total,
                REGIONS=order,
            )
        },
    )


def _draw_year(dice: TaskDice, places: Sequence[str], low: int, high: int) -> dict[str, list[int]]:
    return {place: [dice.randint(low, high) for _ in QUARTERS] for place in places}


def _list(name: str, year: dict[str, list[int]]) -> BookSheet:
    rows: list[tuple[ForgedCell, ...]] = [(place, *figures) for place, figures in year.items()]
    return BookSheet(name, [("Region", *QUARTERS), *rows])


def _ask(dice: TaskDice, plan: _Plan, level: TaskLevel) -> str:
    opening = dice.choice(
        (
            f"inputs/figures.xlsx has the quarterly figures of {plan.company}. Write a report "
            f"about the whole year as {FILE}.",
            f"The board of {plan.company} wants a short report on the year as {FILE}. The "
            "figures of the four quarters are in inputs/figures.xlsx.",
        )
    )
    source = {
        1: "Add up the four quarters of each region.",
        2: "Profit is revenue minus costs, over all four quarters.",
        3: "Profit is revenue minus costs, over all four quarters. The prior year does not count.",
    }[level]
    first, second, third, *others = plan.headings
    listed = ", ".join(f'"{one}"' for one in plan.headings)
    columns = ", ".join(plan.columns)
    what = plan.label.lower()
    closing = f' Put one closing sentence below "{others[0]}".' if others else ""
    return (
        f"{opening} {source} Use these headings of level 1, in this order: {listed}. Below "
        f'"{first}", write one line "Total {what}: …" with the {what} of all regions, and one '
        f'line "Strongest region: …" with the region that has the most {what}, with nothing '
        "else on these lines. Write numbers in digits, such as 12345 or 12,345; a currency may "
        "stand beside them. All text can be read: nothing is white on white, or smaller than 5 "
        "points. Below "
        f'"{second}", put a table with the columns Region, {columns} and one row for each of the '
        f"{len(plan.rows)} regions, sorted by {what} from large to small, without a row for the "
        f'total. Below "{third}", insert a bar chart of {what} by region as a picture, at '
        f"least 300 pixels wide.{closing}"
    )


def _score(plan: _Plan) -> tuple[GroupEntry, ...]:
    count, what = len(plan.rows), plan.label.lower()
    file = {"file": FILE}
    values: Iterator[CheckTable] = (
        {"is": "table.value", **file, "row": str(row[0]), "column": column,
         "equals": float(value)}
        for row in plan.rows
        for column, value in zip(plan.columns, row[1:], strict=True)
    )  # fmt: skip
    closing = " and closing sentence" if len(plan.headings) > 3 else ""
    return (
        group(
            "text",
            leaf("headings", f"The report has the {len(plan.headings)} headings of level 1 that "
                 "the request lists, in its order.",
                 {"is": "doc.heading", **file, "texts": [*plan.headings], "level": 1}),
            leaf("figure", f"A line states the total {what} of all regions, it is right, and "
                 "nothing else is on the line.",
                 {"is": "python", "run": f"{CHECK}:state_total"}),
            leaf("leader", f"A line names the region with the most {what} as the strongest one, "
                 "and nothing else.",
                 {"is": "python", "run": f"{CHECK}:name_leader"}),
            leaf("places", f"The two lines, table{closing} are below the headings that the "
                 "request wants.", {"is": "python", "run": f"{CHECK}:keep_places"}),
        ),
        group(
            "table",
            leaf("values", f"The table has the right {', '.join(plan.columns).lower()} of each "
                 f"of the {count} regions.", *values,
                 {"is": "python", "run": f"{CHECK}:show_text"}, weight=2),
            leaf("rows", f"The table has a row for each of the {count} regions and no other row.",
                 {"is": "table.shape", **file, "rows": {"min": count, "max": count},
                  "head": ["Region", *plan.columns]}),
            leaf("order", f"The table is sorted by {what}, from large to small.",
                 {"is": "table.order", **file, "by": plan.label, "desc": True}),
        ),
        group("picture", leaf("chart", f'Below "{plan.headings[2]}" is a picture with at least '
              "300 pixels of width, for the bar chart.",
              {"is": "python", "run": f"{CHECK}:show_chart"}), weight=0.5),
    )  # fmt: skip


def _break(plan: _Plan) -> dict[str, Wrong]:
    first, *others, last = plan.rows
    start, *rest, end = plan.headings
    # Lower by a little, the last row stays the last one.
    off = (*last[:-1], int(last[-1]) - 900)
    invented: tuple[str | int, ...] = ("Elsewhere", *(0 for _ in plan.columns))
    # What is below a heading that was renamed is at a wrong place.
    below = "places" if len(plan.headings) > 3 else "chart"
    made: dict[str, tuple[_Plan, tuple[str, ...]]] = {
        "heading-renamed": (
            replace(plan, headings=(start, *rest, "Miscellaneous")),
            ("headings", below),
        ),
        "headings-swapped": (
            replace(plan, headings=(end, *rest, start)),
            ("headings", *dict.fromkeys(("places", below))),
        ),
        "digits-swapped": (replace(plan, total=_swap_digits(plan.total)), ("figure",)),
        "total-denied": (replace(plan, denial=" was planned, it is 5"), ("figure",)),
        "leader-doubted": (
            replace(plan, doubt=f" (no, actually it is {last[0]})"),
            ("leader",),
        ),
        "total-corrected": (
            replace(plan, later=f"The total {plan.label.lower()} above is wrong, it is 1,005."),
            ("figure",),
        ),
        "leader-corrected": (
            replace(plan, later=f"The strongest region is in fact {last[0]}."),
            ("leader",),
        ),
        "text-white": (
            replace(plan, white=True),
            ("figure", "leader", "places", "values", "chart"),
        ),
        "weakest-named": (replace(plan, best=str(last[0])), ("leader",)),
        "table-too-early": (replace(plan, early=True), ("places",)),
        "value-off": (replace(plan, rows=(first, *others, off)), ("values",)),
        "row-invented": (replace(plan, rows=(*plan.rows, invented)), ("rows",)),
        "not-sorted": (replace(plan, rows=(last, *others, first)), ("order",)),
        "chart-left-out": (replace(plan, chart=False), ("chart",)),
        "chart-tiny": (replace(plan, tiny=True), ("chart",)),
    }
    if len(plan.headings) > 3:
        made["closing-left-out"] = replace(plan, closing=False), ("places",)
    return {name: Wrong(one.build(), broken, "plain") for name, (one, broken) in made.items()}


def _swap_digits(value: int) -> int:
    """Swap the first two neighbors that differ, from the left."""
    text = str(value)
    at = next((n for n in range(len(text) - 1) if text[n] != text[n + 1] != "0"), None)
    if at is None:
        return value + 9
    return int(f"{text[:at]}{text[at + 1]}{text[at]}{text[at + 2 :]}")


FAMILY: Final = TaskFamily(
    "report",
    "a workbook with quarterly figures becomes a Word report with headings, table and chart",
    (
        "4 regions, one sheet, revenue",
        "6 regions, profit from two sheets",
        "9 regions, profit from two of three sheets, the prior year does not count",
    ),
    make,
)
