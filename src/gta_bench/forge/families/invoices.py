"""invoices: PDF invoices are compared with a ledger, and the differences become a CSV."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

import typst

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
from gta_bench.forge.files import write_csv
from gta_bench.forge.words import PRODUCTS

FILE: Final = "differences.csv"
LEDGER: Final = "ledger.csv"
HEAD: Final = ("Number", "Problem", "Invoiced", "Booked", "Difference")
BOOKS: Final = ("Entry", "Invoice no.", "Supplier", "Booked on", "Amount", "Text")
AMOUNT, NOT_BOOKED, NO_INVOICE = "other amount", "not booked", "no invoice"
# Invoices, those booked with another amount, not booked ones, entries without an invoice.
SIZES: Final = {1: (4, 2, 0, 0), 2: (6, 2, 1, 1), 3: (10, 3, 2, 2)}
LETTER: Final = """
#set document(title: "Invoice {number}", date: none)
#set page("a5", margin: 16mm)
#set text(10pt)
#grid(columns: (1fr, auto), text(16pt, weight: "bold")[{supplier}],
  align(right)[Invoice *{number}* \\ {day}])
#v(6mm)
Bill to: {customer}
#v(4mm)
#table(
  columns: (1fr, auto, auto, auto), align: (left, right, right, right), stroke: none,
  table.hline(), [*Item*], [*Units*], [*Price*], [*Amount*], table.hline(),
{rows}
  table.hline(),
)
#align(right)[{sums}]
#v(6mm)
Please pay within 30 days and state the number of the invoice.
"""


class _Line(NamedTuple):
    """A line of an invoice."""

    product: str
    units: int
    price: Decimal


class Invoice(NamedTuple):
    """An invoice; `shipping` is 0 if there is none."""

    number: str
    supplier: str
    day: date
    lines: tuple[_Line, ...]
    shipping: Decimal

    @property
    def total(self) -> Decimal:
        """What must be paid."""
        return sum((one.units * one.price for one in self.lines), self.shipping)

    def print(self, customer: str) -> bytes:
        """Return the invoice as PDF."""
        rows = [
            f"  [{one.product.capitalize()}], [{one.units}], [{one.price:.2f}], "
            f"[{one.units * one.price:,.2f}],"
            for one in self.lines
        ]
        sums = [f"*Total {self.total:,.2f} USD*"]
        if self.shipping:
            goods = self.total - self.shipping
            sums = [f"Goods {goods:,.2f} USD", f"Shipping {self.shipping:,.2f} USD", *sums]
        letter = LETTER.format(
            number=self.number,
            supplier=self.supplier,
            day=f"{self.day:%d.%m.%Y}",
            customer=customer,
            rows="\n".join(rows),
            sums=" \\ ".join(sums),
        )
        return typst.compile(letter.encode(), ignore_system_fonts=True)


class _Found(NamedTuple):
    """A difference: what was invoiced and what was booked, 0 if it was not."""

    number: str
    problem: str
    invoiced: Decimal
    booked: Decimal
    # What a wrong table says instead of the difference.
    stated: Decimal | None = None

    @property
    def difference(self) -> Decimal:
        """What the table says: the invoice minus the ledger."""
        return self.invoiced - self.booked if self.stated is None else self.stated


@dataclass(frozen=True)
class _Plan:
    """The table of differences, and the sum that the answer names."""

    found: tuple[_Found, ...]
    total: Decimal
    sum_row: bool = False
    hedged: bool = False

    def build(self, *, by_number: bool = True) -> Work:
        """Write the table, sorted by number or backward by problem, and the answer."""
        order = sorted(self.found)
        if not by_number:
            order = sorted(self.found, key=lambda one: (one.problem, one.number), reverse=True)
        rows = [
            (one.number, one.problem, one.invoiced, one.booked, one.difference) for one in order
        ]
        if self.sum_row:
            rows.append(("Sum", "", Decimal(0), Decimal(0), self.total))
        answer = (
            f"There are {len(rows)} differences.\n\nAnswer: {self.total:.2f}"
            if by_number
            else f"**Answer: {self.total:,.2f}**"
        )
        if self.hedged:
            answer += f" or {-self.total:.2f}"
        return Work({FILE: write_csv([HEAD, *rows])}, answer)


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    count, wrong, unbooked, extra = SIZES[level]
    company = dice.company()
    invoices = _draw(dice, count + extra, level)
    given, unseen = invoices[:count], invoices[count:]
    booked = {one.number: one.total for one in invoices}
    found = []
    for one in given[:wrong]:
        booked[one.number] += dice.choice((1, -1)) * dice.amount(1, 60)
        found.append(_Found(one.number, AMOUNT, one.total, booked[one.number]))
    for one in given[wrong : wrong + unbooked]:
        del booked[one.number]
        found.append(_Found(one.number, NOT_BOOKED, one.total, Decimal(0)))
    found += [_Found(one.number, NO_INVOICE, Decimal(0), one.total) for one in unseen]
    plan = _Plan(tuple(found), sum((one.difference for one in found), Decimal(0)))
    right = given[wrong + unbooked :]
    ledger = _keep_books(dice, [one for one in invoices if one.number in booked], booked, level)
    pdfs = {f"{one.number}.pdf": one.print(company) for one in given}
    return TaskDraft(
        request=_ask(dice, company, count),
        category="Data Analysis & Quantitative Reasoning",
        tools=("ReadPDF", "ReadCSV", "Calculator", "CsvFileGenerator"),
        inputs={**dict(sorted(pdfs.items())), LEDGER: ledger},
        deliverables={FILE: "csv"},
        nodes=_score(plan),
        gold={"by-number": plan.build(), "by-problem": plan.build(by_number=False)},
        wrong=_break(plan, right[0]),
        cheat={"ledger-renamed": Work({FILE: ledger}, "The ledger is attached.")},
    )


def _draw(dice: TaskDice, count: int, level: TaskLevel) -> list[Invoice]:
    numbers = dice.sample(range(10000, 100000), count)
    return [
        Invoice(
            f"R{number}",
            dice.company(),
            dice.day(),
            tuple(
                _Line(product, dice.randint(4, 30), dice.amount(10, 60))
                for product in dice.sample(PRODUCTS, dice.randint(2, 2 + level))
            ),
            dice.amount(5, 25) if level > 1 and dice.random() < 0.5 else Decimal(0),
        )
        for number in numbers
    ]


def _keep_books(
    dice: TaskDice, invoices: Sequence[Invoice], booked: dict[str, Decimal], level: TaskLevel
) -> bytes:
    """Return the ledger; days are later than those of invoices, and names may be shortened."""
    rows = []
    for one in dice.sample(invoices, len(invoices)):
        supplier = one.supplier
        if level > 1 and dice.random() < 0.4:
            supplier = supplier.split()[0].upper()
        day = one.day + timedelta(days=dice.randint(0, 20))
        amount = booked[one.number]
        # Entries in two parts belong to the same invoice.
        parts = [amount]
        if level > 2 and dice.random() < 0.3:
            parts = [Decimal(int(amount / 2)), amount - int(amount / 2)]
        rows += [(one.number, supplier, day.isoformat(), part, "goods") for part in parts]
    numbered = [(number, *row) for number, row in enumerate(rows, 501)]
    return write_csv([BOOKS, *numbered])


def _ask(dice: TaskDice, company: str, count: int) -> str:
    opening = dice.choice(
        (
            f"{company} got the {count} PDF invoices in inputs/. Compare them with its ledger, "
            f"inputs/{LEDGER}.",
            f"Does inputs/{LEDGER}, the ledger of {company}, agree with the {count} invoices in "
            "inputs/, which are PDF files?",
        )
    )
    return (
        f"{opening} What counts is the total of an invoice and the sum of all entries with its "
        "number; days and the writing of names do not. Deliver "
        f"{FILE} with the columns {', '.join(HEAD)} and one row for each invoice number that "
        f"does not agree. Problem is one of: {AMOUNT}, {NOT_BOOKED} (an invoice without an "
        f"entry), {NO_INVOICE} (an entry without an invoice). Invoiced and Booked are the two "
        "amounts, 0 if there is none, and Difference is Invoiced minus Booked. Numbers that agree "
        "have no row, and there is no other row either. End your answer with a line "
        "`Answer: AMOUNT`, where AMOUNT is the sum of all differences as a number and nothing else."
    )


def _score(plan: _Plan) -> tuple[GroupEntry, ...]:
    numbers = [one.number for one in plan.found]
    head: CheckTable = {"is": "table.shape", "file": FILE, "head": [*HEAD]}

    def cells(column: str, *values: str | float) -> list[CheckTable]:
        # Only a number has a tolerance.
        within = None if isinstance(values[0], str) else 0.005
        return [
            {"is": "table.value", "file": FILE, "row": row, "column": column, "equals": value,
             "within": within}
            for row, value in zip(numbers, values, strict=True)
        ]  # fmt: skip

    return (
        group(
            "rows",
            leaf("found", "Every number that does not agree has a row.", head,
                 {"is": "table.keys", "file": FILE, "column": "Number", "all": [*numbers]},
                 weight=2),
            leaf("none-invented", "There is no row besides those of the numbers that do not "
                 "agree, and none of them has two.", head,
                 {"is": "table.keys", "file": FILE, "column": "Number", "only": [*numbers],
                  "once": True}, weight=2),
            weight=2,
        ),
        group(
            "values",
            leaf("problems", "Every number that does not agree has its problem.",
                 *cells("Problem", *(one.problem for one in plan.found)), needs=("found",)),
            leaf("amounts", "Every number that does not agree has both amounts, to the cent.",
                 *cells("Invoiced", *(float(one.invoiced) for one in plan.found)),
                 *cells("Booked", *(float(one.booked) for one in plan.found)),
                 needs=("found",)),
            leaf("differences", "Every difference is Invoiced minus Booked, with its sign.",
                 *cells("Difference", *(float(one.difference) for one in plan.found)),
                 needs=("found",)),
            weight=3,
        ),
        group("answer", leaf("sum", "The last line of the answer is `Answer: ` and the sum of all "
                             "differences.",
              {"is": "answer.line", "equals": float(plan.total), "within": 0.005})),
    )  # fmt: skip


def _break(plan: _Plan, right: Invoice) -> dict[str, Wrong]:
    first, *others = plan.found
    fair = _Found(right.number, AMOUNT, right.total, right.total)
    swapped = first._replace(invoiced=first.booked, booked=first.invoiced, stated=first.difference)

    def put(*found: _Found) -> _Plan:
        return replace(plan, found=found)

    made = {
        "one-missed": (put(*others), "found"),
        "one-invented": (put(*plan.found, fair), "none-invented"),
        "number-unknown": (put(*plan.found, fair._replace(number="R1")), "none-invented"),
        "sum-added": (replace(plan, sum_row=True), "none-invented"),
        "both-signs-named": (replace(plan, hedged=True), "sum"),
        "problem-mistaken": (put(first._replace(problem=NOT_BOOKED), *others), "problems"),
        "amounts-swapped": (put(swapped, *others), "amounts"),
        "sign-lost": (put(first._replace(stated=-first.difference), *others), "differences"),
        "sum-without-one": (replace(plan, total=plan.total - first.difference), "sum"),
    }
    return {
        name: Wrong(one.build(), (broken,), "by-number") for name, (one, broken) in made.items()
    }


FAMILY: Final = TaskFamily(
    "invoices",
    "PDF invoices and a ledger become a CSV of what does not agree, and the sum of it",
    (
        "4 invoices, 2 differences",
        "6 invoices, 4 differences of 3 kinds, shipping, names written otherwise",
        "10 invoices, 7 differences, entries in two parts",
    ),
    make,
)
