"""DuckDB as this package uses it: in memory, bounded, and silent."""

import tempfile

import duckdb

MEMORY = "512MB"


def connected() -> duckdb.DuckDBPyConnection:
    """A database held to a bound; what does not fit goes to disk and back."""
    connection = duckdb.connect(
        config={"memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()}
    )
    # Its bar would be drawn on stdout, where data goes.
    connection.execute("SET enable_progress_bar = false")
    return connection
