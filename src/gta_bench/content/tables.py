"""Rows of cells as text: CSV and Markdown."""

import csv
import io
from collections.abc import Iterable, Sequence

Rows = tuple[tuple[str, ...], ...]


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV: commas, quotes where needed, one line feed a row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
    return stream.getvalue()


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table of GitHub's Markdown; the first row is the head."""
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    lines = [_line(row, width) for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _line(row: Sequence[str], width: int) -> str:
    cells = [*row, *[""] * (width - len(row))]
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").strip().replace("\n", "<br>")
