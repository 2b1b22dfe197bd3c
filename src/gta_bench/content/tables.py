"""Tables: CSV files, and rows of cells as CSV or Markdown."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from gta_bench.content.text import read_text
from gta_bench.errors import ToolError

TableRows = tuple[tuple[str, ...], ...]
# If two separators fit equally well, the first wins: every row may contain decimal commas.
SEPARATORS = "\t;|,"
SAMPLE_CHARACTERS = 64_000
SAMPLE_ROWS = 200
LONGEST_CELL = 1 << 30  # the standard library stops at 131072 characters


def format_csv(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV with commas, quotes where needed, and a line feed after each row."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def format_markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a GitHub Markdown table; the first row is the header."""
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    padded = ([*row, *[""] * (width - len(row))] for row in rows)
    lines = ["| " + " | ".join(map(_escape_cell, cells)) + " |" for cells in padded]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _escape_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").strip().replace("\n", "<br>")


@dataclass(frozen=True, slots=True)
class CsvContent:
    """The rows of a CSV file, possibly of different lengths; `007` stays `007`."""

    rows: TableRows
    encoding: str
    separator: str

    def as_text(self) -> str:
        """The rows with commas as separators."""
        return format_csv(self.rows)


def read_csv(data: bytes, *, most_cells: int | None = None) -> CsvContent:
    """Read a CSV file without changing any cell.

    Raises ToolError if it is not text, or has more than `most_cells` cells.
    """
    decoded = read_text(data)
    named, text = _read_separator(decoded.text)
    separator = named or _guess_separator(text)
    rows, cells = [], 0
    for row in _iterate_rows(text, separator):
        cells += len(row)
        if most_cells is not None and cells > most_cells:
            raise ToolError(f"has more than {most_cells:,} cells")
        rows.append(tuple(row))
    return CsvContent(tuple(rows), decoded.encoding, separator)


def _read_separator(text: str) -> tuple[str | None, str]:
    """Return the separator from Excel's first line `sep=;`, and the text after that line."""
    first, _, rest = text.partition("\n")
    first = first.rstrip("\r")
    if len(first) == len("sep=") + 1 and first.lower().startswith("sep="):
        return first[-1], rest
    return None, text


def _guess_separator(text: str) -> str:
    """Return the separator that splits most rows into the same number of cells, at least two."""
    sample = text[:SAMPLE_CHARACTERS]
    scores = {separator: _score_separator(sample, separator) for separator in SEPARATORS}
    best = max(scores, key=lambda separator: scores[separator])
    return best if scores[best] else ","


def _score_separator(sample: str, separator: str) -> float:
    """Return the share of rows with the same number of cells, halved if quotes are misplaced."""
    widths: Counter[int] = Counter()
    fits = True
    try:
        for row in islice(_iterate_rows(sample, separator, strict=True), SAMPLE_ROWS):
            widths[len(row)] += 1
    except csv.Error as exc:
        fits = "expected after" not in str(exc)  # otherwise the sample ends within a cell
    del widths[0]
    several = [count for width, count in widths.items() if width > 1]
    return max(several, default=0) / max(widths.total(), 1) / (1 if fits else 2)


def _iterate_rows(text: str, separator: str, *, strict: bool = False) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST_CELL)
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=strict)
