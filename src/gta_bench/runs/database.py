"""DuckDB as this package uses it: in memory, bounded, and silent."""

import tempfile

import duckdb

from gta_bench.runs.store import RemotePath, StorePath

MEMORY = "512MB"


def connected(place: StorePath) -> duckdb.DuckDBPyConnection:
    """A connection that can read and write tables at that place.

    What does not fit in memory goes to disk. A store is reached through fsspec: DuckDB's own
    client is an extension that it would download.
    """
    connection = duckdb.connect(
        config={"memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()}
    )
    # Its bar would be drawn on stdout, where data goes.
    connection.execute("SET enable_progress_bar = false")
    if isinstance(place, RemotePath):
        connection.register_filesystem(place.fs)
    return connection


def quoted(place: StorePath) -> str:
    """A path or pattern as text of a query."""
    return "'{}'".format(str(place).replace("'", "''"))
