"""clean: a messy CSV of members becomes a clean one."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import JsonValue

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
from gta_bench.forge.files import show, write_csv
from gta_bench.forge.inside import write_check

FILE: Final = "clean.csv"
INPUT: Final = "members.csv"
CHECK: Final = "checks/clean.py"
HEAD: Final = ("ID", "Name", "City", "Joined", "Fee")
# None of these labels is one of the clean ones.
MESSY: Final[tuple[tuple[str, ...], ...]] = (
    ("member no.", "full name", "town", "joined on", "fee paid", "status"),
    ("number", "member", "place", "since", "yearly fee", "state"),
)
# Members, lines that repeat one, and members who left.
SIZES: Final = {1: (12, 3, 0), 2: (40, 8, 6), 3: (120, 24, 18)}
MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


class _Member(NamedTuple):
    """A row of the clean table."""

    id: str
    name: str
    city: str
    joined: date | str
    fee: Decimal | str


@dataclass(frozen=True)
class _Plan:
    """What the clean table shows."""

    members: tuple[_Member, ...]
    head: tuple[str, ...] = HEAD
    quoted: bool = False
    above: str = ""
    mirrored: bool = False

    def build(self) -> Work:
        """Write the table, with commas or as Excel in Europe does."""
        rows = [
            (one.id, one.name, one.city, str(one.joined), show(one.fee), f"{number}")
            for number, one in enumerate(self.members, 1)
        ]
        table = [self.head, *(row[: len(self.head)] for row in rows)]
        if self.mirrored:
            table = [row[::-1] for row in table]
        if not self.quoted:
            return Work({FILE: self.above.encode() + write_csv(table)})
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=";", quoting=csv.QUOTE_ALL).writerows(table)
        return Work({FILE: text.getvalue().encode("utf-8-sig")})


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    count, repeated, left = SIZES[level]
    company, days_first = dice.company(), dice.flip(True, False)
    members = _draw(dice, count + left)
    # The first and the last member stay, so that wrong work can be made from them.
    gone = {*dice.sample(range(1, count + left - 1), left)}
    kept = tuple(one for number, one in enumerate(members) if number not in gone)
    former = [members[number] for number in sorted(gone)]
    lines = [(one, "left" if number in gone else "active") for number, one in enumerate(members)]
    lines += dice.sample(lines, repeated)
    dice.shuffle(lines)
    rows = [(*_mess(dice, one, days_first), status) for one, status in lines]
    labels = dice.choice(MESSY)
    if not left:
        labels, rows = labels[:-1], [row[:-1] for row in rows]
    plan = _Plan(kept)
    return TaskDraft(
        request=_ask(dice, company, labels, days_first),
        category="Data Analysis & Quantitative Reasoning",
        tools=("ReadCSV", "CsvFileGenerator"),
        inputs={INPUT: write_csv([labels, *rows])},
        deliverables={FILE: "csv"},
        nodes=_score(kept),
        gold={"commas": plan.build(), "semicolons": replace(plan, quoted=True).build()},
        wrong=_break(plan, former),
        cheat={"input-renamed": Work({FILE: write_csv([labels, *rows])})},
        checks={"clean.py": write_check("clean", HEAD=[*HEAD], IDS=[one.id for one in kept])},
    )


def _draw(dice: TaskDice, count: int) -> list[_Member]:
    """Return members sorted by id; some share a name, and still are two people."""
    ids = sorted(dice.sample(range(1000, 10000), count))
    cities = dice.places(8)
    found: list[_Member] = []
    for number, one in enumerate(ids):
        name = dice.person()
        joined = dice.day(1400, date(2019, 1, 1))
        if number == 0:
            # Day and month can be taken for each other and differ.
            joined = date(joined.year, dice.randint(1, 6), dice.randint(7, 12))
        found.append(_Member(f"M{one}", name, dice.choice(cities), joined, dice.amount(20, 2400)))
    found[1] = found[1]._replace(city=next(one for one in cities if one != found[0].city))
    found[-1] = found[-1]._replace(name=found[-2].name)
    return found


def _mess(dice: TaskDice, one: _Member, days_first: bool) -> tuple[str, ...]:
    """Return a member as somebody typed it."""
    assert isinstance(one.joined, date)
    day, month, year = one.joined.day, one.joined.month, one.joined.year
    slashes = (day, month) if days_first else (month, day)
    joined = dice.choice(
        (
            f"{slashes[0]:02}/{slashes[1]:02}/{year}",
            f"{slashes[0]}/{slashes[1]}/{year}",
            f"{day} {MONTHS[month - 1]} {year}",
            one.joined.isoformat(),
        )
    )
    name = dice.choice((one.name, one.name.upper(), one.name.lower(), one.name.replace(" ", "  ")))
    city = dice.choice((one.city, f" {one.city}", one.city.upper()))
    fee = dice.choice((f"{one.fee:.2f}", f"${one.fee:,.2f}", f"{one.fee:,.2f} USD"))
    return one.id, name, city, joined, fee


def _ask(dice: TaskDice, company: str, labels: Sequence[str], days_first: bool) -> str:
    opening = dice.choice(
        (
            f"Several people typed the list of members of {company} into inputs/{INPUT}, each in "
            "their own way.",
            f"inputs/{INPUT} is the list of members of {company}. It was put together from "
            "several lists and needs cleaning.",
        )
    )
    order = "day/month/year" if days_first else "month/day/year"
    former = ""
    if len(labels) > 5:
        former = f" Members whose {labels[5]} is left are not members any more: leave them out."
    return (
        f"{opening} Deliver {FILE} with the columns {', '.join(HEAD)}, written so, in this order "
        f"and no others, in its first line: what the list calls {', '.join(labels[:5])}. Each "
        f"member, that is, each {labels[0]}, has exactly one row; rows are sorted by ID, and no "
        f"line is empty.{former} Names and cities begin with a capital letter and go on in small "
        "ones, with single spaces. Dates are written as "
        f"YYYY-MM-DD; in the list, those with slashes mean {order}. Fees are numbers with two "
        "decimals, such as 1663.50, without currency. Change no value otherwise. Capitals, spaces "
        "and decimals count."
    )


def _score(kept: Sequence[_Member]) -> tuple[GroupEntry, ...]:
    count, ids = len(kept), [one.id for one in kept]
    head: CheckTable = {"is": "table.shape", "file": FILE, "head": [*HEAD]}

    def cells(column: str, *values: str) -> list[CheckTable]:
        return [
            {"is": "table.value", "file": FILE, "row": row, "column": column, "equals": value,
             "exact": True}
            for row, value in zip(ids, values, strict=True)
        ]  # fmt: skip

    def keys(**wanted: JsonValue) -> CheckTable:
        return {"is": "table.keys", "file": FILE, "column": "ID", **wanted}

    return (
        group(
            "rows",
            leaf("complete", f"Each of the {count} members has a row.",
                 head, keys(all=[*ids]), weight=2),
            leaf("unique", "The file has rows, and no ID has two.",
                 {**head, "rows": {"min": count // 2}}, keys(once=True)),
            leaf("members", "Members have a row, and nobody else: no ID that the list does not "
                 "have, written as it has them, and nobody who left.",
                 {**head, "rows": {"min": count // 2}}, keys(only=[*ids]),
                 {"is": "python", "run": f"{CHECK}:know_ids"}),
            leaf("order", "The rows are sorted by ID.",
                 {"is": "table.order", "file": FILE, "by": "ID"}),
            weight=2,
        ),
        group(
            "values",
            leaf("columns", f"The first line is {', '.join(HEAD)}, in this order. Every other line "
                 "has these 5 cells, without spaces around them.",
                 {**head, "columns": {"min": 5, "max": 5}},
                 {"is": "python", "run": f"{CHECK}:keep_form"}),
            leaf("names", "Each ID has its member's name, with capital first letters and single "
                 "spaces.",
                 *cells("Name", *(one.name for one in kept)), needs=("complete",)),
            leaf("cities", "Each ID has its member's city, in capitals only at the beginning.",
                 *cells("City", *(one.city for one in kept)), needs=("complete",)),
            leaf("dates", "Each ID has the day on which the member joined, as YYYY-MM-DD.",
                 *cells("Joined", *(str(one.joined) for one in kept)), needs=("complete",),
                 weight=2),
            leaf("fees", "Each ID has its member's fee, with two decimals, without separators and "
                 "currency.", *cells("Fee", *(f"{one.fee:.2f}" for one in kept)),
                 needs=("complete",)),
            weight=3,
        ),
    )  # fmt: skip


def _break(plan: _Plan, former: Sequence[_Member]) -> dict[str, Wrong]:
    first, second, *others, last = plan.members
    assert isinstance(first.joined, date)
    swapped = date(first.joined.year, first.joined.day, first.joined.month)
    # Neighbors may live in one city.
    far = next(n for n, one in enumerate(plan.members) if one.city != first.city)
    moved = plan.members[far]
    assert isinstance(last.fee, Decimal)
    small = first._replace(name=first.name.lower())
    wide = first._replace(name=first.name.replace(" ", "  "))
    invented = last._replace(id="M99999", name="Ann Other")

    def put(*members: _Member) -> _Plan:
        return replace(plan, members=members)

    made = {
        "duplicate-left": (put(first, first, second, *others, last), "unique"),
        "row-lost": (put(first, second, *others), "complete"),
        "not-sorted": (put(last, first, second, *others), "order"),
        "number-added": (replace(plan, head=(*HEAD, "Row")), "columns"),
        "line-above": (replace(plan, above="# Members\n"), "columns"),
        "columns-mirrored": (replace(plan, mirrored=True), "columns"),
        "head-in-small-letters": (
            replace(plan, head=tuple(one.lower() for one in HEAD)), "columns"),
        "empty-row": (put(first, _Member("", "", "", "", ""), second, *others, last), "columns"),
        "id-in-small-letters": (
            put(first._replace(id=first.id.lower()), second, *others, last), "members"),
        "name-in-small-letters": (put(small, second, *others, last), "names"),
        "two-spaces-left": (put(wide, second, *others, last), "names"),
        "member-invented": (put(*plan.members, invented), "members"),
        "more-decimals": (
            put(first, second, *others, last._replace(fee=f"{last.fee:.5f}")), "fees"),
        "cities-swapped": (
            put(first._replace(city=moved.city), *plan.members[1:far],
                moved._replace(city=first.city), *plan.members[far + 1 :]), "cities"),
        "day-and-month-swapped": (
            put(first._replace(joined=swapped), second, *others, last), "dates"),
        "date-as-typed": (
            put(first._replace(joined=first.joined.strftime("%d.%m.%Y")), second, *others, last),
            "dates"),
        "fee-without-decimals": (
            put(first, second, *others, last._replace(fee=last.fee * 100)), "fees"),
    }  # fmt: skip
    if former:
        everybody = sorted((*plan.members, former[0]))
        made["former-member-kept"] = (put(*everybody), "members")
    return {name: Wrong(one.build(), (broken,), "commas") for name, (one, broken) in made.items()}


FAMILY: Final = TaskFamily(
    "clean",
    "a messy CSV of members becomes a clean one: each once, sorted, one way to write each value",
    (
        "12 members, 3 lines repeated",
        "40 members, 8 lines repeated, 6 people who left",
        "120 members, 24 lines repeated, 18 people who left",
    ),
    make,
)
