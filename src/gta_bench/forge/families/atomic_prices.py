"""prices: what a shopping list costs according to a price list."""

import re
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved, accept_amount
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.goods import GOODS, SHOPS
from gta_bench.forge.pictures import Canvas, DrawnPicture
from gta_bench.forge.reading import read_rows
from gta_bench.forge.words import COMPANIES

SIZES: Final = {1: (5, 2), 2: (9, 4), 3: (12, 5)}
LOOKS: Final = (
    ("#1f3b4d", "#f4f1e6", "#f2c14e"),
    ("#fffaf0", "#2b2b2b", "#a23b2a"),
    ("#27402b", "#f5f7ee", "#c9e265"),
)
_PRICE: Final = re.compile(r"(\D+?) (\d+\.\d\d)")
_WANTED: Final = re.compile(r"(\d+) x (\D+)")


class _Wanted(NamedTuple):
    """A line of a shopping list."""

    pieces: int
    name: str

    def __str__(self) -> str:
        return f"{self.pieces} x {self.name}"


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    size, many = SIZES[level]
    prices = {name: dice.amount(1, 15) for name in dice.sample(GOODS, size)}
    wanted = [_Wanted(dice.randint(1, 6), name) for name in dice.sample([*prices], many)]
    total = sum((one.pieces * prices[one.name] for one in wanted), Decimal(0))
    pictures = [_draw_prices(dice, prices)]
    if level < 3:
        items = ", ".join(map(str, wanted))
        request, value, budget = _word_cost(dice, items), total, 0
        asked = tuple(wanted)
    else:
        pictures.append(_draw_list(dice, wanted))
        budget = int(total) + dice.randint(5, 40)
        request, value, asked = _word_rest(dice, budget), budget - total, ()
    return Question(
        request=f"{request} Answer in dollars, with two decimals.",
        pictures=tuple(pictures),
        solve=partial(_solve, asked, budget),
        answer=f"{value:.2f}",
        accepted=accept_amount(value),
    )


def _word_cost(dice: TaskDice, items: str) -> str:
    return dice.choice(
        (
            f"What do I pay according to this price list for {items}?",
            f"I want to buy {items}. How much is that at the prices in the picture?",
        )
    )


def _word_rest(dice: TaskDice, budget: int) -> str:
    return dice.choice(
        (
            f"I have {budget} dollars and buy everything on the note at the prices of the price "
            "list. How much is left?",
            f"How much of {budget} dollars remains if I buy what the note says, at the prices in "
            "the other picture?",
        )
    )


def _draw_prices(dice: TaskDice, prices: dict[str, Decimal]) -> DrawnPicture:
    paper, ink, accent = dice.choice(LOOKS)
    height = 190 + 54 * len(prices)
    canvas = Canvas(680, height, paper)
    shop = f"{dice.choice(COMPANIES)} {dice.choice(SHOPS)}"
    canvas.write((340, 60), shop, 38, face="serif", ink=accent, anchor="mm")
    canvas.write((340, 108), "Prices in dollars", 22, ink=ink, anchor="mm")
    canvas.rule(140, 60, 620, accent, 3)
    for number, (name, price) in enumerate(prices.items()):
        y = 180 + 54 * number
        canvas.write((60, y), name, 28, ink=ink)
        canvas.write((620, y), f"{price:.2f}", 28, ink=ink, anchor="rm")
    return canvas.finish()


def _draw_list(dice: TaskDice, wanted: list[_Wanted]) -> DrawnPicture:
    canvas = Canvas(460, 130 + 56 * len(wanted), dice.choice(("#fff7b8", "#e5f3dc", "#fde2e4")))
    canvas.write((40, 50), dice.flip("To buy", "Shopping list"), 30, face="bold")
    for number, one in enumerate(wanted):
        y = 110 + 56 * number
        canvas.write((40, y), str(one), 28, face="serif")
        canvas.rule(y + 26, 40, 420, "#b9b48a", 1)
    return canvas.finish()


async def _solve(wanted: tuple[_Wanted, ...], budget: int, desk: Desk) -> str:
    reply = await desk.call("I read the price list first.", "OCR", image=desk.pictures[0])
    prices = {one[1]: one[2] for one in map(_PRICE.fullmatch, read_rows(reply)) if one is not None}
    if len(desk.pictures) > 1:
        reply = await desk.call(
            "The first picture is the price list. Now I read the note.",
            "OCR",
            image=desk.pictures[1],
        )
        noted = (_WANTED.fullmatch(row) for row in read_rows(reply))
        wanted = tuple(_Wanted(int(one[1]), one[2]) for one in noted if one is not None)
    unknown = [one.name for one in wanted if one.name not in prices]
    if unknown or not wanted:
        raise Unsolved(f"no prices of {unknown}")
    cost = " + ".join(f"{one.pieces} * {prices[one.name]}" for one in wanted)
    reply = await desk.call(
        f"I know the prices of all {len(wanted)} items and calculate.",
        "Calculator",
        expression=f"round({budget} - ({cost}), 2)" if budget else f"round({cost}, 2)",
    )
    return f"{Decimal(reply):.2f}"


FAMILY: Final = AtomicFamily(
    "prices",
    "what a shopping list costs at the prices of a list",
    (
        "2 of 5 prices",
        "4 of 9 prices, 1 tool too many",
        "5 of 12 prices, the list in a second picture, what is left, 2 tools too many",
    ),
    ("Calculator", "OCR"),
    make,
)
