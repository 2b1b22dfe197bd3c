"""`gta judge attack` and `gta judge floor` with judges that need no key."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.judge_quality.judge_runs import NULLS
from gta_bench.runs.directory import FLOOR, read_floors
from tests.judging.builders import task
from tests.judging.stored import stored_run


def gta(*command: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, command)])


def test_attacks_and_drift_are_reported_together_and_nothing_is_asked_twice(
    tmp_path: Path,
) -> None:
    run = str(tmp_path / "run")
    command = ["judge", "attack", "--judge", "scripted/evaluator", "--out", run]
    command += ["--carrier", "text", "--carrier", "answer"]
    result = gta(*command)
    assert result.exit_code == 0, result.output
    heading, *rows = result.stdout.splitlines()
    assert heading.split("  ")[0] == "judge"
    cells = [re.split(r"  +", row.strip()) for row in rows]
    assert [row[1:4] for row in cells] == [
        ["none", "failing", "2 of 10"],
        ["none", "borderline", "1 of 2"],
        ["all", "failing", "0 of 10"],
        ["all", "borderline", "0 of 2"],
    ]
    # Two carriers are few, and a scripted judge says the same each time.
    assert cells[0][4].startswith("20.00 (") and cells[0][5].startswith("0.00 (0.00 to ")
    assert "a defense stops it by construction" in result.stderr
    size = (tmp_path / "run" / "verdicts.jsonl").stat().st_size
    again = gta(*command, "--json")
    assert (tmp_path / "run" / "verdicts.jsonl").stat().st_size == size
    found = json.loads(again.stdout)
    assert [row["defenses"] for row in found] == ["none", "none", "all", "all"]
    assert all("by construction" in row["note"] and row["repeats"] == 2 for row in found)
    came = {(one["carrier"], one["payload"]) for one in found[0]["outcomes"] if one["succeeded"]}
    assert came == {("text", "evaluator"), ("answer", "evaluator")}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--carrier", "audio", "--payload", "frame"], "No --carrier given can carry"),
        (["--judge-visibility", "upstream"], "Attacks are judged on all evidence"),
    ],
)
def test_what_cannot_be_attacked_is_refused(tmp_path: Path, options: list[str], words: str) -> None:
    result = gta("judge", "attack", "--judge", "scripted/honest", "--out", tmp_path, *options)
    assert words in str(result.exception)


def test_an_unknown_scripted_judge_is_named(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", [task("1")], {"notes.txt": b"All is well."})
    result = gta("score", run, "--judge", "scripted/wise")
    assert "Known judges: honest" in str(result.exception)


def test_systems_that_do_nothing_have_rows_in_every_report(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", [task("1"), task("2")], {"notes.txt": b"Nothing to add."})
    assert gta("score", run, "--judge", "scripted/honest").exit_code == 0
    result = gta("judge", "floor", run, "--judge", "scripted/honest")
    assert result.exit_code == 0, result.output
    rows = read_floors(run).rows
    assert [row.system for row in rows] == list(NULLS)
    assert all(row.root_score is not None and row.root_score < 1 for row in rows)
    report = gta("report", run)
    for system in NULLS:
        assert f"floor: {system}" in report.stdout
    assert "systems that do nothing: empty 0.00" in report.stderr
    assert len(json.loads(gta("report", run, "--format", "json").stdout)[0]["floors"]) == 4
    page = tmp_path / "page.html"
    assert gta("report", run, "--html", page).exit_code == 0
    assert "floor, by scripted/honest" in page.read_text(encoding="utf-8")
    again = gta("judge", "floor", run, "--judge", "scripted/honest", "--json")
    assert len(json.loads(again.stdout)) == 4
    (run / FLOOR).write_text("{", encoding="utf-8")
    assert "floor.json: 1 field cannot be read" in str(gta("report", run).exception)


def test_the_floor_of_a_run_that_grew_has_the_new_tasks_too(tmp_path: Path) -> None:
    files = {"notes.txt": b"Nothing to add."}
    run = stored_run(tmp_path / "run", [task("1")], files)
    floor = ("judge", "floor", run, "--judge", "scripted/honest")
    assert gta(*floor).exit_code == 0
    assert {row.n_units for row in read_floors(run).rows} == {1}
    stored_run(run, [task("1"), task("2")], files)
    assert gta(*floor).exit_code == 0
    assert {(row.n, row.n_units) for row in read_floors(run).rows} == {(2, 2)}
