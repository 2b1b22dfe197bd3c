"""Runs as tables for any analysis: Parquet or CSV, written by DuckDB, one run after the other.

Rows go through a file and not through lists: neither units nor verdicts of a run are in memory.
docs/reference/results.md is generated from the columns here.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import duckdb

from gta_bench.errors import RunError
from gta_bench.metrics.workflow_scores import Thresholds, score_units
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.views import FrameRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.csv_cells import neutralize_column
from gta_bench.runs.directory import (
    SCORES,
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import UnitStream
from gta_bench.runs.rows import RowFollower, sample_row, scored_row
from gta_bench.runs.store import StorePath, explain_store_errors
from gta_bench.runs.tables import TABLES, StoredRows, connect_database, quote_path
from gta_bench.runs.verdicts import VERDICTS, has_verdicts, open_whole_verdicts

_Shape = Literal["parquet", "csv"]
READ = """read_json(
    $file, format = 'newline_delimited', maximum_object_size = 67108864,
    columns = {key: 'STRUCT(task VARCHAR, epoch INTEGER, leaf VARCHAR, judge VARCHAR,
                            repeat INTEGER)',
               verdict: 'STRUCT("type" VARCHAR, "value" DOUBLE, reason VARCHAR, cause VARCHAR)',
               compat: 'DOUBLE', evidence: 'VARCHAR', prompts: 'VARCHAR', model: 'VARCHAR',
               input_tokens: 'BIGINT', cached_tokens: 'BIGINT', output_tokens: 'BIGINT',
               cost_usd: 'DOUBLE'})"""
# The file is read twice, first for what decides which rows stay: all lines with their texts do not
# fit into memory, and writing them to disk and back costs more than reading again.
LINES = f"""
CREATE TEMP TABLE lines AS
SELECT row_number() OVER () AS line, key, verdict.type = 'scored' AS scored,
       hash(evidence, prompts) AS shown
FROM {READ}
"""
# All but the newest row of each key, where a score is kept if later rows for the same evidence have
# none. This is `read_verdicts` as a query: after the last score only rows without one follow, and
# the first of them that was made from other evidence replaces it.
DROPPED = """
CREATE TEMP TABLE dropped AS
WITH newest AS (
    SELECT key AS verdict, max(line) AS last, max(line) FILTER (scored) AS last_scored
    FROM lines GROUP BY key
), doubtful AS (
    SELECT verdict, last, last_scored FROM newest WHERE last_scored < last
), ended AS (
    SELECT DISTINCT verdict FROM doubtful
    JOIN lines AS score ON score.line = doubtful.last_scored
    JOIN lines AS later ON later.key = verdict AND later.line > doubtful.last_scored
    WHERE later.shown <> score.shown
), kept AS (
    SELECT CASE WHEN last_scored IS NULL OR ended.verdict IS NOT NULL THEN last
                ELSE last_scored END AS line
    FROM newest LEFT JOIN ended USING (verdict)
)
SELECT line FROM lines ANTI JOIN kept USING (line)
"""
NEWEST = f"""
SELECT $run AS run, key.task AS task, key.epoch AS epoch, key.leaf AS leaf, key.judge AS judge,
       key.repeat AS repeat, leaves.weight, leaves.compat_weight, leaves.requirement_sha256,
       verdict.value AS value, verdict.cause AS cause, compat, verdict.reason AS reason,
       evidence, prompts, model, input_tokens, cached_tokens, output_tokens, cost_usd
FROM (SELECT *, row_number() OVER () AS line FROM {READ}) ANTI JOIN dropped USING (line)
LEFT JOIN leaves ON leaves.task = key.task AND leaves.leaf = key.leaf
"""


def export_results(
    runs: Sequence[StorePath], out: StorePath, *, thresholds: Thresholds, shape: _Shape = "parquet"
) -> dict[str, int]:
    """Write the tables of all runs to `out`: a folder for each table, a file for each run.

    Returns how many rows each table has. Workflow runs need not be scored: their pooled scores
    follow from the tables. Only the first causes of failed leaves come from `scores.json`.
    """
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty. Choose another --out.")
    rows = dict.fromkeys(TABLES, 0)
    for number, run in enumerate(runs, start=1):
        manifest = read_manifest(run)
        spec = manifest.spec
        exporter = RunExport(str(run), manifest, out, number, shape, rows)
        if spec.dataset == "atomic":
            found = UnitStream(log_folder(run), spec.tasks, spec.epochs, AtomicUnit)
            exporter.atomic(found, read_scores(run))
        else:
            done = UnitStream(log_folder(run), spec.tasks, spec.epochs, WorkflowUnit)
            exporter.workflow(done, run, thresholds=thresholds, not_run=done.not_run)
    return rows


class RunExport:
    """Writes the tables of one run, a file each, and counts their rows in `rows`."""

    def __init__(
        self,
        name: str,
        manifest: RunManifest,
        out: StorePath,
        number: int,
        shape: _Shape,
        rows: dict[str, int],
    ) -> None:
        self.name = name
        self.manifest = manifest
        self.out = out
        self.file = f"{number:05}.{shape}"
        self.form = "PARQUET, COMPRESSION zstd" if shape == "parquet" else "CSV, HEADER"
        self.shape = shape
        self.rows = rows

    def atomic(self, units: Iterable[AtomicUnit], scores: RunScores) -> None:
        """Export a run of GTA-Atomic."""
        pooled = scores.model_copy(update={"units": (), "failures": ()})
        self._write("runs", [self._run(pooled)])
        stored = self._find_stored(scores)
        for table, rows in stored.items():
            self._copy_stored(table, rows.files())
        if stored:
            return
        self._write("samples", self._samples(units, scores))
        self._write("failures", (self._failure(one, None) for one in scores.failures))

    def _find_stored(self, scores: RunScores) -> dict[str, StoredRows[Any]]:
        """Return the rows that scoring wrote; none if the logs may have more or other units."""
        given = {"samples": scores.units, "failures": scores.failures}
        found = {name: rows for name, rows in given.items() if isinstance(rows, StoredRows)}
        complete = scores.n == scores.n_units == self.manifest.spec.units
        return found if complete and all(rows.is_local for rows in found.values()) else {}

    def _samples(self, units: Iterable[AtomicUnit], scores: RunScores) -> Iterator[FrameRow]:
        """Yield the rows of all units; their scores and failures have the same order."""
        tasks = self.manifest.spec.tasks
        counted, failed = RowFollower(scores.units, tasks), RowFollower(scores.failures, tasks)
        for unit in units:
            key = (unit.task.id, unit.epoch)
            (score,) = counted.take(key) or (None,)
            yield scored_row(unit, self.name, score, failed.take(key))

    def workflow(
        self,
        units: Iterable[WorkflowUnit],
        run: StorePath,
        *,
        thresholds: Thresholds,
        not_run: Sequence[UnitKey] = (),
    ) -> None:
        """Export a run of GTA-Workflow; its verdicts go from file to file.

        `not_run` is read after the units.
        """
        tasks: dict[str, WorkflowTask] = {}
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as samples:

            def note() -> Iterator[WorkflowUnit]:
                for unit in units:
                    samples.write(json.dumps(sample_row(unit, self.name)) + "\n")
                    tasks[unit.task.id] = unit.task
                    yield unit

            # Nobody judges here, and what the checks of each task would say is not kept.
            scores = score_units(
                note(), {}, thresholds=thresholds, not_run=not_run, sink=lambda *_: None
            )
            ends = scores.model_dump(include={"leaf_threshold", "root_threshold"})
            self._write("runs", [self._run(scores) | ends])
            samples.flush()
            self._copy_rows("samples", samples.name)
        if has_verdicts(run):
            self._verdicts(run, tasks)
        if (run / SCORES).is_file():
            judges = read_workflow_scores(run).judges
            found = (self._failure(one, judge.judge) for judge in judges for one in judge.failures)
            self._write("failures", found)

    def _verdicts(self, run: StorePath, tasks: Mapping[str, WorkflowTask]) -> None:
        with open_whole_verdicts(run) as file, connect_database(self.out) as connection:
            connection.execute(
                "CREATE TABLE leaves (task VARCHAR, leaf VARCHAR, weight DOUBLE,"
                " compat_weight DOUBLE, requirement_sha256 VARCHAR)"
            )
            rows = [row for task in tasks.values() for row in _leaf_rows(task)]
            if rows:
                connection.executemany("INSERT INTO leaves VALUES (?, ?, ?, ?, ?)", rows)
            try:
                connection.execute(LINES, {"file": str(file)})
                connection.execute(DROPPED)
                # DuckDB cannot know how long the file is, assumes that it is short, and would put
                # all of it into a hash table; in the given order, the short tables go there.
                connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
                values = {"file": str(file), "run": self.name}
                self._copy(connection, "verdicts", NEWEST, values)
            except duckdb.InvalidInputException as exc:
                # DuckDB's message names the line, but in a copy of the file.
                reason = str(exc).partition("\n")[0]
                raise RunError(f"{run / VERDICTS} cannot be read: {reason}") from exc

    def _run(self, scores: RunScores | WorkflowScores) -> FrameRow:
        spec = self.manifest.spec
        return {
            "run": self.name,
            "dataset_digest": self.manifest.dataset_digest,
            **spec.model_dump(include={"dataset", "mode", "tools", "network"}),
            **spec.system.model_dump(include={"model", "agent", "harness"}),
            "scoring_version": scores.scoring_version,
            "n": scores.n,
            "n_units": scores.n_units,
            "manifest": self.manifest.model_dump_json(),
            "scores": scores.model_dump_json(),
        }

    def _failure(self, failure: Failure, judge: str | None) -> FrameRow:
        return {"run": self.name, "judge": judge, **failure.model_dump()}

    def _write(self, table: str, rows: Iterable[FrameRow]) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
            file.flush()
            self._copy_rows(table, file.name)

    def _copy_stored(self, table: str, files: Sequence[str]) -> None:
        """Copy rows that scoring wrote."""
        if not files:
            self._write(table, ())
            return
        names = [column.name for column in TABLES[table] if column.name != "run"]
        query = f"SELECT $run AS run, {', '.join(names)} FROM read_parquet($files)"
        with connect_database(self.out) as connection:
            self._copy(connection, table, query, {"run": self.name, "files": [*files]})

    def _copy_rows(self, table: str, file: str) -> None:
        columns = {column.name: column.type for column in TABLES[table]}
        query = "SELECT * FROM read_json($file, format = 'newline_delimited', columns = $columns)"
        with connect_database(self.out) as connection:
            self._copy(connection, table, query, {"file": file, "columns": columns})

    def _copy(
        self, connection: duckdb.DuckDBPyConnection, table: str, query: str, values: FrameRow
    ) -> None:
        folder = self.out / table
        folder.mkdir(parents=True, exist_ok=True)
        if self.shape == "csv":
            query = f"SELECT {', '.join(_list_csv_columns(table))} FROM ({query})"
        target = quote_path(folder / self.file)
        with explain_store_errors(self.out, writing=True):
            copied = connection.execute(f"COPY ({query}) TO {target} (FORMAT {self.form})", values)
            (count,) = copied.fetchone() or (0,)
        self.rows[table] += count


def _list_csv_columns(table: str) -> Iterator[str]:
    for column in TABLES[table]:
        text = column.type == "VARCHAR"
        yield f"{neutralize_column(column.name)} AS {column.name}" if text else column.name


def _leaf_rows(task: WorkflowTask) -> Iterator[tuple[str, str, float | None, float, str]]:
    root = Checkpoint(id="root", children=task.checkpoints)
    shares = list(_shares(root, 1.0))
    # If the weights of some siblings are all 0, the strict root is undefined for all leaves.
    defined = all(share is not None for _, share in shares)
    for leaf, share in shares:
        digest = hashlib.sha256((leaf.requirements or "").encode()).hexdigest()
        yield task.id, leaf.id, share if defined else None, share or 0.0, digest


def _shares(node: Checkpoint, share: float | None) -> Iterator[tuple[Checkpoint, float | None]]:
    """Yield each leaf's part of the root; None below a node whose children all have weight 0."""
    if not node.children:
        yield node, share
    weights = sum(child.weight for child in node.children)
    for child in node.children:
        below = None if share is None or not weights else share * child.weight / weights
        yield from _shares(child, below)
