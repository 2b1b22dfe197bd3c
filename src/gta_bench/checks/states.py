"""Checks of the state of a tool server: its files, and the databases among them."""

from dataclasses import replace

from gta_bench.checks.delivery import MOST_TEXT, CheckedState, CheckedWork
from gta_bench.checks.documents import match_texts
from gta_bench.checks.outcome import CheckBroken, Outcome, compare_number, compare_text, shorten
from gta_bench.confine.limits import MIB
from gta_bench.content.database import (
    COMPANIONS,
    MOST_ROWS,
    DatabaseValue,
    make_empty_database,
    query_rows,
)
from gta_bench.content.text import read_text
from gta_bench.errors import ToolError, format_count, join_first
from gta_bench.records import checks as kinds
from gta_bench.records.files import Deliverable


def check_state_file(check: kinds.StateFile, work: CheckedWork) -> Outcome:
    """A file that a server has after the last call, or has not."""
    state = work.state(check.server)
    where = f"{check.server}: {check.path}"
    if check.path in state.state.after.strays:
        return Outcome(False, where, "a link or another thing that is not a file", _want(check))
    if not check.exists:
        found = [file.path for file in state.match(check.path)]
        return Outcome(not found, where, join_first(found) or "no file", "no file")
    file = state.find(check.path)
    changed = file.digest != _find_before(state, file)
    if check.changed is not None and changed != check.changed:
        words = {True: "a changed file", False: "the file as it was before"}
        return Outcome(False, where, words[changed], words[check.changed])
    if check.sha256 not in (None, file.digest):
        return Outcome(False, where, f"SHA-256 {file.digest}", str(check.sha256))
    if check.all is None and check.any is None and check.none is None:
        return Outcome(True, where, f"a file of {file.size:,} bytes")
    return match_texts(
        where,
        _read_text(state, file),
        all_=check.all,
        any_=check.any,
        none=check.none,
        case=check.case,
    )


def _want(check: kinds.StateFile) -> str:
    return "a file" if check.exists else "no file"


def _find_before(state: CheckedState, file: Deliverable) -> str | None:
    """Return the digest that a file had before the first call, None if there was none."""
    return next((one.digest for one in state.state.before.files if one.path == file.path), None)


def _read_text(state: CheckedState, file: Deliverable) -> str:
    if not file.size:
        return ""
    if file.size > MOST_TEXT:
        raise ToolError(f"has more than {MOST_TEXT // MIB} MiB of text")
    return read_text(state.read(file.digest)).text


async def check_query(check: kinds.SqliteQuery, work: CheckedWork) -> Outcome:
    """A value or rows in a database of a server."""
    state = work.state(check.server)
    where = f"{check.server}: {check.path}"
    file = state.find(check.path)
    every = {one.path: one for one in state.state.after.files}
    companions = {
        ending: state.read(every[file.path + ending].digest)
        for ending in COMPANIONS
        if file.path + ending in every
    }
    found = await query_rows(state.read(file.digest), check.query, work.jail, companions)
    if found.excess and await _is_query_slow(check, state, file, work):
        found = replace(found, refused=found.excess)
    if found.refused:
        raise CheckBroken(f"The query cannot be used: {found.refused}.")
    if found.excess:
        return Outcome(False, where, f"a database on which {found.excess}", _describe_wanted(check))
    if found.problem:
        return Outcome(False, where, f"SQLite says {shorten(found.problem)!r}")
    if found.more:
        return Outcome(False, where, f"more than {MOST_ROWS:,} rows", _describe_wanted(check))
    if check.equals is not None:
        if [len(row) for row in found.rows] != [1]:
            return Outcome(False, where, _describe_shape(found.rows), _describe_wanted(check))
        return _compare(where, found.rows[0][0], check.equals, check.within)
    return _compare_rows(where, found.rows, check)


async def _is_query_slow(
    check: kinds.SqliteQuery, state: CheckedState, file: Deliverable, work: CheckedWork
) -> bool:
    """Whether the query is too much before the first call, too; else the system made it so."""
    before = _find_before(state, file)
    if before == file.digest:
        return True
    data = make_empty_database() if before is None else state.read(before)
    return bool((await query_rows(data, check.query, work.jail)).excess)


def _compare_rows(
    where: str, rows: tuple[tuple[DatabaseValue, ...], ...], check: kinds.SqliteQuery
) -> Outcome:
    wanted = check.rows or ()
    if [len(row) for row in rows] != [len(row) for row in wanted]:
        return Outcome(False, where, _describe_shape(rows), _describe_wanted(check))
    for number, (row, like) in enumerate(zip(rows, wanted, strict=True), 1):
        for found, value in zip(row, like, strict=True):
            outcome = _compare(f"{where}, row {number}", found, value, check.within)
            if not outcome.holds:
                return outcome
    return Outcome(True, where, _describe_shape(rows))


def _compare(
    where: str, found: DatabaseValue, wanted: float | str, within: float | None
) -> Outcome:
    if found is None:
        return Outcome(False, where, "NULL", repr(wanted))
    if isinstance(wanted, str):
        return compare_text(where, str(found), wanted)
    return compare_number(where, found, wanted, within=within)


def _describe_shape(rows: tuple[tuple[DatabaseValue, ...], ...]) -> str:
    if not rows:
        return "no row"
    return f"{format_count(len(rows), 'row')} of {format_count(len(rows[0]), 'column')}"


def _describe_wanted(check: kinds.SqliteQuery) -> str:
    if check.equals is not None:
        return f"one value, {check.equals!r}"
    return format_count(len(check.rows or ()), "row")
