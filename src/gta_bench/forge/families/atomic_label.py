"""label: a box around a dish on a menu, with a text: a picture is the answer."""

import re
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.goods import GOODS
from gta_bench.forge.pictures import Canvas, DrawnPicture
from gta_bench.forge.reading import join_rows, read_lines
from gta_bench.forge.words import COMPANIES

SIZES: Final = {1: 4, 2: 7, 3: 9}
LOOKS: Final = (("#fffdf5", "#3b2a1a"), ("#f3f7fb", "#16324f"), ("#fdf3f3", "#4a1420"))
_PRICE: Final = re.compile(r"\d+\.\d\d")


class _Asked(NamedTuple):
    """What a request wants: the cheapest dish or the dearest, a note at its box, the sum below."""

    cheapest: bool
    note: str
    with_sum: bool


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    names = dice.sample(GOODS, SIZES[level])
    cents = dice.sample(range(250, 1800), len(names))
    menu = {name: Decimal(one) / 100 for name, one in zip(names, cents, strict=True)}
    cheapest = dice.flip(True, False)
    note = dice.flip("my choice", "this one") if level > 1 else ""
    asked = _Asked(cheapest, note, level == 3)
    picture = _draw(dice, menu)
    wanted = (min if cheapest else max)(menu, key=lambda one: menu[one])
    total = sum(menu.values(), Decimal(0))
    return Question(
        request=_word(dice, asked),
        pictures=(picture,),
        solve=partial(_solve, asked),
        shown=((note,) if note else ()) + ((f"Total {total:.2f}",) if asked.with_sum else ()),
        marked=next(line.box for line in picture.lines if line.text == wanted),
    )


def _word(dice: TaskDice, asked: _Asked) -> str:
    which = "cheapest" if asked.cheapest else "most expensive"
    request = dice.choice(
        (
            f"Draw a box around the name of the {which} dish on this menu",
            f"Mark the {which} dish on the menu with a box around its name",
        )
    )
    request += f', with the annotation "{asked.note}".' if asked.note else "."
    if asked.with_sum:
        request += (
            " Then write the sum of all prices onto that picture, at the bottom in the middle, in "
            'blue and with two decimals, such as "Total 12.30".'
        )
    return request


def _draw(dice: TaskDice, menu: dict[str, Decimal]) -> DrawnPicture:
    paper, ink = dice.choice(LOOKS)
    height = 250 + 70 * len(menu)
    canvas = Canvas(680, height, paper)
    canvas.fill((16, 16, 663, height - 17), paper, edge=ink)
    title = f"{dice.choice(COMPANIES)} Kitchen"
    canvas.write((340, 75), title, 38, face="serif", ink=ink, anchor="mm")
    canvas.rule(120, 220, 460, ink)
    for number, (name, price) in enumerate(menu.items()):
        y = 175 + 70 * number
        canvas.write((70, y), name, 28, ink=ink)
        canvas.write((610, y), f"{price:.2f}", 28, ink=ink, anchor="rm")
    return canvas.finish()


async def _solve(asked: _Asked, desk: Desk) -> str:
    reply = await desk.call("I read the menu first.", "OCR", image=desk.pictures[0])
    rows = [row for row in join_rows(read_lines(reply)) if _PRICE.fullmatch(row[-1].text)]
    if any(len(row) != 2 for row in rows) or not rows:
        raise Unsolved(f"not two columns in {reply!r}")
    pick = min if asked.cheapest else max
    name, price = pick(rows, key=lambda row: Decimal(row[1].text))
    marked = await desk.call(
        f"{name.text} for {price.text} is the one. I draw a box around its name.",
        "DrawBox",
        image=desk.pictures[0],
        bbox=str(name.box),
        **({"annotation": asked.note} if asked.note else {}),
    )
    if not asked.with_sum:
        return marked
    total = await desk.call(
        "Now I add all prices.",
        "Calculator",
        expression=f"round({' + '.join(row[1].text for row in rows)}, 2)",
    )
    return await desk.call(
        "I write the sum onto the picture with the box.",
        "AddText",
        image=marked,
        text=f"Total {Decimal(total):.2f}",
        position="mb",
        color="blue",
    )


FAMILY: Final = AtomicFamily(
    "label",
    "a box around a dish on a menu, and a text: a picture is the answer",
    (
        "a box, 4 dishes",
        "a box with an annotation, 7 dishes",
        "a box with an annotation and the sum of all prices, 9 dishes",
    ),
    ("AddText", "Calculator", "DrawBox", "OCR"),
    make,
)
