"""Tables as agents write them: JSON rows, objects, or sheets by name, as validated rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, NoReturn, cast

from gta_bench.errors import ToolError
from gta_bench.tools.documents.source import clean_text

CellValue = str | int | float | bool | None

MOST_BYTES: Final = 1_000_000
MOST_CELLS: Final = 200_000
MOST_COLUMNS: Final = 16_384  # the limit of a sheet
MOST_ROWS: Final = 1_048_576
MOST_SHEETS: Final = 50
EXPECTED: Final = (
    'Expected JSON rows [["name", "age"], ["Ann", 30]] or objects [{"name": "Ann", "age": 30}]'
)
OR_SHEETS: Final = ', or several sheets {"Sheet A": rows, "Sheet B": rows}'


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """Rows of equal length; the first one is the header."""

    name: str
    rows: tuple[tuple[CellValue, ...], ...]


def read_tables(text: str, *, several: bool) -> tuple[DocumentTable, ...]:
    """Read the tables of `data_str`. Raises a ToolError that says what is expected."""
    expected = EXPECTED + (OR_SHEETS if several else "") + "."
    data = read_json("data_str", text, most_bytes=MOST_BYTES, expected=expected)
    sheets = data if isinstance(data, dict) else {"Sheet1": data}
    if isinstance(data, dict) and not several and len(data) != 1:
        raise ToolError(f"`data_str` is a single object. {expected}")
    if not sheets or len(sheets) > MOST_SHEETS:
        raise ToolError(f"`data_str` has {len(sheets)} sheets; it must have 1 to {MOST_SHEETS}.")
    tables = tuple(
        DocumentTable(clean_text(name), _read_rows(rows, name, expected))
        for name, rows in sheets.items()
    )
    cells = sum(len(row) for table in tables for row in table.rows)
    if cells > MOST_CELLS:
        raise ToolError(f"`data_str` has {cells} cells; at most {MOST_CELLS} are allowed.")
    return tables


def read_json(name: str, text: str, *, most_bytes: int, expected: str) -> Any:
    """Parse a JSON argument, with or without a code fence around it."""
    size = len(text.encode("utf-8", "replace"))
    if size > most_bytes:
        raise ToolError(f"`{name}` has {size} bytes; at most {most_bytes} are allowed.")
    try:
        return json.loads(
            strip_fence(text), parse_constant=_refuse_number, parse_float=_read_number
        )
    except json.JSONDecodeError as exc:
        position = f"line {exc.lineno}, column {exc.colno}"
        raise ToolError(f"`{name}` is not JSON ({exc.msg}, {position}). {expected}") from exc
    except (RecursionError, ValueError) as exc:
        raise ToolError(f"`{name}` is not JSON ({exc}). {expected}") from exc


def strip_fence(text: str) -> str:
    """Return the content of the code fence if the text is one fenced block."""
    lines = text.strip().splitlines()
    if len(lines) >= 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text


def _read_number(digits: str) -> float:
    value = float(digits)
    return value if isfinite(value) else _refuse_number(digits)


def _refuse_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _read_rows(data: Any, name: str, expected: str) -> tuple[tuple[CellValue, ...], ...]:
    if not isinstance(data, list) or not data:
        raise ToolError(f"Table {name!r} of `data_str` is not a list of rows. {expected}")
    if all(isinstance(row, dict) for row in data):
        rows = _list_objects(cast(list[dict[str, Any]], data))
    elif all(isinstance(row, list) for row in data):
        rows = data
    else:
        kind = list if isinstance(data[0], list) else dict
        wrong = next(number for number, row in enumerate(data, 1) if not isinstance(row, kind))
        raise ToolError(
            f"Row {wrong} of table {name!r} has another type than the first row. {expected}"
        )
    return _fill_rows(rows, name)


def _list_objects(data: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return a header with all keys in order of first use, then a row for each object."""
    keys = list(dict.fromkeys(key for row in data for key in row))
    if len(keys) * len(data) > MOST_CELLS:
        raise ToolError(
            f"The objects have {len(keys)} different keys, which makes the table too large."
        )
    return [keys, *([row.get(key) for key in keys] for row in data)]


def _fill_rows(rows: Sequence[Sequence[Any]], name: str) -> tuple[tuple[CellValue, ...], ...]:
    width = max(len(row) for row in rows)
    if width == 0:
        raise ToolError(f"Table {name!r} has no columns.")
    if width > MOST_COLUMNS or len(rows) > MOST_ROWS or width * len(rows) > MOST_CELLS:
        raise ToolError(
            f"Table {name!r} has {len(rows)} rows of {width} columns; at most {MOST_CELLS} cells "
            f"and {MOST_COLUMNS} columns are allowed."
        )
    return tuple(
        tuple([*(_convert_cell(value) for value in row), *[None] * (width - len(row))])
        for row in rows
    )


def _convert_cell(value: Any) -> CellValue:
    """Return a value for a cell; a list or an object becomes its JSON text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return clean_text(value)
    return clean_text(json.dumps(value, ensure_ascii=False))
