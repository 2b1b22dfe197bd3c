"""Read what the tool OCR replies: lines with boxes, and rows of lines side by side."""

import re
from collections.abc import Sequence
from typing import Final

from gta_bench.forge.pictures import DrawnLine
from gta_bench.tools.backends.boxes import Box

_LINE: Final = re.compile(r"\((\d+), (\d+), (\d+), (\d+)\) (.+)")


def read_lines(reply: str) -> list[DrawnLine]:
    """Return the lines of a reply."""
    found = (_LINE.fullmatch(line) for line in reply.splitlines())
    return [
        DrawnLine(Box(*(int(side) for side in one.groups()[:4])), one[5].strip())
        for one in found
        if one is not None
    ]


def join_rows(lines: Sequence[DrawnLine]) -> list[tuple[DrawnLine, ...]]:
    """Return lines side by side as rows: the rows from top to bottom, each from left to right."""
    rows: list[list[DrawnLine]] = []
    for line in sorted(lines, key=lambda one: one.box.center[1]):
        middle = line.box.center[1]
        if rows and rows[-1][0].box.y1 <= middle <= rows[-1][0].box.y2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [tuple(sorted(row, key=lambda one: one.box.x1)) for row in rows]


def read_rows(reply: str) -> list[str]:
    """Return the text of each row, with a blank between its lines."""
    return [" ".join(line.text for line in row) for row in join_rows(read_lines(reply))]
