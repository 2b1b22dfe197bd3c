"""A run whose rows are in files gives what one gives that lists them in `scores.json`."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import duckdb
import pytest
from click.testing import CliRunner

import gta_bench
from gta_bench.cli import app
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.table import score_metrics
from gta_bench.records.failures import Failure, FailureCause
from gta_bench.records.run import RunMode
from gta_bench.records.scores import (
    Category,
    CategoryCounts,
    StrictEndToEndCounts,
    StrictStepCounts,
    UnitScore,
)
from gta_bench.reports.estimates import make_atomic_parts
from gta_bench.reports.summary import first_examples
from gta_bench.running.system_run import execute
from gta_bench.runs import scoring, tables
from gta_bench.runs.directory import RESULTS, SCORES, read_scores
from gta_bench.runs.tables import StoredRows
from tests.builders import atomic_task, write_atomic
from tests.planning import planned

TASKS, EPOCHS = 4, 3


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(tmp_path)
    data = write_atomic(tmp_path / "data", {str(n): atomic_task() for n in range(TASKS)})
    for agent in ("gold", "silent"):
        execute(
            *planned(data, "step", agent=agent, epochs=EPOCHS), tmp_path / agent, lambda _: None
        )
    return "gold", "silent"


def command(*arguments: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code in (0, 1), done.output
    return done.stdout


def everything(runs: tuple[str, str], out: str) -> dict[str, object]:
    """All that is made of two runs, from scores to tables."""
    for run in runs:
        gta_bench.score(run, settings={"scoring.similarity": "exact-or-half"})
    page = gta_bench.report(f"{out}.html", *runs)
    gta_bench.export(out, *runs)
    read = {
        table: duckdb.execute(f"FROM '{out}/{table}/*.parquet' ORDER BY ALL").fetchall()
        for table in ("runs", "samples", "failures")
    }
    return {
        "scores": [read_scores(Path(run)).model_dump() for run in runs],
        "table": command("report", *runs),
        "markdown": command("report", "--format", "markdown", *runs),
        "json": command("report", "--format", "json", *runs),
        "page": page.read_text(encoding="utf-8"),
        "compare": command("compare", "--json", *runs),
        "tables": read,
    }


def test_both_ways_give_the_same_scores_page_comparison_and_tables(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = everything(runs, "listed")
    assert not (Path(runs[0]) / RESULTS).exists()
    monkeypatch.setattr(scoring, "LISTED", 0)
    monkeypatch.setattr(tables, "FILE_ROWS", 5)
    monkeypatch.setattr(tables, "READ_ROWS", 2)
    stored = everything(runs, "stored")
    totals = json.loads((Path(runs[1]) / SCORES).read_bytes())
    assert totals["units"] == [] and totals["failures"] == [] and totals["n"] == TASKS * EPOCHS
    files = sorted(file.name for file in Path(runs[1], RESULTS, "units").iterdir())
    assert files == ["00001.parquet", "00002.parquet", "00003.parquet"]
    for name, found in listed.items():
        assert stored[name] == found, name
    monkeypatch.setattr(scoring, "LISTED", TASKS * EPOCHS)
    assert everything(runs, "again")["scores"] == listed["scores"]
    assert not (Path(runs[0]) / RESULTS).exists()


def test_stored_rows_are_a_sequence(runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "LISTED", 0)
    gta_bench.score(runs[0], settings={"scoring.similarity": "exact-or-half"})
    units = read_scores(Path(runs[0])).units
    assert isinstance(units, StoredRows)
    assert len(units) == len([*units]) == TASKS * EPOCHS
    assert units[0] == units[-len(units)] == next(iter(units))
    assert units[1:3] == [*units][1:3]
    with pytest.raises(IndexError):
        units[len(units)]
    failures = read_scores(Path(runs[0])).failures
    assert len(failures) == 0 and not [*failures]


def test_a_run_whose_scoring_was_interrupted_has_no_scores(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one scoring must not be read with the totals of another."""
    gta_bench.score(runs[0], settings={"scoring.similarity": "exact-or-half"})
    monkeypatch.setattr(scoring, "LISTED", 0)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scoring, "scored_row", stop)
    with pytest.raises(KeyboardInterrupt):
        gta_bench.score(runs[0], settings={"scoring.similarity": "exact-or-half"})
    with pytest.raises(gta_bench.GtaError, match="has no scores yet"):
        read_scores(Path(runs[0]))


def test_a_run_with_missing_or_damaged_files_of_rows_is_refused(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Totals in `scores.json` must not stand beside figures from a part of the rows."""
    monkeypatch.setattr(scoring, "LISTED", 0)
    monkeypatch.setattr(tables, "FILE_ROWS", 5)
    exact = {"scoring.similarity": "exact-or-half"}
    gta_bench.score(runs[0], settings=exact)
    parts = Path(runs[0], RESULTS, "units")
    (parts / "00002.parquet").unlink()
    refused = CliRunner().invoke(app, ["report", runs[0]])
    assert "has 7 of 12 rows" in str(refused.exception)
    assert "Run `gta score gold` again." in str(refused.exception)
    gta_bench.score(runs[0], settings=exact)
    (parts / "00002.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(gta_bench.GtaError, match=r"00002\.parquet.*Run `gta score gold` again"):
        read_scores(Path(runs[0]))


def test_two_commands_that_score_one_run_wait_for_each_other(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write the same files, and one removes what the other wrote."""
    monkeypatch.setattr(scoring, "LISTED", 0)
    monkeypatch.setattr(tables, "FILE_ROWS", 2)
    exact = {"scoring.similarity": "exact-or-half"}
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(gta_bench.score, runs[1], settings=exact) for _ in range(3)]
    assert [one.result().n for one in found] == [TASKS * EPOCHS] * 3
    assert len(read_scores(Path(runs[1])).units) == TASKS * EPOCHS
    assert [*Path(runs[1], RESULTS).rglob(".part-*")] == []


STEP = StrictStepCounts(
    inst_hits=1, inst_total=3, call_total=2, tool_hits=1, arg_hits=1, answer_total=1,
    answer_sum=0.3, tool_call=2, tool_call_error=0, predicted=True, arg_typed_sum=0.7, malformed=1,
)  # fmt: skip
END = StrictEndToEndCounts(
    answer_total=1, answer_sum=0.3, image_sum=0.5, answer_i_total=2, tool_call=2, tool_call_error=0,
    categories={
        name: CategoryCounts(gold=place, predicted=2 * place, hits=1)
        for place, name in enumerate(get_args(Category))
    },
    predicted=True, malformed=1,
)  # fmt: skip


@pytest.mark.parametrize(("mode", "counts"), [("step", STEP), ("end-to-end", END)])
def test_parts_are_the_same_from_columns_and_from_records(
    mode: RunMode,
    counts: StrictStepCounts | StrictEndToEndCounts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if a task is in two files, its epochs are in another order, or a file has no score."""
    monkeypatch.setattr(tables, "FILE_ROWS", 3)
    places = [("a", 1), ("a", 2), ("b", 2), ("b", 1), ("b", 3), ("a", 4), ("a", 3)]
    units = [
        UnitScore(
            task=task,
            epoch=epoch,
            strict=counts.model_copy(update={"answer_sum": 0.1 * place}),
            compat=None,
        )
        for place, (task, epoch) in enumerate(places)
    ]
    with tables.RowWriter(tmp_path, tables.TABLES["samples"]) as writer:
        for unit in units[:-1]:
            writer.add({"task": unit.task, "epoch": unit.epoch, **unit.counts()}, unit)
        for epoch in range(4, 7):  # a whole file of units without a score
            writer.add({"task": "c", "epoch": epoch, "failure": "no reply"}, None)
        last = units[-1]
        writer.add({"task": last.task, "epoch": last.epoch, **last.counts()}, last)
    names = [row.name for row in score_metrics(mode) if row.denominator is not None]
    found = make_atomic_parts(tables.StoredUnits(tmp_path), names)
    assert found == make_atomic_parts(units, names)
    assert [*found[names[0]]] == [*sorted(places[:2]), ("a", 3), ("a", 4), *sorted(places[2:5])]


def test_failures_in_files_are_counted_like_listed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FILE_ROWS", 2)
    causes: list[FailureCause] = ["format", "arguments", "infrastructure", "format", "format"]
    failures = [
        Failure(task=str(number % 2), epoch=number, place="task", cause=cause)
        for number, cause in enumerate(causes, 1)
    ]
    with tables.RowWriter(tmp_path, tables.TABLES["failures"]) as writer:
        for one in failures:
            writer.add(one.model_dump(), one)
    stored = tables.StoredFailures(tmp_path)
    assert [*stored] == failures
    assert count_failures(stored) == count_failures(failures)
    assert first_examples(stored) == first_examples(failures)
    assert [*stored.find_units("infrastructure")] == [("1", 3)]
