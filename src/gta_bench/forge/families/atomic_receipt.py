"""receipt: the total of a receipt, the change, or everybody's share with service."""

import re
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Final, NamedTuple

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved, accept_amount, find
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.goods import GOODS, SHOPS
from gta_bench.forge.pictures import Canvas, DrawnPicture
from gta_bench.forge.reading import read_rows
from gta_bench.forge.words import COMPANIES

COUNTS: Final = {1: (3, 4), 2: (5, 6), 3: (7, 9)}
CENT: Final = Decimal("0.01")
_ROW: Final = re.compile(r"(\d+) x (\D+?) (\d+\.\d\d)")


class Bought(NamedTuple):
    """A line of a receipt."""

    pieces: int
    name: str
    price: Decimal


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    names = dice.sample(GOODS, dice.randint(*COUNTS[level]))
    bought = [
        Bought(1 if level == 1 else dice.randint(1, 6), name, dice.amount(1, 15)) for name in names
    ]
    service = dice.choice((5, 8, 10, 12, 15)) if level == 3 else 0
    total = sum((one.pieces * one.price for one in bought), Decimal(0))
    picture = _draw(dice, bought, service)
    if level == 1:
        return _ask(picture, _word_total(dice), total)
    if level == 2:
        note = next(one for one in (20, 50, 100, 200, 500, 1000) if one > total)
        return _ask(picture, _word_change(dice, note), note - total, note=note)
    people = dice.randint(2, 6)
    share = total * (100 + service) / 100 / people
    return _ask(picture, _word_share(dice, people), share, people=people)


def _ask(
    picture: DrawnPicture, request: str, value: Decimal, *, note: int = 0, people: int = 1
) -> Question:
    value = value.quantize(CENT, ROUND_HALF_UP)
    return Question(
        request=f"{request} Answer in dollars, with two decimals.",
        pictures=(picture,),
        solve=partial(_solve, note, people),
        answer=f"{value:.2f}",
        accepted=accept_amount(value),
    )


def _word_total(dice: TaskDice) -> str:
    return dice.choice(
        (
            "The end of this receipt is torn off. What is the total of its items?",
            "How much did I spend on everything on this receipt together?",
            "I lost the part of the receipt with the sum. How much did I pay for all items?",
        )
    )


def _word_change(dice: TaskDice, note: int) -> str:
    return dice.choice(
        (
            f"The receipt gives the price of one piece of each item. I paid with {note} dollars. "
            "How much change do I get?",
            f"How much of my {note} dollars is left after I paid for everything on this receipt? "
            "Its prices are for one piece each.",
        )
    )


def _word_share(dice: TaskDice, people: int) -> str:
    return dice.choice(
        (
            f"We are {people} people and share this bill equally. Its prices are for one piece "
            "each, and the service charge is added to their sum. How much does each of us pay?",
            f"Split this bill, service charge included, into {people} equal parts. The prices are "
            "for one piece each. How large is one part?",
        )
    )


def _draw(dice: TaskDice, bought: list[Bought], service: int) -> DrawnPicture:
    height = 330 + 50 * len(bought) + (60 if service else 0)
    canvas = Canvas(640, height, dice.choice(("#8d9aa5", "#a58d78", "#7f9486")))
    canvas.fill((40, 30, 600, height - 30), "#fdfcf7")
    shop, day = f"{dice.choice(COMPANIES)} {dice.choice(SHOPS)}", dice.day()
    canvas.write((320, 75), shop, 32, face="bold", anchor="mm")
    canvas.write((320, 120), f"{dice.randint(1, 99)} {dice.places(1)[0]} Road", 22, anchor="mm")
    canvas.write((70, 170), day.strftime("%d.%m.%Y"), 22, face="mono")
    canvas.write((570, 170), f"No {dice.randint(1000, 9999)}", 22, face="mono", anchor="rm")
    canvas.dash(200, 70, 570, "#999999")
    y = 235
    for one in bought:
        canvas.write((70, y), f"{one.pieces} x {one.name}", 26, face="mono")
        canvas.write((570, y), f"{one.price:.2f}", 26, face="mono", anchor="rm")
        y += 50
    canvas.dash(y - 10, 70, 570, "#999999")
    if service:
        canvas.write((70, y + 25), f"Service charge {service}%", 26, face="mono")
        y += 60
    canvas.write((320, y + 30), dice.flip("Thank you!", "See you soon!"), 22, anchor="mm")
    return canvas.finish()


async def _solve(note: int, people: int, desk: Desk) -> str:
    reply = await desk.call(
        "I need the items and prices on the receipt, so I read its text first.",
        "OCR",
        image=desk.pictures[0],
    )
    rows = read_rows(reply)
    bought = [one for one in map(_ROW.fullmatch, rows) if one is not None]
    if not bought:
        raise Unsolved(f"no items in {rows}")
    expression = " + ".join(f"{one[1]} * {one[3]}" for one in bought)
    if note:
        expression = f"{note} - ({expression})"
    elif people > 1:
        service = find(r"Service charge (\d+)%", "\n".join(rows))[1]
        expression = f"({expression}) * (1 + {service} / 100) / {people}"
    reply = await desk.call(
        f"The receipt has {len(bought)} items. Now I calculate the amount.",
        "Calculator",
        expression=f"round({expression}, 2)",
    )
    return f"{Decimal(reply):.2f}"


FAMILY: Final = AtomicFamily(
    "receipt",
    "the total of a receipt, the change, or a share of the bill",
    (
        "3 to 4 items, the total",
        "5 to 6 items in several pieces, the change, 1 tool too many",
        "7 to 9 items in several pieces, a share with service, 2 tools too many",
    ),
    ("Calculator", "OCR"),
    make,
)
