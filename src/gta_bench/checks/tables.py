"""Checks of tables, cells and JSON: values are found by their labels, with a tolerance."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from gta_bench.checks.delivery import CheckedFile, CheckedWork, FoundTable
from gta_bench.checks.documents import in_range
from gta_bench.checks.numbers import parse_number
from gta_bench.checks.outcome import (
    Outcome,
    compare_number,
    compare_text,
    normalize,
    shorten,
)
from gta_bench.content.tables import read_csv
from gta_bench.content.text import TextContent
from gta_bench.content.xlsx import Sheet, SheetCell, XlsxContent
from gta_bench.errors import ToolError, join_first
from gta_bench.records import checks as kinds

_INDEX: Final = re.compile(r"-?[0-9]{1,9}")
JSON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict, "array": list, "string": str, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip


class _Grid(NamedTuple):
    """A table from the row of its head on."""

    place: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, label: str) -> int | None:
        """The number of the column with that label."""
        wanted = normalize(label)
        return next((at for at, one in enumerate(self.head) if normalize(one) == wanted), None)

    def cell(self, row: Sequence[str], at: int) -> str:
        return row[at] if at < len(row) else ""


def _place(file: CheckedFile, grid: _Grid) -> str:
    return f"{file.path} > {grid.place}" if grid.place else file.path


def _find_grids(tables: Sequence[FoundTable], labels: Sequence[str]) -> list[_Grid]:
    """Find the tables with these column labels; a head may stand below a title."""
    found = []
    for table in tables:
        for number, row in enumerate(table.rows[:50]):
            grid = _Grid(table.place, row, table.rows[number + 1 :])
            if all(grid.column(label) is not None for label in labels):
                found.append(grid)
                break
    return found


async def _grids(
    check: kinds.TableCheck, work: CheckedWork, labels: Sequence[str]
) -> tuple[CheckedFile, list[_Grid]]:
    file = work.find(check.file)
    tables = await work.tables(file, check.sheet)
    found = _find_grids(tables, labels)
    if not found:
        heads = [", ".join(map(shorten, table.rows[0])) for table in tables if table.rows]
        seen = f"tables with the heads {join_first(heads, 3)}" if heads else "none"
        raise ToolError(
            f"no table with the columns {', '.join(map(repr, labels))}; there are {seen}"
        )
    return file, found


def _best(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome that holds, or else the first one."""
    return next((one for one in outcomes if one.holds), outcomes[0])


async def check_shape(check: kinds.TableShape, work: CheckedWork) -> Outcome:
    """Rows below the head, columns, and names of columns."""
    file, grids = await _grids(check, work, check.head or ())

    def compare(grid: _Grid) -> Outcome:
        where = _place(file, grid)
        found = Outcome(True, where, "the shape")
        if check.rows is not None:
            found = in_range(where, "rows", len(grid.rows), check.rows)
        if check.columns is not None and found.holds:
            filled = [name for name in grid.head if name.strip()]
            found = in_range(where, "columns", len(filled), check.columns)
        return found

    return _best([compare(grid) for grid in grids])


async def check_value(check: kinds.TableValue, work: CheckedWork) -> Outcome:
    """The cell in a row and a column with these labels."""
    file, grids = await _grids(check, work, [check.column])
    outcomes: dict[str, Outcome] = {}
    wanted = normalize(check.row)
    for grid in grids:
        at = grid.column(check.column)
        for row in grid.rows:
            if at is None or wanted not in map(normalize, (*row[:at], *row[at + 1 :])):
                continue
            found = grid.cell(row, at)
            if found not in outcomes:
                where = f"{_place(file, grid)} > {check.row}, {check.column}"
                outcomes[found] = _compare(check, where, found)
    if not outcomes:
        labels = [shorten(row[0]) for grid in grids for row in grid.rows if row]
        seen = f"the rows {join_first(labels)}" if labels else "no rows"
        return Outcome(False, file.path, seen, f"a row {check.row!r}", 0.0)
    # A label that occurs twice with different values is no answer.
    return min(outcomes.values(), key=lambda one: one.holds)


def _compare(check: kinds.TableValue, where: str, found: str) -> Outcome:
    if isinstance(check.equals, str):
        one = compare_text(where, found, check.equals)
        same = found.strip() == check.equals
        return one._replace(holds=same, found=repr(found[:160])) if check.exact else one
    return compare_number(
        where, found, check.equals, within=check.within, rel=check.rel, zero_at=check.zero_at
    )


async def check_sum(check: kinds.TableSum, work: CheckedWork) -> Outcome:
    """A column that adds up."""
    file, grids = await _grids(check, work, [check.column, *check.where])

    def compare(grid: _Grid) -> Outcome:
        conditions = [(grid.column(name), normalize(value)) for name, value in check.where.items()]
        at = grid.column(check.column)
        assert at is not None
        rows = [
            row
            for row in grid.rows
            if all(normalize(grid.cell(row, one or 0)) == value for one, value in conditions)
        ]
        values = [parse_number(grid.cell(row, at)) for row in rows]
        total = sum(value for value in values if value is not None)
        where = f"{_place(file, grid)} > sum of {check.column}"
        return compare_number(
            where, repr(total), check.equals, within=check.within, zero_at=check.zero_at
        )

    return _best([compare(grid) for grid in grids])


async def check_order(check: kinds.TableOrder, work: CheckedWork) -> Outcome:
    """Rows sorted by a column."""
    file, grids = await _grids(check, work, [check.by])

    def compare(grid: _Grid) -> Outcome:
        at = grid.column(check.by)
        assert at is not None
        where = f"{_place(file, grid)} > {check.by}"
        texts = [grid.cell(row, at) for row in grid.rows if grid.cell(row, at).strip()]
        numbers = [parse_number(text) for text in texts]
        numeric = all(number is not None for number in numbers)
        values: list[Any] = numbers if numeric else list(map(normalize, texts))
        counts = Counter(values)
        if check.unique and len(counts) < len(values):
            pairs = zip(texts, values, strict=True)
            twice = next(text for text, one in pairs if counts[one] > 1)
            return Outcome(False, where, f"{shorten(twice)!r} more than once", "each once")
        wanted = "from large to small" if check.desc else "from small to large"
        for first, second, before, after in zip(values, values[1:], texts, texts[1:], strict=False):
            if (first < second) if check.desc else (first > second):
                return Outcome(False, where, f"{shorten(before)} before {shorten(after)}", wanted)
        return Outcome(bool(values), where, "rows in order" if values else "no rows", wanted)

    return _best([compare(grid) for grid in grids])


async def check_keys(check: kinds.TableKeys, work: CheckedWork) -> Outcome:
    """Which values a column has; rows without any text do not count."""
    file, grids = await _grids(check, work, [check.column])

    def compare(grid: _Grid) -> Outcome:
        at = grid.column(check.column)
        assert at is not None
        where = f"{_place(file, grid)} > {check.column}"
        rows = [row for row in grid.rows if any(cell.strip() for cell in row)]
        counts = Counter(normalize(grid.cell(row, at)) for row in rows)
        lacking = [one for one in check.all or () if normalize(one) not in counts]
        if lacking or not counts:
            found = f"no {join_first([repr(one) for one in lacking])}" if lacking else "no rows"
            return Outcome(False, where, found, "it")
        known = {*map(normalize, check.only)} if check.only else {*counts}
        extra = [repr(shorten(one)) for one in counts if one not in known]
        if extra:
            return Outcome(False, where, join_first(extra), f"nothing but {len(known)} values")
        twice = [repr(shorten(one)) for one, count in counts.items() if count > 1]
        if check.once and twice:
            return Outcome(False, where, f"{join_first(twice)} more than once", "each once")
        return Outcome(True, where, f"{len(counts)} values")

    return _best([compare(grid) for grid in grids])


async def check_same(check: kinds.TableSame, work: CheckedWork) -> Outcome:
    """A table that equals the reference, with rows in any order."""
    rows = read_csv((check.rows or "").encode()).rows
    head = tuple(rows[0]) if rows else ()
    reference = _Grid("", head, rows[1:])
    file, grids = await _grids(check, work, [*head] or list(check.key))
    return _best([_compare_tables(check, _place(file, grid), grid, reference) for grid in grids])


def _compare_tables(check: kinds.TableSame, where: str, grid: _Grid, reference: _Grid) -> Outcome:
    found = {_key_of(grid, row, check.key): row for row in grid.rows}
    wanted = {_key_of(reference, row, check.key): row for row in reference.rows}
    lacking = [", ".join(key) for key in wanted if key not in found]
    extra = [", ".join(key) for key in found if key not in wanted]
    if lacking or extra or len(grid.rows) != len(reference.rows):
        said = f"lacks the rows {join_first(lacking)}" if lacking else ""
        said = said or (f"the further rows {join_first(extra)}" if extra else "rows that repeat")
        return Outcome(False, where, said, f"the {len(wanted)} rows of {check.reference}")
    for key, row in wanted.items():
        for at, label in enumerate(reference.head):
            cell = reference.cell(row, at)
            number, other = parse_number(cell), grid.column(label)
            place = f"{where} > {', '.join(key)}, {label}"
            given = grid.cell(found[key], other or 0)
            one = (
                compare_text(place, given, cell)
                if number is None
                else compare_number(place, given, number, within=check.within)
            )
            if not one.holds:
                return one
    return Outcome(True, where, f"the {len(wanted)} rows of {check.reference}")


def _key_of(grid: _Grid, row: Sequence[str], key: Sequence[str]) -> tuple[str, ...]:
    places = [grid.column(label) for label in key]
    lost = [label for label, at in zip(key, places, strict=True) if at is None]
    if lost:
        raise ToolError(f"no column {lost[0]!r}")
    return tuple(normalize(grid.cell(row, at or 0)) for at in places)


async def _book(
    check: kinds.XlsxCell | kinds.XlsxNoErrors, work: CheckedWork
) -> tuple[CheckedFile, XlsxContent]:
    file = work.find(check.file)
    content = await work.read_whole(file)
    if not isinstance(content, XlsxContent):
        raise ToolError(f"is {file.identity.kind}, not a workbook")
    return file, content


async def check_cell(check: kinds.XlsxCell, work: CheckedWork) -> Outcome:
    """A cell by its address: its value, and whether a formula computes it."""
    file, book = await _book(check, work)
    if check.change:
        book = await work.recalculate(file, check.change)
    sheets = [one for one in book.sheets if check.sheet in (None, one.name)]
    if not sheets:
        names = join_first([one.name for one in book.sheets])
        raise ToolError(f"there is no sheet {check.sheet!r}; sheets: {names}")
    sheet: Sheet = sheets[0]
    where = f"{file.path} > {sheet.name}!{check.at}"
    cell: SheetCell | None = next((one for one in sheet.cells if one.address == check.at), None)
    if cell is None:
        return Outcome(False, where, "an empty cell", str(check.equals or "a formula"), 0.0)
    if check.formula is not None and check.formula != (cell.formula is not None):
        wanted = "a formula" if check.formula else "a plain value"
        return Outcome(False, where, shorten(cell.formula or cell.value), wanted, 0.0)
    if check.equals is None:
        return Outcome(True, where, shorten(cell.formula or cell.value))
    if isinstance(check.equals, str):
        return compare_text(where, cell.value, check.equals)
    return compare_number(
        where, cell.value, check.equals, within=check.within, zero_at=check.zero_at
    )


async def check_no_errors(check: kinds.XlsxNoErrors, work: CheckedWork) -> Outcome:
    """No cell that shows an error."""
    file, book = await _book(check, work)
    errors = [f"{sheet.name}!{cell.address} {cell.value}"
              for sheet in book.sheets for cell in sheet.errors]  # fmt: skip
    found = join_first(errors) if errors else "no error"
    return Outcome(not errors, file.path, found, "no error")


async def check_json(check: kinds.JsonPath, work: CheckedWork) -> Outcome:
    """Values at a path of a JSON file."""
    file = work.find(check.file)
    content = await work.read(file)
    if not isinstance(content, TextContent):
        raise ToolError(f"is {file.identity.kind}, not JSON")
    try:
        tree = json.loads(content.text, object_pairs_hook=_join_members)
    except (ValueError, RecursionError) as exc:
        raise ToolError(f"is not valid JSON: {shorten(str(exc))}") from exc
    where, found = f"{file.path} > {check.path}", find_values(tree, check.path)
    if len(found) < check.min:
        return Outcome(False, where, f"{len(found)} values", f"at least {check.min}")
    if check.max is not None and len(found) > check.max:
        return Outcome(False, where, f"{len(found)} values", f"at most {check.max}")
    for value in found:
        if check.type is not None and not _has_type(value, check.type):
            return Outcome(
                False, where, shorten(json.dumps(value)), f"a value of type {check.type}"
            )
        if check.equals is not None:
            one = _compare_json(where, value, check)
            if not one.holds:
                return one
    return Outcome(True, where, shorten(json.dumps(found[0])) if found else "nothing")


def _join_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON. Readers disagree about a name that occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _has_type(value: object, name: str) -> bool:
    return isinstance(value, JSON_TYPES[name]) and (
        name == "boolean" or not isinstance(value, bool)
    )


def _compare_json(where: str, value: object, check: kinds.JsonPath) -> Outcome:
    wanted = check.equals
    if isinstance(wanted, float) and isinstance(value, int | float) and type(value) is not bool:
        return compare_number(where, repr(value), wanted, within=check.within)
    holds = type(value) is type(wanted) and value == wanted
    return Outcome(holds, where, shorten(json.dumps(value)), json.dumps(wanted))


def find_values(tree: Any, path: str) -> list[Any]:
    """Return the values at a path of names, indexes and `*`.

    >>> find_values({"a": [{"b": 1}, {"b": 2}]}, "$.a[*].b")
    [1, 2]
    """
    values = [tree]
    for name in kinds.split_path(path):
        values = [one for value in values for one in _below(value, name)]
    return values


def _below(value: Any, name: str) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) if name == "*" else [value[name]] if name in value else []
    if isinstance(value, list):
        if name == "*":
            return value
        index = int(name) if _INDEX.fullmatch(name) else len(value)
        return [value[index]] if -len(value) <= index < len(value) else []
    return []
