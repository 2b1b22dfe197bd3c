"""A SQLite database: the rows that a query finds in it, read in the jail."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import LIMITS, Driver
from gta_bench.content.inside.database import MOST_ROWS, SECONDS, find_query_problem

__all__ = [
    "COMPANIONS",
    "MOST_ROWS",
    "SECONDS",
    "QueryResult",
    "find_query_problem",
    "make_empty_database",
    "query_rows",
]
# What a database consists of besides its file: changes that are not yet in it, or can be undone.
COMPANIONS = ("-wal", "-journal")
DatabaseValue = str | int | float | None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows that a query found, and whether there are `more`.

    `refused` says what is wrong with the query, `problem` what is wrong with the database, and
    `excess` what the query takes too much of, for which either may be the cause.
    """

    rows: tuple[tuple[DatabaseValue, ...], ...]
    more: bool = False
    refused: str = ""
    problem: str = ""
    excess: str = ""


DRIVER = Driver(
    "database",
    "The database reader",
    (),
    TypeAdapter(QueryResult),
    replace(LIMITS, wall_seconds=2 * SECONDS, cpu_seconds=int(2 * SECONDS)),
)


def make_empty_database() -> bytes:
    """Return a database without any table."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA user_version = 1")
        return database.serialize()


async def query_rows(
    data: bytes, query: str, jail: Jail, companions: Mapping[str, bytes] | None = None
) -> QueryResult:
    """Return what a query finds in a database; `companions` are by their endings.

    Raises ToolError if the file cannot be read at all.
    """
    beside = {f"file{ending}": content for ending, content in (companions or {}).items()}
    return await DRIVER.read(jail, data, beside, query=query)
