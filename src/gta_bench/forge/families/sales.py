"""sales: a CSV of orders becomes a workbook with revenue by region and a computed total."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.books import BookSheet, ForgedShare, Formula, write_book
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
from gta_bench.forge.files import write_csv
from gta_bench.forge.words import PRODUCTS

FILE: Final = "summary.xlsx"
HEAD: Final = ("Date", "Region", "Product", "Units", "Price", "Status")
SIZES: Final = {1: (3, 24), 2: (5, 80), 3: (8, 300)}


@dataclass(frozen=True)
class _Plan:
    """What a workbook shows, and what the answer names."""

    title: str
    rows: tuple[tuple[str, Decimal], ...]
    total: Decimal
    best: str
    typed: bool = False
    pretended: bool = False
    short: bool = False
    wide: bool = False

    def build(self) -> Work:
        """Write the workbook and the answer."""
        head = ("Region", "Revenue", "Share") if self.wide else ("Region", "Revenue")
        rows = [
            (place, value, ForgedShare(float(value / self.total))) if self.wide else (place, value)
            for place, value in self.rows
        ]
        end = len(rows) + (0 if self.short else 1)
        total = self.total if self.typed else Formula(f"=SUM(Summary!B2:B{end})", self.total)
        if self.pretended:
            total = Formula(f"={self.total:.2f}", self.total)
        book = write_book(
            BookSheet("Summary", [head, *rows]),
            BookSheet("Total", [("Total revenue", total)], head=False),
            title=self.title,
        )
        return Work({FILE: book}, f"The summary is done.\n\nAnswer: {self.best}")


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    count, size = SIZES[level]
    places, company = dice.places(count), dice.company()
    orders = [
        (
            dice.day().isoformat(),
            places[number] if number < count else dice.choice(places),
            dice.choice(PRODUCTS),
            dice.randint(1, 40),
            dice.amount(2, 90),
            # Every region has an order that counts.
            "canceled" if level > 1 and number >= count and dice.random() < 0.2 else "paid",
        )
        for number in range(size)
    ]
    dice.shuffle(orders)
    sums = dict.fromkeys(places, Decimal(0))
    for _, place, _, units, price, status in orders:
        if status == "paid":
            sums[place] += units * price
    rows = tuple(sorted(sums.items(), key=lambda one: (-one[1], one[0])))
    plan = _Plan(f"Revenue of {company}", rows, sum(sums.values(), Decimal(0)), rows[0][0])
    return TaskDraft(
        request=_ask(dice, company, count, level),
        category="Data Analysis & Quantitative Reasoning",
        tools=("ReadCSV", "Calculator", "XlsxFileGenerator"),
        inputs={"orders.csv": write_csv([HEAD, *orders])},
        deliverables={FILE: "xlsx"},
        nodes=_score(plan),
        gold={"plain": plan.build(), "with-shares": replace(plan, wide=True).build()},
        wrong=_break(plan),
        cheat={"input-pasted": Work({FILE: write_book(BookSheet("Summary", [HEAD, *orders]))})},
    )


def _ask(dice: TaskDice, company: str, count: int, level: TaskLevel) -> str:
    opening = dice.choice(
        (
            f"inputs/orders.csv lists the orders of {company}. The revenue of an order is its "
            "units times its price.",
            f"Sum up what {company} sold: inputs/orders.csv has one order in each line, and units "
            "times price is its revenue.",
        )
    )
    canceled = " Canceled orders do not count." if level > 1 else ""
    return (
        f"{opening}{canceled} Deliver {FILE} with two sheets. Summary has the columns Region and "
        "Revenue, with their names in A1 and B1, and below them one row for each of the "
        f"{count} regions, sorted by revenue from large to small. Total has the sum of all regions "
        "in cell B1, computed by a formula, so that it follows when the amounts in column B of "
        "Summary change. End your answer with a line `Answer: REGION`, where REGION is the one "
        "with the most revenue and nothing else."
    )


def _score(plan: _Plan) -> tuple[GroupEntry, ...]:
    table = {"file": FILE, "sheet": "Summary"}
    count = len(plan.rows)
    sums: Iterator[CheckTable] = (
        {"is": "table.value", **table, "row": place, "column": "Revenue",
         "equals": float(value), "within": 0.005}
        for place, value in plan.rows
    )  # fmt: skip
    change = {f"Summary!B{row}": 100.0 * row + 0.25 for row in range(2, count + 2)}
    total = {"is": "xlsx.cell", "file": FILE, "sheet": "Total", "at": "B1"}
    return (
        group(
            "summary",
            leaf("sums", f"Each of the {count} regions has its revenue, to the cent.", *sums,
                 weight=2),
            leaf("rows", f"The sheet Summary has the {count} regions and no other row.",
                 {"is": "table.shape", **table, "rows": {"min": count, "max": count},
                  "head": ["Region", "Revenue"]}),
            leaf("order", "The regions are sorted by revenue, from large to small.",
                 {"is": "table.order", **table, "by": "Revenue", "desc": True}),
            weight=3,
        ),
        group(
            "total",
            leaf("sum", f"Cell B1 of the sheet Total shows the sum, {plan.total:,.2f}.",
                 # A hidden sheet shows nothing.
                 {"is": "table.shape", "file": FILE, "sheet": "Total", "columns": {"min": 1}},
                 {**total, "equals": float(plan.total), "within": 0.005}),
            leaf("formula", "Cell B1 of the sheet Total is computed by a formula from column B of "
                 "the sheet Summary: with other amounts there, it shows their sum.",
                 {**total, "formula": True},
                 {**total, "equals": sum(change.values()), "within": 0.005, "change": {**change}},
                 needs=("sum",)),
        ),
        group("answer", leaf("best", "The last line of the answer is `Answer: ` and the region "
                             "that has the most revenue.",
              {"is": "answer.line", "equals": plan.best})),
    )  # fmt: skip


def _break(plan: _Plan) -> dict[str, Wrong]:
    first, *others, last = plan.rows
    # Order and total stay as they are, so that only the sums are off.
    off = ((first[0], first[1] + 7), *others, (last[0], last[1] - 7))
    made = {
        "sum-off": (replace(plan, rows=off), ("sums",)),
        "row-invented": (replace(plan, rows=(*plan.rows, ("Elsewhere", Decimal(0)))), ("rows",)),
        "not-sorted": (replace(plan, rows=(last, *others, first)), ("order",)),
        # A formula that leaves out a region does not follow rightly either.
        "total-too-short": (replace(plan, short=True), ("sum", "formula")),
        "total-pretended": (replace(plan, pretended=True), ("formula",)),
        "two-named": (replace(plan, best=f"{plan.best} or {last[0]}"), ("best",)),
        "total-typed": (replace(plan, typed=True), ("formula",)),
        "last-named": (replace(plan, best=last[0]), ("best",)),
    }
    return {name: Wrong(one.build(), breaks, "plain") for name, (one, breaks) in made.items()}


FAMILY: Final = TaskFamily(
    "sales",
    "orders in CSV become a workbook with revenue by region, sorted, and a computed total",
    (
        "3 regions, 24 orders",
        "5 regions, 80 orders, canceled ones do not count",
        "8 regions, 300 orders, canceled ones do not count",
    ),
    make,
    needs=("libreoffice",),
)
