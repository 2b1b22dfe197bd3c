"""graph: a question about the bars of a drawn chart."""

import re
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Final

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved, accept_amount
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.pictures import Canvas, DrawnPicture
from gta_bench.forge.reading import join_rows, read_lines
from gta_bench.forge.words import PLACES
from gta_bench.records.atomic import WhitelistAnswer

# Short enough for the label of a bar.
NAMES: Final = tuple(one for one in PLACES if len(one) <= 8)
SIZES: Final = {1: 4, 2: 6, 3: 8}
COLORS: Final = ("#4472c4", "#c55a11", "#548235", "#7f6084")
TITLES: Final = ("Visitors", "Bikes sold", "New members", "Orders")
STEP: Final = 150


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    names = dice.sample(NAMES, SIZES[level])
    values = dict(zip(names, dice.sample(range(15, 400), len(names)), strict=True))
    title = f"{dice.choice(TITLES)} in {dice.day().year}"
    picture = _draw(dice, title, values)
    if level == 3:
        return _ask_average(dice, picture, values)
    if level == 1:
        signs = dict.fromkeys(names, 1)
        request = dice.choice(
            (
                "What is the sum of all bars in this chart?",
                "How much do all places in this chart have together?",
            )
        )
    else:
        first, second, third, fourth = sorted(dice.sample(names, 4), key=lambda one: -values[one])
        signs = {first: 1, third: 1, second: -1, fourth: -1}
        request = (
            f"How much more do {first} and {third} have together in this chart than {second} and "
            f"{fourth} together?"
        )
        request = dice.flip(request, f"Look at the chart. {request}")
    result = str(sum(sign * values[name] for name, sign in signs.items()))
    return Question(
        request=request,
        pictures=(picture,),
        solve=partial(_solve_sum, signs if level == 2 else {}),
        answer=result,
        accepted=WhitelistAnswer(whitelist=((result,),)),
    )


def _ask_average(dice: TaskDice, picture: DrawnPicture, values: dict[str, int]) -> Question:
    ranked = sorted(values.values())
    limit = dice.randint(ranked[2], ranked[4] - 1)
    high = [value for value in values.values() if value > limit]
    mean = (Decimal(sum(high)) / len(high)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    request = dice.choice(
        (
            f"What is the average of all bars in this chart that are above {limit}?",
            f"Leave out every place with {limit} or less. What is the average of the others?",
        )
    )
    return Question(
        request=f"{request} Answer with two decimals.",
        pictures=(picture,),
        solve=partial(_solve_average, limit),
        answer=f"{mean:.2f}",
        accepted=accept_amount(mean),
    )


def _draw(dice: TaskDice, title: str, values: dict[str, int]) -> DrawnPicture:
    width, floor = 80 + STEP * len(values), 470
    canvas, color = Canvas(width, 560), dice.choice(COLORS)
    canvas.write((width / 2, 45), title, 32, face="bold", anchor="mm")
    for number, (name, value) in enumerate(values.items()):
        middle = 40 + STEP * number + STEP // 2
        top = floor - value * 330 // max(values.values())
        canvas.fill((middle - 38, top, middle + 38, floor), color)
        canvas.write((middle, top - 22), str(value), 24, anchor="mm")
        canvas.write((middle, floor + 35), name, 22, anchor="mm")
    canvas.rule(floor, 40, width - 40, "#444444", 3)
    return canvas.finish()


async def _read(desk: Desk) -> dict[str, str]:
    reply = await desk.call(
        "I read the names and values of the bars.", "OCR", image=desk.pictures[0]
    )
    lines = read_lines(reply)
    values = [line for line in lines if re.fullmatch(r"\d+", line.text)]
    names = join_rows(lines)[-1] if lines else ()
    found = {}
    for name in names:
        above = [one for one in values if name.box.x1 <= one.box.center[0] <= name.box.x2]
        if len(above) != 1:
            raise Unsolved(f"{len(above)} values above {name.text!r}")
        found[name.text] = above[0].text
    if len(found) != len(values):
        raise Unsolved(f"{len(found)} names for {len(values)} values")
    return found


async def _solve_sum(signs: dict[str, int], desk: Desk) -> str:
    values = await _read(desk)
    if any(name not in values for name in signs):
        raise Unsolved(f"not all of {[*signs]} in {values}")
    signs = signs or dict.fromkeys(values, 1)
    plus, minus = (
        " + ".join(values[name] for name, sign in signs.items() if sign == wanted)
        for wanted in (1, -1)
    )
    return await desk.call(
        "I know the values and calculate.",
        "Calculator",
        expression=f"({plus}) - ({minus})" if minus else plus,
    )


async def _solve_average(limit: int, desk: Desk) -> str:
    values = await _read(desk)
    high = [value for value in values.values() if int(value) > limit]
    reply = await desk.call(
        f"{len(high)} bars are above {limit}. I calculate their average.",
        "Calculator",
        expression=f"round(({' + '.join(high)}) / {len(high)}, 2)",
    )
    return f"{Decimal(reply):.2f}"


FAMILY: Final = AtomicFamily(
    "graph",
    "a sum, a difference or an average of the bars of a chart",
    (
        "4 bars, their sum",
        "6 bars, the difference between two pairs, 1 tool too many",
        "8 bars, the average of those above a limit, 2 tools too many",
    ),
    ("Calculator", "OCR"),
    make,
)
