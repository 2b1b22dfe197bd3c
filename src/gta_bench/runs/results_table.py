"""Runs as tables for any analysis: Parquet or CSV, written by DuckDB, one run after the other.

Rows go through a file and not through lists, so only one run's units are in memory at a time, and
never its verdicts. docs/reference/results.md is generated from the columns here.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import duckdb

from gta_bench.errors import RunError
from gta_bench.metrics.workflow_scores import (
    Thresholds,
    find_deliverable_kinds,
    score_workflow,
    tool_categories,
)
from gta_bench.records.failures import Failure
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import (
    SCORES,
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import read_units
from gta_bench.runs.store import RemotePath, StorePath, explain_store_errors
from gta_bench.runs.verdicts import VERDICTS, has_verdicts, open_whole_verdicts

_Shape = Literal["parquet", "csv"]
_Row = dict[str, Any]
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
COUNTS: Final = (
    *("inst_hits", "inst_total", "call_total", "tool_hits", "arg_hits", "arg_typed_sum"),
    *("answer_total", "answer_sum", "image_sum", "answer_i_total", "malformed"),
)
COMPAT_COUNTS: Final = tuple(name for name in COUNTS if name not in ("arg_typed_sum", "malformed"))
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
            found = read_units(log_folder(run), spec.tasks, spec.epochs, AtomicUnit)
            exporter.atomic(found.units, read_scores(run))
        else:
            done = read_units(log_folder(run), spec.tasks, spec.epochs, WorkflowUnit)
            pooled = score_workflow(done.units, (), thresholds=thresholds, not_run=done.not_run)
            exporter.workflow(done.units, pooled, run)
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
        self.rows = rows

    def atomic(self, units: Sequence[AtomicUnit], scores: RunScores) -> None:
        """Export a run of GTA-Atomic."""
        pooled = scores.model_copy(update={"units": (), "failures": ()})
        self._write("runs", [self._run(pooled)])
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
        """Export a run of GTA-Workflow; its verdicts go from file to file."""
        thresholds = scores.model_dump(include={"leaf_threshold", "root_threshold"})
        self._write("runs", [self._run(scores) | thresholds])

        def sample(unit: WorkflowUnit) -> _Row:
            return {
                **self._sample(unit),
                "category": unit.task.category,
                "leaves": sum(1 for _ in unit.task.leaves()),
                "kinds": list(find_deliverable_kinds(unit)),
                "tool_categories": list(tool_categories(unit)),
            }

        self._write("samples", map(sample, units))
        if has_verdicts(run):
            self._verdicts(run, {unit.task.id: unit.task for unit in units})
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

    def _run(self, scores: RunScores | WorkflowScores) -> _Row:
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

    def _sample(self, unit: AtomicUnit | WorkflowUnit) -> _Row:
        took = {"seconds", "model_calls", "input_tokens", "output_tokens", "cost_usd"}
        return {
            "run": self.name,
            "task": unit.task.id,
            "epoch": unit.epoch,
            "failure": unit.failure,
            **unit.usage.model_dump(include=took),
            **{
                f"calls_{status}": sum(call.status == status for call in unit.calls)
                for status in ("done", "error", "unavailable")
            },
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
            with connect_database(self.out) as connection:
                self._copy(connection, table, query, {"file": file.name, "columns": columns})

    def _copy(
        self, connection: duckdb.DuckDBPyConnection, table: str, query: str, values: _Row
    ) -> None:
        folder = self.out / table
        folder.mkdir(parents=True, exist_ok=True)
        target = quote_path(folder / self.file)
        with explain_store_errors(self.out, writing=True):
            copied = connection.execute(f"COPY ({query}) TO {target} (FORMAT {self.form})", values)
            (count,) = copied.fetchone() or (0,)
        self.rows[table] += count


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
