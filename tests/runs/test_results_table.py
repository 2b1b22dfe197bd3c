"""Runs as tables: documented columns, the newest verdicts, and scores that follow from them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gta_bench.errors import RunError
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.aggregation import read_export
from gta_bench.runs.directory import write_manifest, write_scores
from gta_bench.runs.imported import write_imported
from gta_bench.runs.results_table import export_results
from gta_bench.runs.tables import TABLES
from gta_bench.runs.verdicts import VERDICTS, append_verdicts, read_verdicts
from tests.conftest import REPOSITORY
from tests.metrics.test_comparability import manifest
from tests.metrics.workflow_units import SEVEN, rows, unit

FIRST = {"a1": 9.0, "a2": 3.0, "b": 7.0}
SECOND = {"a1": 10.0, "a2": 8.0, "b": 7.0}
OTHER = "e" * 64


def weightless(name: str) -> WorkflowUnit:
    """A task in which one checkpoint's leaves weigh nothing: it has no strict root."""
    made = unit(name)
    none = Checkpoint(
        id="a", children=(Checkpoint(id="a1", weight=0), Checkpoint(id="a2", weight=0))
    )
    tree = (none, Checkpoint(id="b"))
    return made.model_copy(update={"task": made.task.model_copy(update={"checkpoints": tree})})


UNITS = (
    unit("1", calls=[{"tool": "OCR", "status": "done", "seconds": 1}]),
    unit("2", deliverables=[{"path": "a.PDF", "digest": "0" * 64, "size": 1}]),
    unit("3"),
    weightless("4"),
    unit("5"),
    unit("6", delivered=False),
)
ROWS = (
    *rows(FIRST, "1", input_tokens=5, output_tokens=2, cost_usd=0.5),
    *rows(SECOND, "1", repeat=2),
    *rows({**FIRST, "b": "timeout"}, "2", compat=1.0),
    *rows(SECOND, "2", repeat=2),
    *rows(FIRST, "3"),
    *rows(FIRST, "4"),
    *rows(SECOND, "4", repeat=2),
    *rows(SECOND, "1", judge="k"),
    # A score outlasts the lack of one on the same evidence, and not on another.
    *rows({"a1": "timeout"}, "1"),
    *rows({"a1": "timeout"}, "2", repeat=2, evidence=OTHER),
    *rows({"a2": "refused"}, "2", repeat=2, evidence=OTHER),
    *rows({"a2": "timeout"}, "2", repeat=2),
    *rows({"b": 1.0}, "4", repeat=2),
    # A judge that was asked about what was not delivered.
    *rows(SECOND, "6"),
    *rows(SECOND, "6", repeat=2),
)


def stored(run: Path, verdicts: Sequence[VerdictRow] = ROWS) -> Path:
    """A Workflow run with these verdicts, of which task 9 was not run yet."""
    held = manifest(tasks=("1", "2", "3", "4", "5", "6", "9"))
    run.mkdir()
    write_manifest(run, held)
    write_imported(run, held, UNITS)
    append_verdicts(run, verdicts)
    return run


def scored(run: Path) -> WorkflowScores:
    return score_workflow(UNITS, read_verdicts(run).values(), thresholds=SEVEN, not_run=[("9", 1)])


def export(run: Path, out: Path, **options: Any) -> Path:
    export_results([run], out, thresholds=SEVEN, **options)
    return out


def asked(query: str) -> list[Any]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def close(found: Any, expected: Any) -> bool:
    """Equal, floats to the last digits of a sum."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            close(found[key], expected[key]) for key in expected
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, rel=1e-12))
    return bool(found == expected)


def test_pooled_scores_follow_from_the_tables(tmp_path: Path) -> None:
    run = stored(tmp_path / "run")
    [found] = read_export(export(run, tmp_path / "out"))
    expected = scored(run)
    assert found.name == str(run)
    assert isinstance(found.scores, WorkflowScores)
    lost = {"judges": {"__all__": {"tasks", "failures"}}}
    assert [judge.judge for judge in expected.judges] == ["j", "k"]
    assert expected.judges[0].strict.n == 2
    both = [one.model_dump(mode="json", exclude=lost) for one in (found.scores, expected)]
    assert close(*both), both


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"b": "timeout"}, 1.0),
        ({"b": 5.0}, None),
    ],
)
def test_the_cost_of_a_judge_is_unknown_from_the_tables_where_it_is_from_the_run(
    tmp_path: Path, more: dict[str, float | str], expected: float | None
) -> None:
    priced = rows({"a1": 8.0, "a2": 8.0}, input_tokens=5, cost_usd=0.5)
    run = stored(tmp_path / "run", [*priced, *rows(more)])
    [found] = read_export(export(run, tmp_path / "out"))
    assert isinstance(found.scores, WorkflowScores)
    for scores in (found.scores, scored(run)):
        assert [judge.usage.cost_usd for judge in scores.judges] == [expected]


def test_verdict_rows_are_the_newest_as_reading_gives_them(tmp_path: Path) -> None:
    run = stored(tmp_path / "run")
    out = export(run, tmp_path / "out")
    query = f"SELECT task, leaf, judge, repeat, value, cause FROM '{out}/verdicts/*.parquet'"
    found = {row[:4]: row[4:] for row in asked(query)}
    expected = {
        (key.task, key.leaf, key.judge, key.repeat): (
            getattr(row.verdict, "value", None),
            getattr(row.verdict, "cause", None),
        )
        for key, row in read_verdicts(run).items()
    }
    assert found == expected
    assert found["1", "a1", "j", 1] == (9.0, None)
    assert found["2", "a1", "j", 2] == (None, "timeout")


def test_a_half_written_last_line_is_left_out_and_any_other_is_told(tmp_path: Path) -> None:
    run = stored(tmp_path / "run")
    whole = (run / VERDICTS).read_bytes()
    (run / VERDICTS).write_bytes(whole + b'{"key": {"task"')
    out = export(run, tmp_path / "one")
    [(count,)] = asked(f"SELECT count(*) FROM '{out}/verdicts/*.parquet'")
    assert count == len(read_verdicts(run))
    (run / VERDICTS).write_bytes(whole.rstrip(b"\n"))
    export(run, tmp_path / "two")
    (run / VERDICTS).write_bytes(b"{broken\n" + whole)
    with pytest.raises(RunError, match=r"verdicts\.jsonl cannot be read"):
        export(run, tmp_path / "three")


@pytest.mark.parametrize("shape", ["parquet", "csv"])
def test_the_tables_have_the_documented_columns(tmp_path: Path, shape: str) -> None:
    run = stored(tmp_path / "run")
    write_scores(run, scored(run))
    out = export(run, tmp_path / "out", shape=shape)
    for table, columns in TABLES.items():
        described = asked(f"DESCRIBE FROM '{out}/{table}/*.{shape}'")
        assert [row[0] for row in described] == [column.name for column in columns]
        if shape == "parquet":
            assert [row[1] for row in described] == [column.type for column in columns]
    [(failures,)] = asked(f"SELECT count(*) FROM '{out}/failures/*.{shape}'")
    assert failures == sum(len(judge.failures) for judge in scored(run).judges)


def test_text_in_csv_is_no_formula(tmp_path: Path) -> None:
    run = stored(tmp_path / "run")
    scores = scored(run)
    (judge, *_) = scores.judges
    bad = judge.failures[0].model_copy(update={"detail": "=1+1", "place": "\tx"})
    worse = bad.model_copy(update={"detail": "it's -1", "place": "@x"})
    changed = judge.model_copy(update={"failures": (bad, worse)})
    write_scores(run, scores.model_copy(update={"judges": (changed,)}))
    query = "SELECT place, detail, epoch FROM read_csv('{}/failures/*.csv', all_varchar = true)"
    text = asked(query.format(export(run, tmp_path / "text", shape="csv")))
    assert text == [("'\tx", "'=1+1", "1"), ("'@x", "it's -1", "1")]
    kept = export(run, tmp_path / "kept")
    [(first, _), _] = asked(f"SELECT detail, place FROM '{kept}/failures/*.parquet'")
    assert first == "=1+1", "Parquet keeps text as it is"


def test_the_page_of_columns_has_all_of_them() -> None:
    page = (REPOSITORY / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    for table, columns in TABLES.items():
        section = page.partition(f"## `{table}`")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
            column.name for column in columns
        ]


def test_a_run_without_verdicts_and_a_folder_in_use(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", ())
    (run / VERDICTS).unlink()
    out = export(run, tmp_path / "out")
    [found] = read_export(out)
    assert isinstance(found.scores, WorkflowScores)
    assert (found.scores.n, found.scores.n_units, found.scores.judges) == (6, 7, ())
    with pytest.raises(RunError, match="is not empty"):
        export(run, out)


def test_figures_are_stored_with_the_manifest(tmp_path: Path) -> None:
    out = export(stored(tmp_path / "run"), tmp_path / "out")
    [row] = asked(f"SELECT model, n, n_units, manifest FROM '{out}/runs/*.parquet'")
    assert row[:3] == ("m", 6, 7)
    assert json.loads(row[3])["dataset_digest"] == "d" * 64
