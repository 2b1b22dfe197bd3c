"""Exported runs read back as scores: verdict rows are pooled by DuckDB, never held as objects.

The figures are those of `metrics.workflow_scores`, to the last digits of a sum.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.metrics.pooling import percent
from gta_bench.metrics.strict.workflow import ROUNDING, THRESHOLDS
from gta_bench.metrics.workflow_scores import NO_CATEGORY, NOT_JUDGED
from gta_bench.records.run import RunManifest, Usage
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import (
    CompatScore,
    CurvePoint,
    GroupScores,
    JudgeScores,
    WorkflowScores,
)

MEMORY = "512MB"
_CURVE = ", ".join(
    f"count(*) FILTER (value >= {end - ROUNDING!r}) AS leaves_{place}"
    for place, end in enumerate(THRESHOLDS)
)
_ROOT_CURVE = ", ".join(f"count(*) FILTER (root >= {end - ROUNDING!r})" for end in THRESHOLDS)
_LEAF_CURVE = ", ".join(f"sum(leaves_{place})" for place in range(len(THRESHOLDS)))

# One pass over the verdicts: a leaf has the mean of its repeats if all of them gave a score, and a
# unit has a root if all its leaves have one.
UNITS = f"""
CREATE TEMP TABLE units AS
WITH leaf AS (
    SELECT run, judge, task, epoch, leaf, any_value(weight) AS weight,
           any_value(compat_weight) AS compat_weight, max(repeat) AS repeats,
           count(value) AS n, sum(value) AS value,
           count(coalesce(compat, value)) AS compat_n, sum(coalesce(compat, value)) AS compat,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cost_usd) AS cost_usd, count(*) AS rows_
    FROM verdicts GROUP BY run, judge, task, epoch, leaf
), asked AS (
    SELECT run, judge, max(repeats) AS repeats FROM leaf GROUP BY run, judge
), judged AS (
    SELECT run, judge, task, epoch,
           count(*) FILTER (leaf.n = asked.repeats) AS scored,
           count(*) FILTER (leaf.compat_n = asked.repeats) AS compat_scored,
           sum(weight * value / asked.repeats) AS root,
           count(weight) AS weighted,
           sum(compat_weight * compat / asked.repeats) AS compat,
           count(*) AS present, sum(asked.repeats - rows_) AS unasked,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cost_usd) AS cost_usd,
           count(*) FILTER (leaf.n = asked.repeats
                            AND value / asked.repeats >= leaf_threshold - {ROUNDING!r}) AS passed,
           {_CURVE.replace("(value >=", "(leaf.n = asked.repeats AND value / asked.repeats >=")}
    FROM leaf JOIN asked USING (run, judge) JOIN runs USING (run)
    GROUP BY run, judge, task, epoch
)
SELECT asked.run, asked.judge, asked.repeats, samples.task, samples.epoch,
       coalesce(samples.category, '{NO_CATEGORY}') AS category, samples.kinds,
       samples.tool_categories, samples.leaves AS leaves, samples.failure,
       CASE WHEN samples.failure IS NULL AND samples.leaves > 0 AND scored = samples.leaves
                 AND weighted = samples.leaves THEN judged.root END AS root,
       CASE WHEN samples.failure IS NULL AND compat_scored = samples.leaves
            THEN judged.compat END AS compat,
       CASE WHEN samples.failure IS NULL THEN coalesce(scored, 0) ELSE 0 END AS scored,
       CASE WHEN samples.failure IS NULL THEN coalesce(passed, 0) ELSE 0 END AS passed,
       coalesce(unasked, 0) + samples.leaves - coalesce(present, 0) AS unasked,
       judged.input_tokens, judged.output_tokens, judged.cost_usd, root_threshold,
       {", ".join(f"leaves_{place}" for place in range(len(THRESHOLDS)))}
FROM asked JOIN runs USING (run) JOIN samples ON samples.run = asked.run
LEFT JOIN judged ON judged.run = asked.run AND judged.judge = asked.judge
     AND judged.task = samples.task AND judged.epoch = samples.epoch
"""
POOLED = f"""
avg(root), 100.0 * count(*) FILTER (root >= root_threshold - {ROUNDING!r}) / nullif(count(root), 0),
100.0 * sum(passed) / nullif(sum(scored), 0), count(root), count(*), sum(scored), sum(leaves)
"""
CAUSES = f"""
SELECT DISTINCT run, judge, cause FROM verdicts WHERE cause IS NOT NULL
UNION SELECT run, judge, failure FROM units WHERE failure IS NOT NULL
UNION SELECT run, judge, '{NOT_JUDGED}' FROM units WHERE failure IS NULL AND unasked > 0
"""


class ExportedRun(NamedTuple):
    """An exported run with its pooled scores; units and leaves stay in the tables."""

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores


def read_export(folder: Path) -> list[ExportedRun]:
    """All exported runs, in the order in which they were given."""
    with duckdb.connect(
        config={"memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()}
    ) as connection:
        for table in ("runs", "samples", "verdicts"):
            if any((folder / table).glob("*.parquet")):
                files = str(folder / table / "*.parquet").replace("'", "''")
                connection.execute(f"CREATE VIEW {table} AS FROM '{files}'")
        judges = judge_scores(connection) if (folder / "verdicts").is_dir() else {}
        rows = connection.execute("SELECT run, dataset, manifest, scores FROM runs").fetchall()
    return [_exported(*row, judges.get(row[0], ())) for row in rows]


def judge_scores(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[JudgeScores, ...]]:
    """Every judge's table for every run, from the views `runs`, `samples` and `verdicts`."""
    connection.execute(UNITS)
    missing = dict(
        connection.execute(
            "SELECT run, any_value(n_units) - count(*) FROM runs JOIN samples USING (run)"
            " GROUP BY run"
        ).fetchall()
    )
    causes: dict[tuple[str, str], list[str]] = {}
    for run, judge, cause in connection.execute(CAUSES).fetchall():
        causes.setdefault((run, judge), []).append(cause)
    groups = {
        by: _groups(connection, by, source)
        for by, source in (
            ("'all'", "units"),
            ("category", "units"),
            ("kind", "(SELECT *, unnest(kinds) AS kind FROM units)"),
            ("called", "(SELECT *, unnest(tool_categories) AS called FROM units)"),
        )
    }
    found: dict[str, list[JudgeScores]] = {}
    for row in connection.execute(
        "SELECT run, judge, any_value(repeats), avg(compat), count(compat), sum(input_tokens),"
        " sum(output_tokens), sum(cost_usd), count(root), sum(scored),"
        f" {_ROOT_CURVE}, {_LEAF_CURVE} FROM units GROUP BY run, judge ORDER BY run, judge"
    ).fetchall():
        key = (row[0], row[1])
        whole = groups["'all'"][key][0]
        called = {group.name: group for group in groups["called"].get(key, ())}
        found.setdefault(row[0], []).append(
            JudgeScores(
                judge=row[1],
                repeats=row[2],
                strict=whole.model_copy(update={"n_units": whole.n_units + missing[row[0]]}),
                compat=CompatScore(root_score=row[3], n=row[4]),
                categories=groups["category"][key],
                kinds=groups["kind"].get(key, ()),
                tool_categories=tuple(called.get(name, _nothing(name)) for name in CATEGORIES),
                curve=tuple(_curve(row[8], row[9], row[10:])),
                usage=Usage(input_tokens=row[5] or 0, output_tokens=row[6] or 0, cost_usd=row[7]),
                tasks=(),
                causes=tuple(sorted(causes.get(key, ()))),
            )
        )
    return {run: tuple(judges) for run, judges in found.items()}


def _groups(
    connection: duckdb.DuckDBPyConnection, by: str, source: str
) -> dict[tuple[str, str], tuple[GroupScores, ...]]:
    found: dict[tuple[str, str], list[GroupScores]] = {}
    query = f"SELECT run, judge, {by} AS name, {POOLED} FROM {source} GROUP BY ALL ORDER BY ALL"
    for run, judge, name, root, root_sr, leaf_sr, n, units, leaves, of in connection.execute(
        query
    ).fetchall():
        found.setdefault((run, judge), []).append(
            GroupScores(
                name=name,
                root_score=root,
                root_sr=root_sr,
                leaf_sr=leaf_sr,
                n=n,
                n_units=units,
                leaves=leaves,
                n_leaves=of,
            )
        )
    return {key: tuple(groups) for key, groups in found.items()}


def _nothing(name: str) -> GroupScores:
    return GroupScores(
        name=name, root_score=None, root_sr=None, leaf_sr=None, n=0, n_units=0, leaves=0, n_leaves=0
    )


def _curve(roots: int, leaves: int, passed: Sequence[int]) -> Iterator[CurvePoint]:
    for place, threshold in enumerate(THRESHOLDS):
        yield CurvePoint(
            threshold=threshold,
            leaf_sr=percent(passed[len(THRESHOLDS) + place] or 0, leaves),
            root_sr=percent(passed[place], roots),
        )


def _exported(
    name: str, dataset: str, manifest: str, scores: str, judges: tuple[JudgeScores, ...]
) -> ExportedRun:
    held = RunManifest.model_validate_json(manifest)
    if dataset == "atomic":
        return ExportedRun(name, held, RunScores.model_validate_json(scores))
    pooled = WorkflowScores.model_validate_json(scores)
    return ExportedRun(name, held, pooled.model_copy(update={"judges": judges}))
