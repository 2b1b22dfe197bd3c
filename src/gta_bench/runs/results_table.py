"""Runs as tables for any analysis: Parquet or CSV, written by DuckDB, one run after the other.

Rows go through a file and not through lists, so memory holds one run's units and never its
verdicts.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import duckdb

from gta_bench.errors import RunError
from gta_bench.metrics.workflow_scores import (
    Thresholds,
    deliverable_kinds,
    score_workflow,
    tool_categories,
)
from gta_bench.records.calls import CallRecord
from gta_bench.records.failures import Failure
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit, Usage, WorkflowUnit
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.database import connected, quoted
from gta_bench.runs.directory import (
    SCORES,
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import read_units
from gta_bench.runs.results_columns import COMPAT_COUNTS, COUNTS, TABLES
from gta_bench.runs.store import StorePath, reaching
from gta_bench.runs.verdicts import VERDICTS, has_verdicts, whole_verdicts

_Shape = Literal["parquet", "csv"]
_Row = dict[str, Any]

READ = """read_json(
    $file, format = 'newline_delimited', maximum_object_size = 67108864,
    columns = {key: 'STRUCT(task VARCHAR, epoch INTEGER, leaf VARCHAR, judge VARCHAR,
                            repeat INTEGER)',
               verdict: 'STRUCT("type" VARCHAR, "value" DOUBLE, reason VARCHAR, cause VARCHAR)',
               compat: 'DOUBLE', evidence: 'VARCHAR', prompts: 'VARCHAR', model: 'VARCHAR',
               input_tokens: 'BIGINT', cached_tokens: 'BIGINT', output_tokens: 'BIGINT',
               cost_usd: 'DOUBLE'})"""
# The file is read twice, first for what decides which rows stand: all lines with their texts do
# not fit into the bound, and going to disk and back costs more than reading again.
LINES = f"""
CREATE TEMP TABLE lines AS
SELECT row_number() OVER () AS line, key, verdict.type = 'scored' AS scored,
       hash(evidence, prompts) AS shown
FROM {READ}
"""
# All but the newest row of each key; on the same evidence a score outlasts the lack of one. This
# is `read_verdicts` as a query: after the last score only rows without one follow, and the first
# of them that was made from other evidence ends its life.
DROPPED = """
CREATE TEMP TABLE dropped AS
WITH places AS (
    SELECT key AS place, max(line) AS last, max(line) FILTER (scored) AS last_scored
    FROM lines GROUP BY key
), doubtful AS (
    SELECT place, last, last_scored FROM places WHERE last_scored < last
), ended AS (
    SELECT DISTINCT place FROM doubtful
    JOIN lines AS score ON score.line = doubtful.last_scored
    JOIN lines AS later ON later.key = place AND later.line > doubtful.last_scored
    WHERE later.shown <> score.shown
), kept AS (
    SELECT CASE WHEN last_scored IS NULL OR ended.place IS NOT NULL THEN last
                ELSE last_scored END AS line
    FROM places LEFT JOIN ended USING (place)
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


class _Exported(NamedTuple):
    """How many rows were written, by table."""

    rows: dict[str, int]


def export_results(
    runs: Sequence[StorePath], out: StorePath, *, thresholds: Thresholds, shape: _Shape = "parquet"
) -> _Exported:
    """Write the tables of all runs below `out`: a folder for each table, a file for each run.

    Workflow runs need not be scored: their pooled scores follow from the tables. Only the first
    causes of failed leaves come from `scores.json`.
    """
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; name another --out.")
    rows = dict.fromkeys(TABLES, 0)
    for number, run in enumerate(runs, start=1):
        manifest = read_manifest(run)
        folder = log_folder(run)
        exporter = RunExport(str(run), manifest, out, number, shape)
        if manifest.spec.dataset == "atomic":
            scores = read_scores(run)
            found = read_units(folder, manifest.spec.tasks, manifest.spec.epochs, AtomicUnit)
            exporter.atomic(found.units, scores)
        else:
            done = read_units(folder, manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
            pooled = score_workflow(done.units, (), thresholds=thresholds, not_run=done.not_run)
            exporter.workflow(done.units, pooled, run)
            if (run / SCORES).is_file():
                exporter.failures(read_workflow_scores(run))
        for name, count in exporter.rows.items():
            rows[name] += count
    return _Exported(rows)


class RunExport:
    """The tables of one run, a file each."""

    def __init__(
        self, name: str, manifest: RunManifest, out: StorePath, number: int, shape: _Shape
    ) -> None:
        self.name = name
        self.manifest = manifest
        self.out = out
        self.file = f"{number:05}.{shape}"
        self.shape = shape
        self.rows: dict[str, int] = {}

    def atomic(self, units: Sequence[AtomicUnit], scores: RunScores) -> None:
        """A run of GTA-Atomic."""
        pooled = scores.model_copy(update={"units": (), "failures": ()})
        self._write("runs", [self._run(pooled, {})])
        counted = {(unit.task, unit.epoch): unit for unit in scores.units}
        causes: dict[tuple[str, int], list[str]] = {}
        for failure in scores.failures:
            causes.setdefault((failure.task, failure.epoch), []).append(failure.cause)

        def sample(unit: AtomicUnit) -> _Row:
            key = (unit.task.id, unit.epoch)
            score = counted.get(key)
            strict = None if score is None else score.strict
            compat = None if score is None else score.compat
            return {
                **self._sample(unit),
                "first_causes": causes.get(key, []),
                **{f"strict_{name}": getattr(strict, name, None) for name in COUNTS},
                **{f"compat_{name}": getattr(compat, name, None) for name in COMPAT_COUNTS},
            }

        self._write("samples", map(sample, units))
        self._write("failures", (self._failure(one, None) for one in scores.failures))

    def workflow(
        self, units: Sequence[WorkflowUnit], scores: WorkflowScores, run: StorePath
    ) -> None:
        """A run of GTA-Workflow; its verdicts go from file to file."""
        thresholds = {
            "leaf_threshold": scores.leaf_threshold,
            "root_threshold": scores.root_threshold,
        }
        self._write("runs", [self._run(scores, thresholds)])
        self._write("samples", map(self._workflow_sample, units))
        if has_verdicts(run):
            tasks = {unit.task.id: unit.task for unit in units}
            with whole_verdicts(run) as file, connected(self.out) as connection:
                _leaf_table(connection, tasks.values())
                try:
                    connection.execute(LINES, {"file": str(file)})
                    connection.execute(DROPPED)
                    # DuckDB cannot know how long the file is, takes it for short and would hold
                    # all of it in a hash table; as written, the short tables are held.
                    connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
                    values = {"file": str(file), "run": self.name}
                    self._copy(connection, "verdicts", NEWEST, values)
                except duckdb.InvalidInputException as exc:
                    # Its message names the line; where a run lies is told by ours.
                    reason = str(exc).partition("\n")[0]
                    raise RunError(f"{run / VERDICTS} cannot be read: {reason}") from exc

    def failures(self, scores: WorkflowScores) -> None:
        """The first causes of a scored Workflow run."""
        self._write(
            "failures",
            (self._failure(one, judge.judge) for judge in scores.judges for one in judge.failures),
        )

    def _run(self, scores: RunScores | WorkflowScores, more: _Row) -> _Row:
        held = self.manifest
        return {
            "run": self.name,
            "dataset": held.spec.dataset,
            "dataset_digest": held.dataset_digest,
            "mode": held.spec.mode,
            "model": held.spec.system.model,
            "agent": held.spec.system.agent,
            "harness": held.spec.system.harness,
            "tools": held.spec.tools,
            "network": held.spec.network,
            "scoring_version": scores.scoring_version,
            "n": scores.n,
            "n_units": scores.n_units,
            "manifest": held.model_dump_json(),
            "scores": scores.model_dump_json(),
            **more,
        }

    def _sample(self, unit: AtomicUnit | WorkflowUnit) -> _Row:
        return {
            "run": self.name,
            "task": unit.task.id,
            "epoch": unit.epoch,
            "failure": unit.failure,
            **_usage(unit.usage),
            **_calls(unit.calls),
        }

    def _workflow_sample(self, unit: WorkflowUnit) -> _Row:
        return {
            **self._sample(unit),
            "category": unit.task.category,
            "leaves": sum(1 for _ in unit.task.leaves()),
            "kinds": list(deliverable_kinds(unit)),
            "tool_categories": list(tool_categories(unit)),
        }

    def _failure(self, failure: Failure, judge: str | None) -> _Row:
        return {"run": self.name, "judge": judge, **failure.model_dump()}

    def _write(self, table: str, rows: Iterable[_Row]) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
            file.flush()
            columns = {column.name: column.type for column in TABLES[table]}
            query = (
                "SELECT * FROM read_json($file, format = 'newline_delimited', columns = $columns)"
            )
            with connected(self.out) as connection:
                self._copy(connection, table, query, {"file": file.name, "columns": columns})

    def _copy(
        self, connection: duckdb.DuckDBPyConnection, table: str, query: str, values: _Row
    ) -> None:
        folder = self.out / table
        folder.mkdir(parents=True, exist_ok=True)
        target = quoted(folder / self.file)
        form = "PARQUET, COMPRESSION zstd" if self.shape == "parquet" else "CSV, HEADER"
        with reaching(self.out, writing=True):
            copied = connection.execute(f"COPY ({query}) TO {target} (FORMAT {form})", values)
            (count,) = copied.fetchone() or (0,)
        self.rows[table] = self.rows.get(table, 0) + count


def _leaf_table(connection: duckdb.DuckDBPyConnection, tasks: Iterable[WorkflowTask]) -> None:
    connection.execute(
        "CREATE TABLE leaves (task VARCHAR, leaf VARCHAR, weight DOUBLE, compat_weight DOUBLE,"
        " requirement_sha256 VARCHAR)"
    )
    rows = [row for task in tasks for row in _leaf_rows(task)]
    if rows:
        connection.executemany("INSERT INTO leaves VALUES (?, ?, ?, ?, ?)", rows)


def _leaf_rows(task: WorkflowTask) -> Iterator[tuple[str, str, float | None, float, str]]:
    root = Checkpoint(id="root", children=task.checkpoints)
    shares = list(_shares(root, 1.0))
    # Where nothing weighs in one place the strict root is undefined, whatever the other leaves say.
    defined = all(share is not None for _, share in shares)
    for leaf, share in shares:
        digest = hashlib.sha256((leaf.requirements or "").encode()).hexdigest()
        yield task.id, leaf.id, share if defined else None, share or 0.0, digest


def _shares(node: Checkpoint, share: float | None) -> Iterator[tuple[Checkpoint, float | None]]:
    """Each leaf's part of the root; None below a node whose children weigh nothing."""
    if not node.children:
        yield node, share
    weights = sum(child.weight for child in node.children)
    for child in node.children:
        below = None if share is None or not weights else share * child.weight / weights
        yield from _shares(child, below)


def _usage(usage: Usage) -> _Row:
    return usage.model_dump(
        include={"seconds", "model_calls", "input_tokens", "output_tokens", "cost_usd"}
    )


def _calls(calls: Sequence[CallRecord]) -> _Row:
    return {
        f"calls_{status}": sum(call.status == status for call in calls)
        for status in ("done", "error", "unavailable")
    }
