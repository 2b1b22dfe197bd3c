"""Failures across runs, by cause, tool and task: an in-memory DuckDB table that pages query.

The failures of a long run come from the Parquet files in its `results/`, also while these grow.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np

from gta_bench.records.failures import Failure
from gta_bench.runs.directory import FAILURES, RESULTS
from gta_bench.runs.tables import StoredFailures, connect_database

ROWS_SHOWN: Final = 50
KEPT: Final = 200  # answers in memory
GROUPS_SHOWN: Final = 30
CREATE: Final = """
CREATE TABLE failures (
    run VARCHAR, task VARCHAR, epoch INTEGER, place VARCHAR, cause VARCHAR, detail VARCHAR,
    tool VARCHAR)
"""
# The details that name a tool are written by `metrics.failures`.
TOOL: Final = """
CASE WHEN cause IN ('wrong tool', 'arguments', 'tool error', 'tool unavailable') THEN coalesce(
    nullif(regexp_extract(detail, '(?:instead of calling|never called) ([\\w.-]+)$', 1), ''),
    nullif(nullif(regexp_extract(detail, 'instead of ([\\w.-]+)$', 1), ''), 'answering'),
    nullif(regexp_extract(detail, '^([\\w.-]+): ', 1), ''))
END
"""
ROWS: Final = "SELECT run, task, epoch, place, cause, detail, tool FROM failures"
ORDER: Final = "ORDER BY run, length(task), task, epoch, place"
COLUMNS: Final = ("task", "epoch", "place", "cause", "detail")
FILTERS: Final = ("cause", "tool", "task", "run")


class FailureGroup(NamedTuple):
    """A cause, a tool or a task: its failures, in how many tasks and in how many runs."""

    name: str
    failures: int
    tasks: int
    runs: int


class FailureRow(NamedTuple):
    """One failure of a run."""

    run: str
    task: str
    epoch: int
    place: str
    cause: str
    detail: str
    tool: str | None


class FoundFailures(NamedTuple):
    """What matches a filter: the number of all, groups, and the rows of one page."""

    number: int
    groups: Mapping[str, Sequence[FailureGroup]]
    rows: Sequence[FailureRow]


class FailureTable:
    """The failures of all runs of a folder; `number` counts them."""

    def __init__(self) -> None:
        self.number = 0
        self._database = connect_database(Path())
        self._database.execute(CREATE)
        self._known: dict[tuple[object, ...], Any] = {}
        self._lock = threading.Lock()

    def put(self, run: str, folder: Path, failures: Sequence[Failure] | None) -> None:
        """Replace the failures of a run; None if it has no scores, but may have rows."""
        files = [str(file) for file in sorted((folder / RESULTS / FAILURES).glob("*.parquet"))]
        with self._lock, self._cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("DELETE FROM failures WHERE run = $run", {"run": run})
            if failures is None or isinstance(failures, StoredFailures):
                _insert_files(cursor, run, files)
            elif failures:
                _insert_rows(cursor, run, failures)
            cursor.execute("COMMIT")
            (self.number,) = cursor.execute("SELECT count(*) FROM failures").fetchall()[0]
            # A new one: who is reading the old one must not put an old answer into this one.
            self._known = {}

    def find(self, chosen: Mapping[str, str], *, page: int = 1) -> FoundFailures:
        """Return what matches the filters, with its groups; known answers are kept for a while."""
        known = self._known
        where, values = _condition(chosen)
        first = ROWS_SHOWN * (page - 1)
        with self._cursor() as cursor:

            def ask(query: str, values: Mapping[str, Any]) -> Any:
                key = (query, *values.values())
                if key not in known:
                    if len(known) >= KEPT:
                        known.clear()
                    known[key] = cursor.execute(query, values).fetchall()
                return known[key]

            ((number,),) = ask(f"SELECT count(*) FROM failures {where}", values)
            rows = ask(f"{ROWS} {where} {ORDER} LIMIT {ROWS_SHOWN} OFFSET {first}", values)
            groups = {
                by: [FailureGroup(*row) for row in ask(*_group(by, chosen))] for by in FILTERS
            }
        return FoundFailures(number, groups, [FailureRow(*row) for row in rows])

    def of_unit(self, run: str, task: str, epoch: int) -> list[FailureRow]:
        """Return the failures of one unit."""
        with self._cursor() as cursor:
            found = cursor.execute(
                f"{ROWS} WHERE run = $run AND task = $task AND epoch = $epoch ORDER BY place",
                {"run": run, "task": task, "epoch": epoch},
            ).fetchall()
        return [FailureRow(*row) for row in found]

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        # A cursor for each caller: one connection serves one thread at a time.
        with self._database.cursor() as cursor:
            yield cursor


def _insert_rows(cursor: duckdb.DuckDBPyConnection, run: str, failures: Sequence[Failure]) -> None:
    given = {
        name: np.array([getattr(one, name) for one in failures], dtype=object) for name in COLUMNS
    }
    given["epoch"] = given["epoch"].astype(np.int32)
    cursor.register("given", given)
    cursor.execute(
        f"INSERT INTO failures SELECT $run, {', '.join(COLUMNS)}, {TOOL} FROM given", {"run": run}
    )
    cursor.unregister("given")


def _insert_files(cursor: duckdb.DuckDBPyConnection, run: str, files: Sequence[str]) -> None:
    """Insert the rows of a long run, by its first judge."""
    if not files:
        return
    first = "SELECT min(judge) FROM read_parquet($files)"
    cursor.execute(
        f"INSERT INTO failures SELECT $run, {', '.join(COLUMNS)}, {TOOL}"
        f" FROM read_parquet($files) WHERE judge IS NOT DISTINCT FROM ({first})",
        {"run": run, "files": [*files]},
    )


def _condition(chosen: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    values = {name: chosen[name] for name in FILTERS if chosen.get(name)}
    terms = [f"{name} = ${name}" for name in values]
    return (f"WHERE {' AND '.join(terms)}" if terms else ""), values


def _group(by: str, chosen: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Group by a column; its own filter does not apply, so that another value can be chosen."""
    where, values = _condition({name: value for name, value in chosen.items() if name != by})
    query = (
        f"SELECT {by}, count(*), count(DISTINCT task), count(DISTINCT run) FROM failures {where}"
        f" GROUP BY {by} HAVING {by} IS NOT NULL ORDER BY 2 DESC, length({by}), {by}"
        f" LIMIT {GROUPS_SHOWN}"
    )
    return query, values
