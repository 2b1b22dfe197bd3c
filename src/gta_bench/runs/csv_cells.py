"""Text in CSV files that spreadsheets open as text and not as a formula."""

import re
from typing import Final, TypeVar

# What a cell begins with that a spreadsheet computes instead of showing it; also known to DuckDB.
FORMULA: Final = r"^[=+\-@\t\r]"
_BEGIN: Final = re.compile(FORMULA)
_Cell = TypeVar("_Cell")


def neutralize_cell(cell: _Cell | str) -> _Cell | str:
    """Return a cell for a CSV file: text that would be a formula gets an apostrophe before it.

    >>> neutralize_cell("=1+1"), neutralize_cell("a-b"), neutralize_cell(-1.5)
    ("'=1+1", 'a-b', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and _BEGIN.match(cell) else cell


def neutralize_column(name: str) -> str:
    """Return the same as an expression of DuckDB for a column of text."""
    return f"CASE WHEN regexp_matches({name}, '{FORMULA}') THEN '''' || {name} ELSE {name} END"
