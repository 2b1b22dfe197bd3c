"""A Workflow run whose rows are in files gives what one gives that lists them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

import gta_bench
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.checks import CHECK, FileExists
from gta_bench.records.judges import JudgeEntry
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint
from gta_bench.runs import scoring, tables, verdicts
from gta_bench.runs.directory import (
    RESULTS,
    SCORES,
    read_workflow_scores,
    write_manifest,
)
from gta_bench.runs.imported import write_imported
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.tables import StoredRows
from gta_bench.runs.verdicts import (
    VERDICTS,
    StoredVerdicts,
    append_verdicts,
    read_verdicts,
    record_judge,
)
from gta_bench.settings import Settings
from tests.metrics.test_comparability import manifest
from tests.metrics.workflow_units import SEVEN, rows, unit
from tests.runs.test_long_runs import command

GATE = (FileExists(check="file.exists", file="a.csv"),)
CHECKED = (
    Checkpoint(id="a1", checks=GATE, by="check", requirements="a file"),
    Checkpoint(id="a2", checks=GATE, by="check-then-judge"),
    Checkpoint(id="b", weight=0.3),
)
TASKS, EPOCHS = ("1", "2", "3", "4"), 3
PANEL = Settings.model_validate({"judge": {"panel": "mean"}})


def units() -> list[WorkflowUnit]:
    """Task 2 has checks, task 3 is not delivered in epoch 2, and epoch 3 of task 4 is not run."""
    found = []
    for name in TASKS:
        for epoch in range(1, EPOCHS + 1):
            calls = [{"tool": "OCR", "status": "done", "seconds": 0.1 * epoch}] * (epoch % 3)
            made = unit(name, epoch=epoch, calls=calls, delivered=(name, epoch) != ("3", 2))
            if name == "2":
                task = made.task.model_copy(update={"checkpoints": CHECKED, "category": None})
                made = made.model_copy(update={"task": task})
            found.append(made)
    return found[:-1]


def said(shift: int) -> list[VerdictRow]:
    """Two judges, one of them twice, not unit by unit, some of it later and without a score."""
    found: list[VerdictRow] = []
    for judge, repeats in (("k", 1), ("j", 2)):
        for repeat in range(1, repeats + 1):
            for epoch in (2, 1, 3):
                for name in ("3", "1", "gone", "2", "4"):
                    values: dict[str, float | str] = {
                        leaf: (int(f"{epoch}{repeat}{place}") * 7 + shift + len(judge)) % 101 / 10
                        for place, leaf in enumerate(("a1", "a2", "b"))
                    }
                    if (name, epoch, repeat) == ("4", 2, 2):
                        values["b"] = "timeout"
                    given = rows(
                        values, name, judge=judge, repeat=repeat, evidence=f"{name}-{epoch}",
                        prompts="p", input_tokens=epoch, output_tokens=2, cost_usd=0.1 * epoch,
                    )  # fmt: skip
                    found += [at_epoch(one, epoch) for one in given]
    later = rows({"a1": "timeout"}, "1", judge="k", evidence="1-1", prompts="p")
    again = rows({"b": 3.3}, "4", judge="j", repeat=2, evidence="other", prompts="p")
    checks = [
        at_epoch(one, epoch)
        for epoch in (1, 2, 3)
        for one in rows({"a1": 10, "a2": 10.0 * (epoch % 2)}, "2", judge=CHECK)
    ]
    return [*found, *later, *(at_epoch(one, 2) for one in again), *checks]


def at_epoch(row: VerdictRow, epoch: int) -> VerdictRow:
    return row.model_copy(update={"key": row.key.model_copy(update={"epoch": epoch})})


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(tmp_path)
    held = manifest(tasks=TASKS, epochs=EPOCHS)
    for number, name in enumerate(("one", "two")):
        Path(name).mkdir()
        write_manifest(Path(name), held)
        write_imported(Path(name), held, units())
        append_verdicts(Path(name), said(shift=13 * number))
    return "one", "two"


def make_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "LONGEST", 0)
    monkeypatch.setattr(tables, "FILE_ROWS", 5)
    monkeypatch.setattr(tables, "READ_ROWS", 2)


def everything(runs: tuple[str, str], out: str) -> dict[str, object]:
    """All that is made of two runs, from scores to tables."""
    given = [score_workflow_run(Path(run), PANEL).model_dump() for run in runs]
    page = gta_bench.report(f"{out}.html", *runs)
    gta_bench.export(out, *runs)
    read = {
        table: duckdb.execute(f"FROM '{out}/{table}/*.parquet' ORDER BY ALL").fetchall()
        for table in tables.TABLES
    }
    found = [read_workflow_scores(Path(run)).model_dump() for run in runs]
    assert found == given
    return {
        "scores": found,
        "markdown": command("report", "--format", "markdown", *runs),
        "json": command("report", "--format", "json", *runs),
        "trees": [command("report", "--task", name, runs[0]) for name in ("2", "all")],
        "page": page.read_text(encoding="utf-8"),
        "compare": command("compare", "--json", *runs),
        "tables": read,
    }


def test_both_ways_give_the_same_scores_page_comparison_and_tables(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = everything(runs, "listed")
    assert not Path(runs[0], RESULTS).exists()
    make_long(monkeypatch)
    stored = everything(runs, "stored")
    totals = json.loads(Path(runs[1], SCORES).read_bytes())["judges"]
    assert [one["judge"] for one in totals] == ["j", "k", "panel, mean of j and k"]
    assert all(one["tasks"] == one["failures"] == [] for one in totals)
    files = sorted(file.name for file in Path(runs[1], RESULTS, "units").iterdir())
    assert files == [f"{n:05}.parquet" for n in range(1, -(-11 * len(totals) // 5) + 1)]
    for name, found in listed.items():
        assert stored[name] == found, name
    monkeypatch.setattr(verdicts, "LONGEST", 2**20)
    again = [score_workflow_run(Path(run), PANEL).model_dump() for run in runs]
    assert again == listed["scores"]
    assert not Path(runs[0], RESULTS).exists()


def test_many_units_make_a_long_run_too(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = score_workflow_run(Path(runs[0]), Settings())
    monkeypatch.setattr(scoring, "LISTED", len(TASKS) * EPOCHS - 1)
    stored = score_workflow_run(Path(runs[0]), Settings())
    tasks = stored.judges[0].tasks
    assert isinstance(tasks, StoredRows) and len(tasks) == len(units())
    assert stored.model_dump() == listed.model_dump()


def test_rows_on_what_is_no_longer_in_the_run_count_as_spent(runs: tuple[str, str]) -> None:
    """The sums are those of all rows at once, whatever the order of units."""
    given = read_verdicts(Path(runs[0])).values()
    scores = score_workflow(units(), reversed([*given]), thresholds=SEVEN, not_run=[("4", 3)])
    assert scores == score_workflow_run(Path(runs[0]), Settings())
    gone = [row for row in given if row.key.task == "gone" and row.key.judge == "j"]
    (table,) = (one for one in scores.judges if one.judge == "j")
    assert gone and table.usage.input_tokens > sum(row.input_tokens for row in gone)


def test_stored_verdicts_are_a_mapping(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = read_verdicts(Path(runs[0]))
    make_long(monkeypatch)
    stored = read_verdicts(Path(runs[0]))
    assert isinstance(stored, StoredVerdicts) and isinstance(listed, dict)
    assert dict(stored) == dict(stored.items()) == listed
    assert len(stored) == len(listed) == len([*stored.values()])
    key = next(iter(stored))
    assert stored[key] == listed[key] and key in stored
    assert VerdictKey(task="1", leaf="none", judge="j") not in stored
    assert VerdictKey(task="none", leaf="a1", judge="j") not in stored
    assert gta_bench.verdicts(runs[0]) == listed


def test_a_broken_line_of_a_long_run_is_named(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_long(monkeypatch)
    file = Path(runs[0], VERDICTS)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"key": {"task"')
    assert len(read_verdicts(Path(runs[0]))) == len(read_verdicts(Path(runs[1])))
    file.write_bytes(b"{}\n" + whole)
    with pytest.raises(gta_bench.GtaError, match="line 1: not a verdict"):
        read_verdicts(Path(runs[0]))


def test_a_judge_that_was_asked_has_a_table_in_a_long_run(
    runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    about = {"model": "m", "digest": "d", "options": {}, "prompts": "p", "first": now, "last": now}
    record_judge(Path(runs[0]), JudgeEntry.model_validate({"name": "silent", **about}))
    listed = score_workflow_run(Path(runs[0]), Settings())
    make_long(monkeypatch)
    assert [one.judge for one in listed.judges] == ["j", "k", "silent"]
    assert score_workflow_run(Path(runs[0]), Settings()).model_dump() == listed.model_dump()
