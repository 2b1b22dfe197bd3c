"""equation: the unknowns of one, two or three linear equations in a picture."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved, find
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.pictures import Canvas, DrawnPicture
from gta_bench.forge.reading import read_rows
from gta_bench.records.atomic import WhitelistAnswer

LETTERS: Final = ("xyz", "abc", "pqr")
_TERM: Final = re.compile(r"(\d)([a-z])")
_EQUATION: Final = re.compile(r"([-+ 0-9a-z]*[a-z][-+ 0-9a-z]*)=( *-?\d+)")
_Row = tuple[tuple[int, ...], int]


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    letters = dice.choice(LETTERS)[:level]
    values = dice.sample(range(11, 60), level)
    system = _draw_system(dice, values)
    lines = [_write_equation(letters, row) for row in system]
    return Question(
        request=_word(dice, letters),
        pictures=(_draw(dice, lines),),
        solve=partial(_solve, letters),
        answer=", ".join(f"{one} = {value}" for one, value in zip(letters, values, strict=True)),
        accepted=WhitelistAnswer(whitelist=tuple((str(value),) for value in values)),
    )


def _draw_system(dice: TaskDice, values: Sequence[int]) -> list[_Row]:
    """Draw equations that have one solution and do not show a value of it."""
    while True:
        rows = []
        for _ in values:
            factors = [dice.choice((-1, 1)) * dice.randint(2, 9) for _ in values]
            factors[0] = abs(factors[0])
            # One unknown needs another term.
            plus = dice.randint(3, 60) if len(values) == 1 else 0
            result = sum(a * b for a, b in zip(factors, values, strict=True)) + plus
            rows.append(((*factors, plus), result))
        shown = {abs(number) for factors, result in rows for number in (*factors, result)}
        if _determinant([factors[:-1] for factors, _ in rows]) and not shown & {*values}:
            return rows


def _determinant(rows: Sequence[Sequence[int]]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    return sum(
        (-1) ** at * rows[0][at] * _determinant([[*row[:at], *row[at + 1 :]] for row in rows[1:]])
        for at in range(len(rows))
    )


def _write_equation(letters: str, row: _Row) -> str:
    factors, result = row
    text = ""
    for factor, letter in zip(factors, (*letters, ""), strict=True):
        if factor:
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {abs(factor)}{letter}" if text else f"{factor}{letter}"
    return f"{text} = {result}"


def _word(dice: TaskDice, letters: str) -> str:
    if len(letters) == 1:
        return dice.choice(
            (
                f"What is {letters} in the equation?",
                f"Solve the equation in the picture for {letters}.",
            )
        )
    named = f"{', '.join(letters[:-1])} and {letters[-1]}"
    return dice.choice(
        (
            f"Which values of {named} solve all equations in the picture?",
            f"Solve the system of equations in the picture. What are {named}?",
        )
    )


def _draw(dice: TaskDice, lines: Sequence[str]) -> DrawnPicture:
    height = 150 + 80 * len(lines)
    if dice.flip(True, False):
        canvas, ink = Canvas(640, height, "#2d4a3e"), "#f4f4ec"
        canvas.fill((0, 0, 639, 13), "#8a6b4a")
        canvas.fill((0, height - 14, 639, height - 1), "#8a6b4a")
    else:
        canvas, ink = Canvas(640, height, "#fdfdfb"), "#1b2f6b"
        canvas.grid(32, "#d8e4ee")
    for number, line in enumerate(lines):
        canvas.write((90, 115 + 80 * number), line, 40, face="serif", ink=ink)
    return canvas.finish()


async def _solve(letters: str, desk: Desk) -> str:
    reply = await desk.call("I read what is written in the picture.", "OCR", image=desk.pictures[0])
    rows = [one for one in map(_EQUATION.fullmatch, read_rows(reply)) if one is not None]
    if len(rows) != len(letters):
        raise Unsolved(f"{len(rows)} equations in {reply!r}")
    sides = [(_TERM.sub(r"\1*\2", one[1]).strip(), one[2].strip()) for one in rows]
    equations = ", ".join(f"Eq({left}, {right})" for left, right in sides)
    unknowns = ", ".join(letters)
    reply = await desk.call(
        f"I solve for {unknowns} with sympy.",
        "Solver",
        command="```python\nfrom sympy import Eq, solve, symbols\ndef solution():\n"
        f"    {unknowns} = symbols('{' '.join(letters)}')\n"
        f"    return str(solve([{equations}], [{unknowns}]))\n```",
    )
    return ", ".join(f"{one} = {find(rf'{one}: (-?[0-9/]+)', reply)[1]}" for one in letters)


FAMILY: Final = AtomicFamily(
    "equation",
    "the unknowns of linear equations",
    (
        "1 equation",
        "2 equations with 2 unknowns, 1 tool too many",
        "3 equations with 3 unknowns, 2 tools too many",
    ),
    ("OCR", "Solver"),
    make,
)
