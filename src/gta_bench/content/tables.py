"""Tables: CSV files, and rows of cells as CSV or Markdown."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from gta_bench.content.text import read_text

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


# Where two cut a file equally well the first wins: a comma may be a decimal comma in every row.
SEPARATORS = "\t;|,"
SAMPLE_CHARACTERS = 64_000
SAMPLE_ROWS = 200
LONGEST_CELL = 1 << 30  # the standard library stops at 131072 characters


@dataclass(frozen=True, slots=True)
class CsvContent:
    """The rows of a CSV file, ragged where the file is; `007` is `007`."""

    rows: Rows
    encoding: str
    separator: str

    def as_text(self) -> str:
        """The same rows with commas."""
        return csv_text(self.rows)


def read_csv(data: bytes) -> CsvContent:
    """Read a CSV file; ToolError if it is not text. No row and no cell is lost or changed."""
    decoded = read_text(data)
    named, text = _named_separator(decoded.text)
    separator = named or _likely_separator(text)
    return CsvContent(_rows(text, separator), decoded.encoding, separator)


def _named_separator(text: str) -> tuple[str | None, str]:
    """The separator that Excel's first line `sep=;` names, and the text after that line."""
    first, _, rest = text.partition("\n")
    first = first.rstrip("\r")
    if len(first) == len("sep=") + 1 and first.lower().startswith("sep="):
        return first[-1], rest
    return None, text


def _likely_separator(text: str) -> str:
    """The separator that cuts the most rows into the same number of cells, at least two."""
    sample = text[:SAMPLE_CHARACTERS]
    evenness = {separator: _evenness(sample, separator) for separator in SEPARATORS}
    best = max(evenness, key=lambda separator: evenness[separator])
    return best if evenness[best] else ","


def _evenness(sample: str, separator: str) -> float:
    """The share of rows that have the same number of cells; half of it where quotes do not fit."""
    widths: Counter[int] = Counter()
    fits = True
    try:
        for row in islice(_reader(sample, separator, strict=True), SAMPLE_ROWS):
            widths[len(row)] += 1
    except csv.Error as exc:
        fits = "expected after" not in str(exc)  # otherwise the sample ends within a cell
    del widths[0]
    several = [count for width, count in widths.items() if width > 1]
    return max(several, default=0) / max(widths.total(), 1) / (1 if fits else 2)


def _rows(text: str, separator: str) -> Rows:
    rows = [tuple(row) for row in _reader(text, separator)]
    return tuple(rows)


def _reader(text: str, separator: str, *, strict: bool = False) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST_CELL)
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=strict)
