"""budget: assumptions in Markdown become a workbook that computes a budget from them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.books import BookSheet, Formula, write_book
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
from gta_bench.forge.files import ForgedCell
from gta_bench.forge.words import PRODUCTS

FILE: Final = "budget.xlsx"
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
COUNTS: Final = {1: 3, 2: 6, 3: 12}
HEAD: Final = ("Month", "Revenue", "Costs", "Profit")
UNITS: Final = "Units in the first month"
PRICE: Final = "Price per unit"
COST: Final = "Cost per unit"
RENT: Final = "Rent per month"
GROWTH: Final = "Growth of units per month in percent"
STAFF: Final = "Employees"
SALARY: Final = "Salary per employee and month"
FAIR: Final = "Trade fair in the last month"
# The items of each level, with their smallest and largest values.
ITEMS: Final = {
    UNITS: (120, 400), PRICE: (40, 90), COST: (8, 25), RENT: (900, 2500),
    GROWTH: (2, 9), STAFF: (2, 4), SALARY: (700, 1400), FAIR: (1200, 4000),
}  # fmt: skip
USED: Final = {1: 4, 2: 7, 3: 8}


@dataclass(frozen=True)
class _Plan:
    """What the workbook shows; `items` are the assumptions in their rows, from B2 on."""

    company: str
    items: tuple[tuple[str, Decimal], ...]
    months: tuple[str, ...]
    stepwise: bool = False
    stale: tuple[tuple[str, Decimal], ...] = ()
    typed_cell: bool = False
    typed_price: bool = False
    pretended: bool = False
    late_rent: bool = False
    short: bool = False
    margin: bool = False
    named: str = "Profit"
    hedged: bool = False

    @property
    def values(self) -> dict[str, Decimal]:
        """The assumptions by name; those of other levels change nothing."""
        return dict.fromkeys(ITEMS, Decimal(0)) | dict(self.items)

    @property
    def months_truth(self) -> list[tuple[Decimal, Decimal]]:
        """Revenue and costs of each month."""
        own, found = self.values, []
        for number in range(len(self.months)):
            units = own[UNITS] * (1 + own[GROWTH] / 100) ** number
            fair = own[FAIR] if number == len(self.months) - 1 else Decimal(0)
            fixed = own[RENT] + own[STAFF] * own[SALARY] + fair
            found.append((units * own[PRICE], units * own[COST] + fixed))
        return found

    @property
    def totals(self) -> dict[str, Decimal]:
        """The last row of the budget."""
        revenue, costs = map(sum, zip(*self.months_truth, strict=True))
        return {"Revenue": Decimal(revenue), "Costs": Decimal(costs),
                "Profit": Decimal(revenue - costs)}  # fmt: skip

    def build(self) -> Work:
        """Write the workbook and the answer."""
        notes = ("as agreed",) if self.stepwise else ()
        items = [(name, _plain(value), *notes) for name, value in (*self.items, *self.stale)]
        head = ("Item", "Value", "Source") if self.stepwise else ("Item", "Value")
        sheets = [
            BookSheet("Assumptions", [head, *items]),
            BookSheet("Budget", [(*HEAD, *self._more_columns()), *self._rows(), self._total()]),
        ]
        book = write_book(*sheets, title=f"Budget of {self.company}")
        text = f"The total {self.named.lower()} from the budget."
        answer = f"Answer: {self.totals[self.named]:,.2f}"
        if self.hedged:
            answer = " or ".join([answer, *(f"{one:,.2f}" for one in self.totals.values())])
        return Work({FILE: book}, f"{text}\n{answer}")

    def _more_columns(self) -> tuple[str, ...]:
        return ("Units",) if self.stepwise else ("Margin",) if self.margin else ()

    def _at(self, name: str) -> str:
        row = [item for item, _ in self.items].index(name) + 2
        return f"Assumptions!$B${row}"

    def _rows(self) -> Iterator[tuple[ForgedCell | Formula, ...]]:
        for number, month in enumerate(self.months):
            row = number + 2
            units, value = self._units(number)
            count = f"E{row}" if self.stepwise else units
            price = str(self.values[PRICE]) if self.typed_price else self._at(PRICE)
            revenue, costs = self.months_truth[number]
            cells: tuple[ForgedCell | Formula, ...] = (
                revenue
                if self.typed_cell and number == 0
                else Formula(f"={count}*{price}", revenue),
                Formula(f"={count}*{self._at(COST)}{self._fixed(number)}", costs),
                Formula(f"=B{row}-C{row}", revenue - costs),
            )
            if self.stepwise:
                cells = (*cells, Formula(f"={units}", value))
            elif self.margin:
                cells = (*cells, Formula(f"=D{row}/F{row}", "#DIV/0!"))
            yield (month, *cells)

    def _units(self, number: int) -> tuple[str, Decimal]:
        own = self.values
        value = own[UNITS] * (1 + own[GROWTH] / 100) ** number
        if number == 0 or own[GROWTH] == 0:
            return self._at(UNITS), value
        if self.stepwise:
            return f"E{number + 1}*(1+{self._at(GROWTH)}/100)", value
        return f"{self._at(UNITS)}*(1+{self._at(GROWTH)}/100)^{number}", value

    def _fixed(self, number: int) -> str:
        """The costs of a month besides those of its units; `late_rent` moves a rent."""
        rents = {0: 0, 1: 2}.get(number, 1) if self.late_rent else 1
        parts = f"+{self._at(RENT)}" * rents
        if self.values[STAFF]:
            parts += f"+{self._at(STAFF)}*{self._at(SALARY)}"
        if self.values[FAIR] and number == len(self.months) - 1:
            parts += f"+{self._at(FAIR)}"
        return parts

    def _total(self) -> tuple[ForgedCell | Formula, ...]:
        # Without the first month, all assumptions are still used.
        start, end = (3 if self.short else 2), len(self.months) + 1
        sums = [Formula(f"=SUM({letter}{start}:{letter}{end})", self.totals[label])
                for letter, label in zip("BCD", HEAD[1:], strict=True)]  # fmt: skip
        if self.pretended:
            every = f"Assumptions!$B$2:$B${len(self.items) + 1}"
            sums = [Formula(f"={one.value:.4f}+0*SUM({every})", one.value) for one in sums]
        return ("Total", *sums)


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    names = [*ITEMS][: USED[level]]
    items = tuple((name, _draw(dice, name)) for name in names)
    company, product = dice.company(), dice.choice(PRODUCTS)
    plan = _Plan(company, items, MONTHS[: COUNTS[level]])
    others = [(name, value + dice.randint(1, 9)) for name, value in items] if level > 2 else []
    brief = _brief(dice, plan, product, others)
    pasted = BookSheet("Notes", [(line,) for line in brief.splitlines() if line], head=False)
    return TaskDraft(
        request=_ask(dice, plan, product, level),
        category="Planning & Decision Support",
        tools=("Calculator", "XlsxFileGenerator"),
        inputs={"assumptions.md": brief.encode()},
        deliverables={FILE: "xlsx"},
        nodes=_score(plan, replace(plan, items=_draw_others(dice, items))),
        gold={"powers": plan.build(), "step-by-step": replace(plan, stepwise=True).build()},
        wrong=_break(plan),
        cheat={"text-pasted": Work({FILE: write_book(pasted)}, "The budget is done.")},
    )


def _plain(value: Decimal) -> ForgedCell:
    return int(value) if value == int(value) else value


def _draw(dice: TaskDice, name: str) -> Decimal:
    low, high = ITEMS[name]
    return dice.amount(low, high) if name in (PRICE, COST) else Decimal(dice.randint(low, high))


def _draw_others(
    dice: TaskDice, items: tuple[tuple[str, Decimal], ...]
) -> tuple[tuple[str, Decimal], ...]:
    """Return the items with other values, each of them."""
    found = []
    for name, value in items:
        other = value
        while other == value:
            other = _draw(dice, name)
        found.append((name, other))
    return tuple(found)


def _brief(dice: TaskDice, plan: _Plan, product: str, others: list[tuple[str, Decimal]]) -> str:
    lines = [f"# Assumptions of {plan.company}", "", f"Product: {product}", ""]
    lines += [f"Months: {', '.join(plan.months)}", ""]
    lines += [f"- {name}: {value}" for name, value in plan.items]
    if others:
        lines += ["", "## Replaced, no longer valid", ""]
        lines += [f"- {name}: {value}" for name, value in dice.sample(others, len(others))]
    return "\n".join(lines) + "\n"


def _ask(dice: TaskDice, plan: _Plan, product: str, level: TaskLevel) -> str:
    count, last = len(plan.months), plan.months[-1]
    opening = dice.choice(
        (
            f"inputs/assumptions.md has the assumptions of {plan.company} for selling its new "
            f"{product}. Build the budget for January to {last} as {FILE}.",
            f"{plan.company} plans to sell a {product} from January to {last}. Make {FILE}, a "
            "budget from the assumptions in inputs/assumptions.md.",
        )
    )
    growth = " Units grow by the given percentage every month, compounded." if level > 1 else ""
    staff = ", plus the rent, plus the salaries of all employees" if level > 1 else " plus the rent"
    fair = "; those of the last month also have the trade fair" if level > 2 else ""
    old = " Replaced assumptions do not count." if level > 2 else ""
    valid = "valid items, with their names and in their order in the file" if level > 2 else (
        "items, with the names and in the order of the file"
    )  # fmt: skip
    return (
        f"{opening}{old} Revenue is units times price. Costs are units times cost per unit"
        f"{staff}{fair}. Profit is revenue minus costs.{growth} Do not round. The sheet "
        f"Assumptions has Item in A1 and Value in B1, and below them the {len(plan.items)} "
        f"{valid}, each value in column B as a number. The sheet "
        f"Budget has the head Month, Revenue, Costs, Profit in A1 to D1, the {count} months by "
        f"name in rows 2 to {count + 1}, and the row Total in row {count + 2}. All amounts in "
        "columns B to D are formulas, so that the budget follows when an assumption changes: we "
        "will put other values into column B of Assumptions and recalculate. No cell shows an "
        "error. End your answer with a line `Answer: AMOUNT`, where AMOUNT is the total profit as "
        "a number and nothing else."
    )


def _score(plan: _Plan, other: _Plan) -> tuple[GroupEntry, ...]:
    """Return the leaves; `other` has other values of the same assumptions."""
    budget = {"file": FILE, "sheet": "Budget"}
    count = len(plan.months)
    inputs: Iterator[CheckTable] = (
        {"is": "table.value", "file": FILE, "sheet": "Assumptions", "row": name,
         "column": "Value", "equals": float(value), "within": 0.0001}
        for name, value in plan.items
    )  # fmt: skip
    monthly: Iterator[CheckTable] = (
        {"is": "table.value", **budget, "row": month, "column": "Profit",
         "equals": round(float(revenue - costs), 4), "within": 0.01}
        for month, (revenue, costs) in zip(plan.months, plan.months_truth, strict=True)
    )  # fmt: skip
    totals: Iterator[CheckTable] = (
        {"is": "table.value", **budget, "row": "Total", "column": label,
         "equals": round(float(value), 4), "within": 0.01}
        for label, value in plan.totals.items()
    )  # fmt: skip
    computed: list[CheckTable] = [
        {"is": "xlsx.cell", **budget, "at": f"{letter}{row}", "formula": True}
        for row in range(2, count + 3)
        for letter in "BCD"
    ]
    change = {f"Assumptions!B{row}": float(value)
              for row, (_, value) in enumerate(other.items, 2)}  # fmt: skip
    follows: Iterator[CheckTable] = (
        {"is": "xlsx.cell", **budget, "at": f"{letter}{count + 2}", "within": 0.01,
         "equals": round(float(other.totals[label]), 4), "change": {**change}}
        for letter, label in zip("BCD", HEAD[1:], strict=True)
    )  # fmt: skip
    return (
        group(
            "values",
            leaf("inputs", f"The sheet Assumptions has each of the {len(plan.items)} items once, "
                 "with its value.", *inputs),
            leaf("monthly", f"The profit of each of the {count} months is right.", *monthly),
            leaf("total", "The row Total has the right sums of revenue, costs and profit.",
                 *totals),
            weight=2,
        ),
        group(
            "model",
            leaf("formulas", "All amounts in columns B to D of the sheet Budget are formulas.",
                 *computed),
            leaf("live", "The totals follow the assumptions: with other values in column B of the "
                 "sheet Assumptions, the row Total has the sums that follow from them.",
                 *follows, weight=2, needs=("total", "formulas")),
            leaf("errors", "The total profit is computed, and no cell shows an error.",
                 computed[-1], {"is": "xlsx.no_errors", "file": FILE}),
            weight=2,
        ),
        group("answer", leaf("named", "The last line of the answer is `Answer: ` and the total "
                             "profit.",
              {"is": "answer.line", "equals": round(float(plan.totals["Profit"]), 4),
               "within": 0.5})),
    )  # fmt: skip


def _break(plan: _Plan) -> dict[str, Wrong]:
    name, value = plan.items[3]
    made = {
        "old-value-kept": (replace(plan, stale=((name, value + 75),)), ("inputs",)),
        "rent-in-wrong-month": (replace(plan, late_rent=True), ("monthly",)),
        # A total that is not the sum does not follow rightly either.
        "total-too-short": (replace(plan, short=True), ("total", "live")),
        "amount-typed": (replace(plan, typed_cell=True), ("formulas", "live")),
        "price-typed": (replace(plan, typed_price=True), ("live",)),
        "totals-pretended": (replace(plan, pretended=True), ("live",)),
        "division-by-zero": (replace(plan, margin=True), ("errors",)),
        "revenue-named": (replace(plan, named="Revenue"), ("named",)),
        "several-named": (replace(plan, hedged=True), ("named",)),
    }
    return {name: Wrong(one.build(), broken, "powers") for name, (one, broken) in made.items()}


FAMILY: Final = TaskFamily(
    "budget",
    "assumptions in Markdown become a workbook that computes a budget, live and without errors",
    (
        "3 months, 4 assumptions",
        "6 months, 7 assumptions, growth and salaries",
        "12 months, 8 assumptions, a cost of one month, replaced assumptions beside the valid ones",
    ),
    make,
    needs=("libreoffice",),
)
