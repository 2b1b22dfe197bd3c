"""Checks of clean.csv: its head, the shape of its rows, and its IDs as they were given."""

from typing import Any

FILE = "clean.csv"
HEAD: list[str] = []
IDS: list[str] = []


def keep_form(work: Any) -> dict[str, Any]:
    """Check that the first line is the head, and every other one has a cell for each column."""
    head, *rows = _read_rows(work)
    bad = [row for row in rows if len(row) != len(HEAD) or row[0] == ""]
    bad += [row for row in rows if any(cell != cell.strip() for cell in row)]
    if head != HEAD or not rows:
        return {"score": False, "found": ", ".join(head), "wanted": ", ".join(HEAD)}
    found = f"a line with {len(bad[0])} cells: {', '.join(bad[0])}" if bad else "such lines"
    return {"score": not bad, "found": found, "wanted": f"{len(HEAD)} cells without spaces around"}


def know_ids(work: Any) -> dict[str, Any]:
    """Check that every ID is written as it was given."""
    rows = _read_rows(work)
    # What is above the head is another leaf's concern.
    begin, at = next(
        (number, row.index(cell))
        for number, row in enumerate(rows, 1)
        for cell in row
        if cell.strip().lower() == "id"
    )
    wrong = [row[at] if at < len(row) else "" for row in rows[begin:] if any(row)]
    wrong = [one for one in wrong if one not in IDS]
    found = f"{wrong[0]!r}" if wrong else f"{len(rows) - begin} rows"
    return {"score": len(rows) > begin and not wrong, "found": found, "wanted": "IDs of the list"}


def _read_rows(work: Any) -> list[list[str]]:
    """Return the rows of the file; lines after the last of them may be empty."""
    (rows,) = work.tables(FILE)
    last = max((number for number, row in enumerate(rows, 1) if any(row)), default=0)
    return [list(row) for row in rows[: max(1, last)]] or [[]]
