"""Inside the jail: the rows that a query finds in a SQLite database, which is not changed.

The query may only read. What SQLite says about the query itself is `refused`; what it says about
the database is `problem`.
"""

import json
import math
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_ROWS = 1000
MOST_CHARACTERS = 100_000  # of a value; the rest is cut
MOST_REPLY = 8 * 2**20  # characters of all values
MOST_LENGTH = 16 * 2**20  # bytes of a value, also of one that is computed on the way
SECONDS = 10.0
STEPS = 10_000  # of SQLite's machine between two looks at the clock
READING = frozenset({
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE
})  # fmt: skip
FORBIDDEN = frozenset({"load_extension", "fts3_tokenizer", "writefile", "readfile", "edit"})


def prepare() -> dict[str, Any]:
    """Nothing to prepare: the imports above are all that must run outside of the limits."""
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return the rows, or why there are none."""
    query = json.loads(Path("options.json").read_text(encoding="utf-8"))["query"]
    refused = find_query_problem(query)
    if refused is not None:
        return json.dumps({"rows": [], "refused": refused})
    try:
        _recover()
        reply = json.dumps(_ask(query))
    except sqlite3.Error as exc:
        return json.dumps({"rows": [], "problem": str(exc)})
    if len(reply) > MOST_REPLY:
        return json.dumps({"rows": [], "refused": f"its result has {len(reply)} characters"})
    return reply


def find_query_problem(query: str) -> str | None:
    """Return why a text is not a single SELECT; tables and columns are not looked up."""
    connection = sqlite3.connect(":memory:")
    try:
        denied = _guard(connection)
        # Nothing but a SELECT can stand in parentheses.
        bare = query.rstrip().removesuffix(";")
        connection.execute(f"EXPLAIN SELECT * FROM (\n{bare}\n)")
    except (sqlite3.Error, sqlite3.Warning) as exc:
        if denied:
            return denied[0]
        said = f"it is not a single SELECT ({exc})"
        return None if str(exc).startswith("no such table") else said
    except ValueError as exc:  # a zero byte, or a surrogate
        return str(exc)
    finally:
        connection.close()
    return None


def _guard(connection: sqlite3.Connection) -> list[str]:
    """Let a connection only read; return a list that gets what its query wanted beyond that."""
    denied: list[str] = []

    def authorize(
        action: int, first: str | None, second: str | None, _: str | None, view: str | None
    ) -> int:
        if action in READING and (second or "").lower() not in FORBIDDEN:
            return sqlite3.SQLITE_OK
        if view is None:
            what = second if action == sqlite3.SQLITE_FUNCTION else first
            denied.append(f"it may only read, and wants more ({what or 'another statement'})")
        return sqlite3.SQLITE_DENY

    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)
    connection.set_authorizer(authorize)
    return denied


def _recover() -> None:
    """Complete or undo what the server had begun: its log and its journal are beside the file."""
    connection = sqlite3.connect("file")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        connection.close()


def _ask(query: str) -> dict[str, Any]:
    connection = sqlite3.connect("file:file?mode=ro&immutable=1", uri=True)
    try:
        connection.text_factory = _decode
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
        denied, late = _guard(connection), _limit_time(connection)
        try:
            rows = connection.execute(query).fetchmany(MOST_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning) as exc:
            if denied:
                return {"rows": [], "refused": denied[0]}
            if late():
                return {"rows": [], "excess": f"it takes more than {SECONDS:g} seconds"}
            if isinstance(exc, sqlite3.DataError):
                return {"rows": [], "excess": f"its result is too large: {exc}"}
            return {"rows": [], "problem": str(exc)}
    finally:
        connection.close()
    shown = [[_show(value) for value in row] for row in rows[:MOST_ROWS]]
    return {"rows": shown, "more": len(rows) > MOST_ROWS}


def _limit_time(connection: sqlite3.Connection) -> Callable[[], bool]:
    end = time.monotonic() + SECONDS

    def late() -> bool:
        return time.monotonic() > end

    connection.set_progress_handler(late, STEPS)
    return late


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _show(value: Any) -> str | int | float | None:
    if isinstance(value, bytes):
        return f"x'{value[:MOST_CHARACTERS].hex()}'"
    if isinstance(value, str):
        return value[:MOST_CHARACTERS]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    number: int | float | None = value
    return number
