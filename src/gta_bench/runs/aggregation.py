"""Reads exported runs back as scores: DuckDB pools verdict rows, which never become objects.

The figures equal those of `metrics.workflow_scores`, up to the last digits of a sum.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import duckdb

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.metrics.counts import JudgedCounts
from gta_bench.metrics.strict.workflow import ROUNDING, THRESHOLDS, curve_point, group_scores
from gta_bench.metrics.table import ROOT_SCORE
from gta_bench.metrics.workflow_scores import NO_CATEGORY, NOT_DELIVERED, NOT_JUDGED
from gta_bench.records.cost import Cost
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import (
    CompatScore,
    CurvePoint,
    GroupScores,
    JudgeScores,
    WorkflowScores,
)
from gta_bench.runs.store import StorePath, explain_store_errors
from gta_bench.runs.tables import connect_database, quote_path

_ROOT_CURVE = ", ".join(f"count(*) FILTER (root >= {end - ROUNDING!r})" for end in THRESHOLDS)
_LEAF_CURVE = ", ".join(f"count(*) FILTER (value >= {end - ROUNDING!r})" for end in THRESHOLDS)

# `read_cost` as a condition: something was asked, and its price is unknown.
UNPRICED = """
cost_usd IS NULL
AND (value IS NOT NULL OR coalesce(input_tokens, 0) + coalesce(output_tokens, 0) > 0)
"""
JUDGES = f"""
CREATE TEMP TABLE judges AS
SELECT * FROM (
    SELECT run, judge, max(repeat) AS repeats, sum(input_tokens) AS input_tokens,
           sum(output_tokens) AS output_tokens, sum(cost_usd) AS known_usd,
           bool_or({UNPRICED}) AS unpriced
    FROM verdicts GROUP BY run, judge
) JOIN (SELECT run, leaf_threshold, root_threshold FROM runs) USING (run)
"""
# The one pass over all verdicts: a leaf has the mean of its repeats if all of them gave a score.
# Verdicts on a unit that failed are ignored.
LEAVES = """
CREATE TEMP TABLE leaf AS
SELECT run, judge, task, epoch, weight, compat_weight, present, leaf_threshold,
       CASE WHEN n = repeats THEN value / repeats END AS value,
       CASE WHEN compat_n = repeats THEN compat / repeats END AS compat
FROM (
    SELECT run, judge, task, epoch, any_value(weight) AS weight,
           any_value(compat_weight) AS compat_weight, count(*) AS present,
           count(value) AS n, sum(value) AS value,
           count(coalesce(compat, value)) AS compat_n, sum(coalesce(compat, value)) AS compat
    FROM verdicts GROUP BY run, judge, task, epoch, leaf
) JOIN judges USING (run, judge)
ANTI JOIN (
    SELECT run, task, epoch FROM samples
    WHERE failure IS NOT NULL OR list_contains(kinds, $not_delivered)
) USING (run, task, epoch)
"""
# Missing deliverables fail under strict, and have no score under compat.
NOT_DELIVERED_LEAVES = """
INSERT INTO leaf
SELECT run, judge, task, epoch, 1.0 / leaves, NULL, repeats, leaf_threshold, 0.0, NULL
FROM (SELECT *, unnest(range(leaves)) FROM samples
      WHERE failure IS NULL AND list_contains(kinds, $not_delivered)) JOIN judges USING (run)
"""
# A unit has a root if all its leaves have a score; units that no judge saw are included, too.
UNITS = f"""
CREATE TEMP TABLE units AS
WITH judged AS (
    SELECT run, judge, task, epoch, count(value) AS scored, count(compat) AS compat_scored,
           sum(weight * value) AS root, count(weight) AS weighted,
           sum(compat_weight * compat) AS compat, sum(present) AS present,
           count(*) FILTER (value >= leaf_threshold - {ROUNDING!r}) AS passed
    FROM leaf GROUP BY run, judge, task, epoch
)
SELECT judges.run, judges.judge, coalesce(samples.category, '{NO_CATEGORY}') AS category,
       samples.kinds, samples.tool_categories, samples.leaves AS leaves, samples.failure,
       root_threshold, coalesce(scored, 0) AS scored, coalesce(passed, 0) AS passed,
       repeats * samples.leaves - coalesce(present, 0) AS unasked,
       CASE WHEN scored = samples.leaves AND weighted = scored THEN judged.root END AS root,
       CASE WHEN compat_scored = samples.leaves THEN judged.compat END AS compat
FROM judges JOIN samples ON samples.run = judges.run
LEFT JOIN judged ON judged.run = judges.run AND judged.judge = judges.judge
     AND judged.task = samples.task AND judged.epoch = samples.epoch
"""
# The fields of `JudgedCounts`, then the units and all their leaves.
COUNTED = f"""
count(root), coalesce(sum(root), 0), count(*) FILTER (root >= root_threshold - {ROUNDING!r}),
sum(scored), sum(passed), count(*), sum(leaves)
"""
CAUSES = f"""
SELECT DISTINCT run, judge, cause FROM verdicts WHERE cause IS NOT NULL
UNION SELECT run, judge, failure FROM units WHERE failure IS NOT NULL
UNION SELECT run, judge, '{NOT_JUDGED}' FROM units WHERE failure IS NULL AND unasked > 0
"""
CURVES = f"SELECT run, judge, count(value), {_LEAF_CURVE} FROM leaf GROUP BY run, judge"
TOTALS = f"""
SELECT run, judge, any_value(repeats), count(compat), coalesce(sum(compat), 0),
       any_value(input_tokens),
       any_value(output_tokens), any_value(known_usd), any_value(unpriced), count(root),
       {_ROOT_CURVE}
FROM units JOIN judges USING (run, judge) GROUP BY run, judge ORDER BY run, judge
"""


class ExportedRun(NamedTuple):
    """An exported run with its pooled scores; units and leaves stay in the tables."""

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores


def read_export(folder: StorePath) -> list[ExportedRun]:
    """Read all exported runs, in the order in which they were exported."""
    with explain_store_errors(folder), connect_database(folder) as connection:
        for table in ("runs", "samples", "verdicts"):
            if any((folder / table).glob("*.parquet")):
                files = quote_path(folder / table / "*.parquet")
                connection.execute(f"CREATE VIEW {table} AS FROM {files}")
        judges = judge_scores(connection) if (folder / "verdicts").is_dir() else {}
        rows = connection.execute("SELECT run, dataset, manifest, scores FROM runs").fetchall()
    found = []
    for name, dataset, manifest, scores in rows:
        pooled: RunScores | WorkflowScores
        if dataset == "atomic":
            pooled = RunScores.model_validate_json(scores)
        else:
            pooled = WorkflowScores.model_validate_json(scores)
            pooled = pooled.model_copy(update={"judges": judges.get(name, ())})
        found.append(ExportedRun(name, RunManifest.model_validate_json(manifest), pooled))
    return found


def judge_scores(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[JudgeScores, ...]]:
    """Compute every judge's scores of every run from the views `runs`, `samples`, `verdicts`."""
    kind = {"not_delivered": NOT_DELIVERED}
    connection.execute(JUDGES)
    connection.execute(LEAVES, kind)
    connection.execute(NOT_DELIVERED_LEAVES, kind)
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
    curves = {row[:2]: row[2:] for row in connection.execute(CURVES).fetchall()}
    found: dict[str, list[JudgeScores]] = {}
    for row in connection.execute(TOTALS).fetchall():
        key = (row[0], row[1])
        whole = groups["'all'"][key][0]
        called: dict[str, GroupScores] = {
            name: group_scores(name, JudgedCounts(), n_units=0, n_leaves=0) for name in CATEGORIES
        }
        called |= {group.name: group for group in groups["called"].get(key, ())}
        found.setdefault(row[0], []).append(
            JudgeScores(
                judge=row[1],
                repeats=row[2],
                strict=whole.model_copy(update={"n_units": whole.n_units + missing[row[0]]}),
                compat=CompatScore(
                    root_score=ROOT_SCORE.compat_value(JudgedCounts(*row[3:5])), n=row[3]
                ),
                categories=groups["category"][key],
                kinds=groups["kind"].get(key, ()),
                tool_categories=tuple(called.values()),
                curve=tuple(_curve(row[9:], curves.get(key, (0,) * 12))),
                usage=Usage(
                    input_tokens=row[5] or 0,
                    output_tokens=row[6] or 0,
                    cost_usd=Cost(known=row[7], unknown=row[8]).total,
                ),
                tasks=(),
                causes=tuple(sorted(causes.get(key, ()))),
            )
        )
    return {run: tuple(judges) for run, judges in found.items()}


def _groups(
    connection: duckdb.DuckDBPyConnection, by: str, source: str
) -> dict[tuple[str, str], tuple[GroupScores, ...]]:
    found: dict[tuple[str, str], list[GroupScores]] = {}
    query = f"SELECT run, judge, {by} AS name, {COUNTED} FROM {source} GROUP BY ALL ORDER BY ALL"
    for run, judge, name, *counts, units, leaves in connection.execute(query).fetchall():
        found.setdefault((run, judge), []).append(
            group_scores(name, JudgedCounts(*counts), n_units=units, n_leaves=leaves)
        )
    return {key: tuple(groups) for key, groups in found.items()}


def _curve(roots: Sequence[int], leaves: Sequence[int]) -> Iterator[CurvePoint]:
    """Yield the success rates at each threshold.

    Both arguments have how many were scored, then how many reach each threshold.
    """
    for number, threshold in enumerate(THRESHOLDS, start=1):
        counts = JudgedCounts(
            roots=roots[0],
            roots_passed=roots[number],
            leaves=leaves[0],
            leaves_passed=leaves[number],
        )
        yield curve_point(threshold, counts)
