"""bars: a table in a picture becomes a bar chart."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.pictures import Canvas, DrawnPicture, Face
from gta_bench.forge.reading import read_rows
from gta_bench.forge.words import PLACES

# Short enough for the label of a bar.
NAMES: Final = tuple(one for one in PLACES if len(one) <= 8)
SIZES: Final = {1: 3, 2: 5, 3: 5}
TITLES: Final = ("Bikes rented", "Books lent", "Cakes sold", "Parcels sent", "Trees planted")
HEADS: Final = ("#dbe5f1", "#e2efd9", "#fbe4d5")
WIDTH: Final = 190


class _Asked(NamedTuple):
    """What a request says about the chart."""

    title: str
    columns: tuple[str, ...]
    is_sorted: bool


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    columns = ("Spring", "Autumn") if level == 3 else ("Number",)
    names = dice.sample(NAMES, SIZES[level])
    values = iter(dice.sample(range(101, 1000), len(names) * len(columns)))
    rows = [[name, *(str(next(values)) for _ in columns)] for name in names]
    asked = _Asked(f"{dice.choice(TITLES)} in {dice.day().year}", columns, level == 2)
    return Question(
        request=_word(dice, asked),
        pictures=(_draw(dice, columns, rows),),
        solve=partial(_solve, asked),
        shown=(asked.title, *(cell for row in rows for cell in row)),
    )


def _word(dice: TaskDice, asked: _Asked) -> str:
    bars = "two bars side by side" if len(asked.columns) > 1 else "a bar"
    opening = dice.choice(
        (
            f"Draw a bar chart of this table, with {bars} for each place",
            f"Show the numbers in the picture as a bar chart that has {bars} for each place",
        )
    )
    order = "from the largest to the smallest" if asked.is_sorted else "in the order of the table"
    legend = ", and add a legend" if len(asked.columns) > 1 else ""
    return (
        f'{opening}, {order}. The title is "{asked.title}". Write its number above each '
        f"bar{legend}."
    )


def _draw(dice: TaskDice, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> DrawnPicture:
    head = ("Place", *columns)
    width, height = 80 + WIDTH * len(head), 80 + 56 * (len(rows) + 1)
    canvas = Canvas(width, height)
    canvas.fill((40, 40, width - 40, 96), dice.choice(HEADS))
    for number, row in enumerate((head, *rows)):
        y = 68 + 56 * number
        canvas.rule(y + 28, 40, width - 40, "#888888")
        for at, cell in enumerate(row):
            face: Face = "bold" if number == 0 else "sans"
            if at == 0:
                canvas.write((60, y), cell, 26, face=face)
            else:
                x = 20 + WIDTH * (at + 1)
                canvas.write((x, y), cell, 26, face=face, anchor="rm")
    canvas.rule(40, 40, width - 40, "#888888")
    return canvas.finish()


async def _solve(asked: _Asked, desk: Desk) -> str:
    reply = await desk.call("I read the table first.", "OCR", image=desk.pictures[0])
    pattern = re.compile(r"([A-Z][a-z]+)" + r" (\d+)" * len(asked.columns))
    rows = [one.groups() for one in map(pattern.fullmatch, read_rows(reply)) if one is not None]
    if not rows:
        raise Unsolved(f"no rows in {reply!r}")
    if asked.is_sorted:
        rows.sort(key=lambda row: -int(row[1]))
    return await desk.call(
        f"The table has {len(rows)} rows. I draw the chart.",
        "Plot",
        command=f"```python\n{_write_code(asked, rows)}\n```",
    )


def _write_code(asked: _Asked, rows: Sequence[tuple[str, ...]]) -> str:
    width = 0.8 / len(asked.columns)
    lines = [
        "import matplotlib.pyplot as plt",
        "def solution():",
        f"    names = {[row[0] for row in rows]}",
        "    figure, axes = plt.subplots(figsize=(10, 6))",
    ]
    for at, column in enumerate(asked.columns):
        places = [round(number + at * width, 2) for number in range(len(rows))]
        lines += [
            f"    bars = axes.bar({places}, [{', '.join(row[at + 1] for row in rows)}], {width}, "
            f"label='{column}')",
            "    axes.bar_label(bars, fontsize=20)",
        ]
    middle = (len(asked.columns) - 1) * width / 2
    places = [round(number + middle, 2) for number in range(len(rows))]
    lines += [
        f"    axes.set_xticks({places}, names, fontsize=16)",
        "    axes.margins(y=0.12)",
        f"    axes.set_title('{asked.title}', fontsize=20)",
        *(["    axes.legend(fontsize=14)"] if len(asked.columns) > 1 else []),
        "    return figure",
    ]
    return "\n".join(lines)


FAMILY: Final = AtomicFamily(
    "bars",
    "a table becomes a bar chart: a picture is the answer",
    (
        "3 rows in their order",
        "5 rows, sorted by size, 1 tool too many",
        "5 rows with 2 columns, pairs of bars and a legend, 2 tools too many",
    ),
    ("OCR", "Plot"),
    make,
)
