"""`gta judge list|bridge|drift|cascade` and `gta score --panel`, from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import GtaError
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.directory import read_manifest
from gta_bench.runs.verdicts import JUDGES, append_verdicts, has_verdicts, read_judges
from tests.chat_server import ChatServer, chat_server
from tests.judging.builders import asked, honest, names, task, verdict
from tests.judging.stored import settings_file, stored_run

TASKS = tuple(task(str(number), leaves=2) for number in range(1, 7))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored_run(tmp_path / "run", TASKS, {"notes.txt": b"Nothing to add.\n"})


@pytest.fixture
def server(loopback: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    with chat_server() as opened:
        opened.reply = honest
        yield opened


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def judged(run: Path, judge: str, *, shift: float = 0.0, cost: float | None = None) -> None:
    append_verdicts(
        run,
        [
            VerdictRow(
                key=VerdictKey(task=one.id, leaf=leaf.id, judge=judge),
                verdict=Scored(
                    value=min(
                        10.0,
                        (5 + int(one.id) + len(leaf.id)) % 9 + shift * (1 + int(one.id) % 3) / 2,
                    )
                ),
                cost_usd=cost,
            )
            for one in TASKS
            for leaf in one.leaves()
        ],
    )


def said(result: Result) -> str:
    assert isinstance(result.exception, GtaError), result.output
    return str(result.exception)


def test_a_judge_that_was_asked_is_in_the_registry_with_its_digest(
    run: Path, server: ChatServer
) -> None:
    config = settings_file(run.parent, server.url)
    for options in ([], ["--repeats", "2"], ["--no-inputs"]):
        asked = gta("--config", config, "score", run, "--judge", "local", *options)
        assert asked.exit_code == 0, asked.output
    first, second = read_judges(run).judges
    assert (first.name, second.name) == ("openai-api/local/m", "openai-api/local/m [inputs=off]")
    assert first.digest != second.digest
    assert first.prompts == second.prompts
    assert first.first <= first.last
    shown = gta("judge", "list", run)
    assert first.digest[:12] in shown.stdout
    assert json.loads(gta("judge", "list", run, "--json").stdout)[0]["digest"] == first.digest
    report = gta("report", run)
    assert "Judges of" in report.stdout, "two repeats say something of agreement"


def test_a_broken_registry_is_named(run: Path) -> None:
    (run / JUDGES).write_text("[]", encoding="utf-8")
    assert JUDGES in said(gta("judge", "list", run))


def test_a_bridge_set_has_the_works_and_no_verdicts(run: Path, tmp_path: Path) -> None:
    judged(run, "old")
    out = tmp_path / "bridge"
    made = gta("judge", "bridge", run, "--out", out, "--tasks", "4")
    assert made.exit_code == 0, made.output
    assert "8 leaves" in made.stderr
    assert len(read_manifest(out).spec.tasks) == 4
    assert not has_verdicts(out)
    assert "is not empty" in said(gta("judge", "bridge", run, "--out", out))


def test_two_judges_of_a_run_are_compared_and_may_not_share_a_table(run: Path) -> None:
    judged(run, "old")
    judged(run, "new", shift=2)
    found = gta("judge", "drift", run, run, "--judge", "old")
    assert found.exit_code == 1, found.output
    assert "new against old: 12 leaves of 6 tasks, 0 left out" in found.stderr
    assert "Runs of both judges must not share a table" in found.stderr
    wide = gta(
        "judge", "drift", run, run, "--judge", "old", "--judge", "new", "--margin", "9", "--json"
    )
    assert wide.exit_code == 0, wide.output
    assert json.loads(wide.stdout)["sharing"] == "yes"


def test_one_judge_at_two_dates_is_compared_by_two_copies(
    run: Path, tmp_path: Path, server: ChatServer
) -> None:
    out = tmp_path / "later"
    assert gta("judge", "bridge", run, "--out", out).exit_code == 0
    config = settings_file(run.parent, server.url)
    for folder in (run, out):
        asked = gta("--config", config, "score", folder, "--judge", "local")
        assert asked.exit_code == 0, asked.output
    found = gta("judge", "drift", run, out, "--margin", "6")
    assert found.exit_code == 0, found.output
    assert "openai-api/local/m against openai-api/local/m: 12 leaves" in found.stderr
    assert found.stderr.count("asked 20") == 2


def test_what_cannot_be_compared_is_said(run: Path, tmp_path: Path) -> None:
    assert "No judge has scored" in said(gta("judge", "drift", run, run))
    judged(run, "old")
    assert "Known judges: old" in said(gta("judge", "drift", run, run, "--judge", "x"))
    other = tmp_path / "other"
    gta("judge", "bridge", run, "--out", other)
    append_verdicts(
        other,
        [
            VerdictRow(
                key=VerdictKey(task="1", leaf="cp1-1", judge="old"),
                verdict=Scored(value=3),
                evidence="other",
            )
        ],
    )
    assert "have no scored leaf with the same evidence in common" in said(
        gta("judge", "drift", run, other)
    )
    judged(run, "a")
    judged(run, "b")
    assert "Choose a judge" in said(gta("judge", "drift", run, run))


def test_a_cascade_is_measured_on_recorded_verdicts(run: Path) -> None:
    judged(run, "cheap", shift=1, cost=0.001)
    judged(run, "strong", cost=0.02)
    shown = gta("judge", "cascade", run, "--cheap", "cheap", "--strong", "strong")
    assert shown.exit_code == 0, shown.output
    assert "12 leaves of 6 tasks, 1 repeat, each simulated on its own; 0 left out." in shown.stderr
    assert "Band 0.5 is the narrowest with at most 5 % different outcomes." in shown.stderr
    assert "0.5, out of fold" in shown.stdout
    found = gta(
        *("judge", "cascade", run, "--cheap", "cheap", "--strong", "strong"),
        *("--band", "0", "--band", "10", "--error", "60", "--json"),
    )
    report = json.loads(found.stdout)
    none, every = report["rows"]
    assert report["limit"] == 60 and len(report["folds"]) == 6
    assert (none["saved"]["estimate"], every["saved"]["estimate"]) == (100, 0)
    assert none["error"]["estimate"] > every["error"]["estimate"] == 0
    assert "Known judges: cheap, strong" in said(
        gta("judge", "cascade", run, "--cheap", "cheap", "--strong", "x")
    )


def test_a_cascade_of_judges_without_a_common_leaf_is_refused(run: Path) -> None:
    judged(run, "cheap")
    key = VerdictKey(task="1", leaf="cp1-9", judge="strong")
    append_verdicts(run, [VerdictRow(key=key, verdict=Scored(value=3))])
    refused = gta("judge", "cascade", run, "--cheap", "cheap", "--strong", "strong")
    assert "no scored leaf in common" in said(refused)


def test_a_panel_stands_beside_its_judges_and_unstable_leaves_are_listed(run: Path) -> None:
    judged(run, "one")
    judged(run, "two", shift=3)
    scored = gta("score", run, "--panel", "majority")
    assert scored.exit_code == 0, scored.output
    assert "panel, majority of one and two" in scored.stdout
    assert "leaves with scores on both sides of 7" in scored.stdout
    page = run / "report.html"
    assert gta("report", run, "--html", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "Agreement of the judges of" in text
    assert "leaves with scores on both sides of 7" in text
    (found,) = json.loads(gta("report", run, "--format", "json").stdout)
    assert [row["name"] for row in found["panel"]["rows"]] == ["one", "two", "one and two"]


def test_a_cascade_asks_the_strong_judge_near_the_threshold_only(
    run: Path, server: ChatServer
) -> None:
    """The cheap judge gives 8 to the second leaf of each task, and 2 to the first."""
    asked_by: dict[str, list[str]] = {}

    def reply(request: dict[str, Any]) -> str:
        asked_by.setdefault(request["model"], []).extend(asked(request))
        low = request["model"] == "cheap" and asked(request) == ["cp1-1"]
        return json.dumps(verdict(names(request)[0], 2 if low else 8))

    server.reply = reply
    config = settings_file(run.parent, server.url)
    text = config.read_text(encoding="utf-8")
    for name in ("cheap", "strong"):
        text += (
            f'[models.{name}]\nmodel = "openai-api/local/{name}"\nbase_url = "{server.url}"\n'
            'key_env = "GTA_TEST_KEY_A"\nmax_tokens = 200\n'
        )
    config.write_text(text, encoding="utf-8")
    options = ("--judge", "cheap", "--judge", "strong", "--cascade", "2")
    first = gta("--config", config, "score", run, *options, "--json")
    assert first.exit_code == 0, first.output
    assert len(asked_by["cheap"]) == 12
    assert asked_by["strong"] == ["cp1-2"] * 6
    name = "openai-api/local/strong after openai-api/local/cheap within 2"
    tables = {table["judge"]: table for table in json.loads(first.stdout)["judges"]}
    assert tables[name]["strict"]["leaf_sr"] == 50
    assert gta("--config", config, "score", run, *options).exit_code == 0
    assert len(asked_by["strong"]) == 6, "nothing is asked twice"
    lone = gta("--config", config, "score", run, "--judge", "cheap", "--cascade", "2")
    assert "--cascade needs two judges" in said(lone)
