"""Tables of runs: their columns, and files of rows that grow while they are read.

`gta results export` writes the tables of any runs. A long run has its own rows in `results/` too:
Parquet files of some thousand rows, written one after the other, from which its pages and
comparisons read one row at a time. docs/reference/results.md is generated from the columns here.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, overload

import duckdb

from gta_bench.errors import RunError
from gta_bench.records.attempts import UnitKey
from gta_bench.records.base import Record
from gta_bench.records.failures import CauseGroup, Failure, FailureCause, FailureCount
from gta_bench.records.scores import (
    COMPAT_COUNTS,
    COUNTS,
    Category,
    CategoryCounts,
    CountBlock,
    UnitScore,
)
from gta_bench.records.views import FrameRow
from gta_bench.redaction import current_redactor
from gta_bench.runs.store import (
    RemotePath,
    StorePath,
    explain_store_errors,
    sort_by_name,
    write_atomically,
)

MEMORY = "512MB"


class Column(NamedTuple):
    """A column: its name, its DuckDB type, and what it means."""

    name: str
    type: str
    meaning: str


RUN: Final = (Column("run", "VARCHAR", "The run's folder, as it was given."),)
UNIT: Final = (
    *RUN,
    Column("task", "VARCHAR", "The task's id."),
    Column("epoch", "INTEGER", "Which repetition of the task, from 1."),
)
RUNS: Final = (
    *RUN,
    Column("dataset", "VARCHAR", "`atomic` or `workflow`."),
    Column("dataset_digest", "VARCHAR", "Digest of the dataset's files."),
    Column("mode", "VARCHAR", "`step`, `end-to-end` or `workflow`."),
    Column("model", "VARCHAR", "The model that was asked."),
    Column("agent", "VARCHAR", "The agent that drove it, or `harness`."),
    Column("harness", "VARCHAR", "The harness: its command or function."),
    Column("tools", "VARCHAR", "`local`, a server's address, or `own`."),
    Column("network", "VARCHAR", "What a harness could reach."),
    Column("scoring_version", "INTEGER", "Version of the scoring rules."),
    Column("leaf_threshold", "DOUBLE", "Workflow: score from which a leaf succeeds."),
    Column("root_threshold", "DOUBLE", "Workflow: score from which a task succeeds."),
    Column("n", "INTEGER", "Units with a score; Workflow: units that were run to their end."),
    Column("n_units", "INTEGER", "Units that the run has in all. Rankable only if n equals it."),
    Column("manifest", "VARCHAR", "`run.json`, as JSON."),
    Column("scores", "VARCHAR", "The pooled scores of `scores.json` without units, as JSON."),
)
SAMPLES: Final = (
    *UNIT,
    Column("category", "VARCHAR", "Workflow: the task's category."),
    Column("failure", "VARCHAR", "Why the unit has no score through no fault of the system."),
    Column("first_causes", "VARCHAR[]", "First causes of what failed (Atomic)."),
    Column("seconds", "DOUBLE", "How long the unit took."),
    Column("model_calls", "BIGINT", "Calls of the system's model."),
    Column("input_tokens", "BIGINT", "Tokens of these calls."),
    Column("output_tokens", "BIGINT", "Tokens of their replies."),
    Column("cost_usd", "DOUBLE", "What they cost; NULL where no price is known."),
    Column("calls_done", "INTEGER", "Tool calls that gave a result."),
    Column("calls_error", "INTEGER", "Tool calls that failed."),
    Column("calls_unavailable", "INTEGER", "Tool calls that this machine could not serve."),
    Column("leaves", "INTEGER", "Workflow: leaves of the task."),
    Column("kinds", "VARCHAR[]", "Workflow: endings of the deliverables' names."),
    Column("tool_categories", "VARCHAR[]", "Workflow: categories of the tools that were called."),
    *(Column(f"strict_{name}", "DOUBLE", "Atomic, strict: see Scoring.") for name in COUNTS),
    *(
        Column(f"compat_{name}", "DOUBLE", "Atomic, as upstream counts it.")
        for name in COMPAT_COUNTS
    ),
)
# Only in `results/` of a long Workflow run: a row for each unit and judge.
JUDGED: Final = (
    *SAMPLES,
    Column("judge", "VARCHAR", "The judge, with the options that can move a verdict."),
    Column("root", "DOUBLE", "The root score, 0 to 10; NULL if a leaf has no score."),
    Column("compat_root", "DOUBLE", "The root score as upstream reads the replies."),
    Column("scored", "INTEGER", "Leaves with a score."),
)
VERDICT_COLUMNS: Final = (
    *UNIT,
    Column("leaf", "VARCHAR", "The leaf's id."),
    Column("judge", "VARCHAR", "The judge, with the options that can move a verdict."),
    Column("repeat", "INTEGER", "Which of its verdicts on the leaf, from 1."),
    Column("weight", "DOUBLE", "The leaf's part of the root, 0 to 1; NULL if nothing weighs."),
    Column("compat_weight", "DOUBLE", "The same by upstream's rule, where nothing is 0."),
    Column("requirement_sha256", "VARCHAR", "Digest of the leaf's requirement."),
    Column("value", "DOUBLE", "The score, 0 to 10; NULL where there is none."),
    Column("cause", "VARCHAR", "Why there is no score."),
    Column("compat", "DOUBLE", "What upstream's rule reads in the reply."),
    Column("reason", "VARCHAR", "The judge's explanation."),
    Column("evidence", "VARCHAR", "Digest of what the judge was shown."),
    Column("prompts", "VARCHAR", "Digest of its prompts."),
    Column("model", "VARCHAR", "The name by which the provider answered."),
    Column("input_tokens", "BIGINT", "The leaf's part of its call."),
    Column("cached_tokens", "BIGINT", "Of these, read from the provider's cache."),
    Column("output_tokens", "BIGINT", "The leaf's part of the reply."),
    Column("cost_usd", "DOUBLE", "The leaf's part of the cost."),
)
FAILURES: Final = (
    *UNIT,
    Column("judge", "VARCHAR", "Workflow: whose verdict; NULL for Atomic."),
    Column("place", "VARCHAR", "`step 2`, `task`, or the leaf's id."),
    Column("cause", "VARCHAR", "The first cause; see Why it failed."),
    Column("detail", "VARCHAR", "What was seen."),
)
TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "runs": RUNS,
    "samples": SAMPLES,
    "verdicts": VERDICT_COLUMNS,
    "failures": FAILURES,
}
ABOUT: Final[Mapping[str, str]] = {
    "runs": "One row for each run.",
    "samples": "One row for each unit: a task in an epoch.",
    "verdicts": "One row for each leaf, judge and repeat: the newest verdict of each.",
    "failures": "One row for each step, task or leaf that failed, with its first cause.",
}


def connect_database(path: StorePath) -> duckdb.DuckDBPyConnection:
    """Connect to an in-memory database that can read and write tables at that path.

    What does not fit in memory goes to disk. A store is reached through fsspec, because DuckDB's
    own client is an extension that it would download.
    """
    connection = duckdb.connect(
        config={"memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()}
    )
    # The progress bar would be drawn on stdout, where data goes.
    connection.execute("SET enable_progress_bar = false")
    if isinstance(path, RemotePath):
        connection.register_filesystem(path.fs)
    return connection


def quote_path(path: StorePath) -> str:
    """Quote a path or pattern for a query."""
    return "'{}'".format(str(path).replace("'", "''"))


# Rows in one file of a long run, and how many of them are read at once.
FILE_ROWS: Final = 20_000
READ_ROWS: Final = 2_000
# The column with the whole record as JSON, beside those that are for queries.
RECORD: Final = "record"

RowT = TypeVar("RowT", bound=Record)


class RowWriter(AbstractContextManager["RowWriter"]):
    """Writes rows of a table to Parquet files in a folder, each complete once it is there."""

    def __init__(self, folder: StorePath, columns: Sequence[Column]) -> None:
        self._folder = folder
        self._columns = {column.name: column.type for column in columns} | {RECORD: "VARCHAR"}
        self._lines: list[str] = []
        self._files = 0

    def add(self, row: FrameRow, record: Record | None) -> None:
        """Add a row, with its record if it has one."""
        whole = None if record is None else record.model_dump_json()
        self._lines.append(json.dumps({**row, RECORD: whole}))
        if len(self._lines) >= FILE_ROWS:
            self._write()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        if kind is None and self._lines:
            self._write()

    def _write(self) -> None:
        self._files += 1
        with (
            tempfile.NamedTemporaryFile(suffix=".jsonl") as file,
            write_atomically(self._folder / f"{self._files:05}.parquet") as part,
            connect_database(part) as connection,
        ):
            file.write(current_redactor().json("\n".join(self._lines).encode()))
            file.flush()
            connection.execute(
                "COPY (SELECT * FROM read_json($file, format = 'newline_delimited',"
                f" columns = $columns)) TO {quote_path(part)} (FORMAT PARQUET, COMPRESSION zstd)",
                {"file": file.name, "columns": self._columns},
            )
        self._lines.clear()


class StoredRows(Sequence[RowT], Generic[RowT]):
    """The records in the files of a folder, read a few at a time whenever they are iterated."""

    def __init__(self, folder: StorePath, kind: type[RowT], where: Mapping[str, str] = {}) -> None:
        self._folder = folder
        self._kind = kind
        self._where = dict(where)

    def __iter__(self) -> Iterator[RowT]:
        for (record,) in self._select(RECORD):
            yield self._kind.model_validate_json(record)

    def __len__(self) -> int:
        return sum(int(count) for (count,) in self._select("count(*)"))

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | Sequence[RowT]:
        if isinstance(index, slice):
            return list(islice(self, *index.indices(len(self))))
        for row in islice(self, range(len(self))[index], None):
            return row
        raise IndexError(index)

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine, and not in a store."""
        return isinstance(self._folder, Path)

    def require(self, number: int, column: str) -> None:
        """Raise if the files do not have that many rows with a value in the column."""
        # A column of numbers, because the records themselves take long to read.
        counts = self._query(f"SELECT count({column}) FROM read_parquet($files) WHERE true")
        found = sum(int(count) for (count,) in counts)
        if found != number:
            raise RunError(
                f"{self._folder} has {found:,} of {number:,} rows: files were removed, added or "
                f"changed. {self._hint()}"
            )

    def files(self) -> list[str]:
        """Return the paths of the files, in the order of their rows."""
        return [str(file) for file in sort_by_name(self._folder.glob("*.parquet"))]

    def _select(self, what: str, then: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query over all records."""
        files = "read_parquet($files, filename = true, file_row_number = true)"
        return self._query(f"SELECT {what} FROM {files} WHERE {RECORD} IS NOT NULL", then)

    def _query(self, query: str, then: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query over all files; none if there are no files."""
        files = self.files()
        if not files:
            return
        chosen = "".join(f" AND {name} = ${name}" for name in self._where)
        with self._connect() as connection:
            found = connection.execute(f"{query}{chosen} {then}", {"files": files, **self._where})
            while rows := found.fetchmany(READ_ROWS):
                yield from rows

    @contextmanager
    def _connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Connect to a database, and say what to do if a file cannot be read."""
        try:
            with explain_store_errors(self._folder), connect_database(self._folder) as connection:
                yield connection
        except (duckdb.InvalidInputException, duckdb.IOException) as exc:
            reason = str(exc).partition("\n")[0]
            raise RunError(f"{self._folder}: {reason}. {self._hint()}") from exc

    def _hint(self) -> str:
        return f"Run `gta score {self._folder.parent.parent}` again."


class StoredUnits(StoredRows[UnitScore]):
    """The scores of a long Atomic run."""

    def __init__(self, folder: StorePath) -> None:
        super().__init__(folder, UnitScore)

    def read_counts(self, *, categories: bool) -> Iterator[CountBlock]:
        """Yield the strict counts of one file after the other, if it has any."""
        columns = {"task": "task", "epoch": "epoch"} | {name: f"strict_{name}" for name in COUNTS}
        parts = [(one, part) for one in get_args(Category) for part in CategoryCounts.model_fields]
        if categories:  # no column has these
            columns |= {
                f"{one}_{part}": f"({RECORD}->>'$.strict.categories.{one}.{part}')::DOUBLE"
                for one, part in parts
            }
        what = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        query = f"SELECT {what} FROM read_parquet($file) WHERE {RECORD} IS NOT NULL"
        with self._connect() as connection:
            for file in self.files():
                found = connection.execute(query, {"file": file}).fetchnumpy()
                if not len(found["task"]):  # no unit in this file has a score
                    continue
                counts = SimpleNamespace(**{name: found[name] for name in COUNTS})
                if categories:
                    counts.categories = {
                        one: SimpleNamespace(
                            **{part: found[f"{one}_{part}"] for part in CategoryCounts.model_fields}
                        )
                        for one in get_args(Category)
                    }
                yield CountBlock(found["task"], found["epoch"], counts)


class StoredFailures(StoredRows[Failure]):
    """The failures of a long run."""

    def __init__(self, folder: StorePath, where: Mapping[str, str] = {}) -> None:
        super().__init__(folder, Failure, where)

    def __len__(self) -> int:
        return sum(group.counted.failures for group in self.group_causes().values())

    def group_causes(self) -> Mapping[FailureCause, CauseGroup]:
        """Return the failures of each cause that occurs, counted once."""
        return self._groups

    @cached_property
    def _groups(self) -> dict[FailureCause, CauseGroup]:
        first = f"arg_min({RECORD}, {{file: filename, row: file_row_number}})"
        what = f"cause, count(*), count(DISTINCT task), {first}"
        return {
            cause: CauseGroup(
                FailureCount(cause=cause, failures=number, tasks=tasks),
                Failure.model_validate_json(first),
            )
            for cause, number, tasks, first in self._select(what, "GROUP BY cause")
        }

    def find_units(self, cause: FailureCause) -> Iterator[UnitKey]:
        """Yield the units with failures of this cause, one or several times."""
        if cause in self.group_causes():
            yield from self._select("task, epoch", f"AND cause = '{cause}'")
