"""A task folder, finished work and no judge; then a judge, and edited checks."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import gta_bench
from gta_bench.cli import app
from gta_bench.records.checks import CHECK
from gta_bench.runs.verdicts import read_verdicts
from tests.authored import GOLD, TASK, write_task
from tests.content.conftest import jail

__all__ = ["jail"]
JUDGE = "scripted/honest"


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jail: object) -> Path:
    monkeypatch.chdir(tmp_path)
    write_task(Path("tasks"))
    work = Path("results/q3-sales")
    work.mkdir(parents=True)
    (work / "final.txt").write_text("South is weakest.")
    (work / "summary.csv").write_bytes(GOLD)
    assert gta("import", "folder", "results", "--data", "tasks", "--out", "run").exit_code == 0
    return Path("run")


def judged(run: Path) -> set[tuple[str, str]]:
    return {(key.leaf, key.judge) for key in read_verdicts(run)}


def test_leaves_are_decided_without_a_judge_and_only_the_others_are_asked(run: Path) -> None:
    first = gta("score", str(run), "--json")
    assert first.exit_code == 1 and "check: 2 leaves checked, 2 scored." in first.stderr
    (table,) = json.loads(first.stdout)["judges"]
    assert (table["judge"], table["strict"]["leaves"], table["strict"]["n_leaves"]) == (
        CHECK,
        2 - 1,
        3,
    )
    assert judged(run) == {("sums", CHECK), ("order", CHECK)}
    assert "checked" not in gta("score", str(run)).stderr

    second = gta("score", str(run), "--judge", JUDGE, "--no-preflight", "--json")
    assert second.exit_code == 0 and f"{JUDGE}: 2 leaves asked, 2 scored." in second.stderr
    assert judged(run) == {("sums", CHECK), ("order", CHECK), ("order", JUDGE), ("advice", JUDGE)}
    (table,) = json.loads(second.stdout)["judges"]
    leaves = {leaf["leaf"]: leaf for leaf in table["tasks"][0]["leaves"]}
    assert (leaves["sums"]["by"], leaves["sums"]["value"]) == (CHECK, 10)
    assert "by" not in leaves["advice"] and table["tasks"][0]["root"] is not None
    report = gta("report", str(run))
    assert "checks decided 1 of 3 leaves, without a model." in report.stderr
    assert f"{CHECK} and {JUDGE}" not in report.stdout, "a gate and its judge were compared"
    drift = gta("judge", "drift", str(run), str(run))
    assert f"{JUDGE} against {JUDGE}: 2 leaves" in drift.stderr, "checks are not a second judge"


def test_an_edited_check_is_decided_again_from_the_stored_files(run: Path) -> None:
    gta("score", str(run))
    Path("tasks/q3-sales/task.toml").write_text(TASK.replace("31877.20", "31877.25"))
    again = gta("score", str(run), "--data", "tasks", "--json")
    assert "1 of 1 unit kept, 1 leaf checked again; " in again.stderr
    assert "check: 1 leaf checked, 1 scored." in again.stderr
    (row,) = [one for key, one in read_verdicts(run).items() if key.leaf == "sums"]
    assert row.verdict.type == "scored" and row.verdict.value == 0
    assert row.verdict.reason == ("summary.csv > South, Revenue: found 31,877.2, wanted 31,877.25")


def test_the_api_decides_checks_too(run: Path) -> None:
    scores = gta_bench.score(run)
    assert scores.mode == "workflow" and scores.judges[0].checked == 1


def test_a_machine_without_a_jail_leaves_checks_unscored(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gta_bench.errors import ToolUnavailable
    from gta_bench.tools import equipment

    async def find_none(**_: object) -> None:
        raise ToolUnavailable("No jail works here.", fix="Install bubblewrap.")

    monkeypatch.setattr(equipment, "find_jail", find_none)
    found = gta("score", str(run))
    assert "check: 2 leaves checked, 0 scored." in found.stderr
    assert "No jail works here. Install bubblewrap." in found.stderr
    assert "checks decided" not in gta("report", str(run)).stderr
    causes = {row.verdict.cause for row in read_verdicts(run).values()}  # type: ignore[union-attr]
    assert causes == {"check_failed"}
