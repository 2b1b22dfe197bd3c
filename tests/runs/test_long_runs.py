"""A run whose rows are in files gives what one gives that lists them in `scores.json`."""

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import gta_bench
from gta_bench.cli import app
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
