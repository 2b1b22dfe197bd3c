"""Runs, bundles and exports that the version before wrote are read, resumed and scored as by it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.legacy.bench import (
    EXPECTED,
    KEY,
    NOWHERE,
    Bench,
    differences,
    gta,
    observe,
    observe_boards,
    open_bench,
    resume,
    said,
    unpack,
    write_settings,
)
from tests.legacy.kinds import (
    END,
    IMPORTS,
    READ,
    RUNS,
    SETTINGS,
    TOGETHER,
    UNFINISHED,
    UNJUDGED,
    alone,
    command,
)

INTERRUPTED = "step-interrupted"
LACKING = "import-atomic-folder"


async def stored_renderer(_: object) -> str:
    """The programs of the machine that made the stored evidence: with others it is made anew."""
    return (
        "evidence 2; jail bubblewrap; LibreOffice 7.4.7.2; Chromium 156.0.8078.79; "
        "ffmpeg 5.1.9-0+deb12u1; no transcripts; pypandoc-binary 1.17 + pypdf 7.0.1 + "
        "pypdfium2 5.14.0 + python-pptx 1.0.2 + openpyxl 3.1.5 + pillow 13.0.0"
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the datasets, from which all commands are given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(KEY, "none")
    monkeypatch.setattr("gta_bench.judging.run_evidence.renderer", stored_renderer)
    return unpack("bench", tmp_path)


@pytest.fixture
def bench(loopback: None) -> Iterator[Bench]:
    with open_bench() as opened:
        yield opened


def stored(kind: str, url: str = NOWHERE) -> Any:
    """Put a stored run into this folder; what the version before said of it."""
    unpack(kind, Path())
    write_settings(url, SETTINGS.get(kind, ""))
    return json.loads(Path(EXPECTED).read_bytes())


@pytest.mark.parametrize("kind", [kind for kind in READ if kind not in (INTERRUPTED, LACKING)])
def test_a_run_is_scored_and_reported_as_before(kind: str) -> None:
    expected = stored(kind)["observed"]
    assert differences(expected, observe(f"runs/{kind}")) == []


def test_imported_answers_that_lack_a_task_are_counted_as_they_are() -> None:
    """The version before counted the task as if it had been delivered, and ended with 0."""
    expected = stored(LACKING)["observed"]
    assert differences(expected, observe(f"runs/{LACKING}")) == [
        "/score --json/exit: 0 was expected, not 1",
        "/score --json/stdout/n: 3 was expected, not 2",
        "/score --scoring compat/exit: 0 was expected, not 1",
        "/score --scoring compat/stdout/n: 3 was expected, not 2",
    ]


def test_an_interrupted_unit_is_no_failure_any_more_and_every_number_is_as_before() -> None:
    """The version before told of it as infrastructure that failed, in words of the engine."""
    expected = stored(INTERRUPTED)["observed"]["scores"]
    observed = observe(f"runs/{INTERRUPTED}")
    found = observed["scores"]
    for scores in (expected, found):
        del scores["models"], scores["usage"]["seconds"]
    assert [one.pop("cause") for one in found["unscored"]] == ["not run yet"]
    assert [one.pop("cause")[:15] for one in expected["unscored"]] == ["CancelledError("]
    assert (found.pop("failures"), len(expected.pop("failures"))) == ([], 1)
    assert differences(expected, found) == []
    assert "Cancelled" not in json.dumps(observed)


@pytest.mark.parametrize("kind", UNFINISHED)
def test_the_same_command_runs_only_what_is_missing(kind: str, bench: Bench) -> None:
    expected = stored(kind, bench.server.url)["resumed"]
    again = alone(command(UNFINISHED[kind], f"runs/{kind}"))
    assert differences(expected, resume(bench, f"runs/{kind}", *again)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in UNFINISHED if kind.startswith("shards")])
def test_several_processes_run_only_what_is_missing(kind: str, bench: Bench) -> None:
    expected = stored(kind, bench.server.url)["resumed"]
    again = command(UNFINISHED[kind], f"runs/{kind}")
    assert differences(expected, resume(bench, f"runs/{kind}", *again)) == []


@pytest.mark.parametrize("kind", RUNS)
def test_the_same_command_does_nothing_to_a_finished_run(kind: str, bench: Bench) -> None:
    scores = stored(kind, bench.server.url)["observed"]["stored scores"]
    files = {file: file.read_bytes() for file in sorted(Path(f"runs/{kind}/logs").rglob("*.eval"))}
    result = gta(*alone(command(kind)))
    assert result.exit_code == 0, result.output
    assert bench.server.asked == 0
    found = json.loads(Path(f"runs/{kind}/scores.json").read_bytes())
    assert differences(scores, found) == []
    assert files == {file: file.read_bytes() for file in sorted(files)}


@pytest.mark.parametrize("kind", IMPORTS)
def test_the_same_import_adds_nothing(kind: str) -> None:
    stored(kind)
    kept = {
        file.name: file.read_bytes() for file in Path(f"runs/{kind}").iterdir() if file.is_file()
    }
    result = gta(*IMPORTS[kind], "--out", f"runs/{kind}")
    assert result.exit_code == 0, result.output
    now = {
        file.name: file.read_bytes() for file in Path(f"runs/{kind}").iterdir() if file.is_file()
    }
    assert now == kept


@pytest.mark.parametrize("kind", UNJUDGED)
def test_a_judge_scores_a_run_that_none_has_seen(kind: str, bench: Bench) -> None:
    expected = stored(kind, bench.server.url)["judged"]
    found = resume(bench, f"runs/{kind}", "score", f"runs/{kind}", "--judge", "strict")
    assert differences(expected, found) == []


def test_several_runs_are_compared_and_reported_as_before() -> None:
    for kind in READ:
        stored(kind)
    for name in ("exports", "attack"):
        unpack(name, Path())
    write_settings(NOWHERE)
    unpack("together", Path())
    expected = json.loads(Path(EXPECTED).read_bytes())
    for name, parts in TOGETHER.items():
        found = said(*parts)
        if name == "attack":  # each work is now judged at least twice
            assert "--out" in found["raised"]
        elif name == "cascade":  # now simulated as it runs, each repeat by itself
            assert (found["exit"], expected[name]["exit"]) == (0, 0)
        else:
            assert differences(expected[name], found, name) == []
    rows = Path("labels.csv").read_text(encoding="utf-8").splitlines()
    # Since then, with the chance of having been drawn, which old labels do not say.
    assert [row.rpartition(",")[0] for row in rows] == expected["labels.csv"].splitlines()
    assert {row.rpartition(",")[2] for row in rows} == {"chance", ""}


def test_a_tape_that_was_recorded_before_is_replayed(bench: Bench) -> None:
    expected = stored("recorded", bench.server.url)["observed"]["stored scores"]
    tape = ("--tape", "recorded-tape", "--tape-mode", "replay")
    result = gta(*END, "--model", "scripted", *tape, "--out", "runs/replayed")
    assert result.exit_code == 0, result.output
    scores = json.loads(Path("runs/replayed/scores.json").read_bytes())
    for scoring in ("strict", "compat"):
        assert differences(expected[scoring], scores[scoring]) == []


def test_bundles_are_no_longer_believed_and_their_runs_not_submitted() -> None:
    """Their logs do not state what was run, so nothing shows that `run.json` is true."""
    unpack("boards", Path())
    write_settings(NOWHERE)
    expected = json.loads(Path(EXPECTED).read_bytes())
    found = observe_boards()
    for board in ("atomic", "workflow"):
        name = f"check {board}"
        assert (expected.pop(name)["exit"], found[name]["exit"]) == (0, 1)
        assert "a log does not state what was run" in json.dumps(found.pop(name))
        assert expected.pop(f"submit {board}") == 0
        assert "would reject it: logs: a log does not" in found.pop(f"submit {board}")["raised"]
        assert not Path(f"again-{board}.zip").exists()
        del expected[f"submitted {board}"]
    assert differences(expected, found) == []


def test_another_score_in_the_words_of_a_report_is_a_difference() -> None:
    before = {"report": {"stdout": "runs/a  2/2  strict  66.67", "stderr": "2 tasks paired."}}
    other_words = {"report": {"stdout": "runs/a 2/2 strict 66.67 subset", "stderr": "1 task."}}
    assert differences(before, other_words) == []
    another = {"report": {"stdout": "runs/a  2/2  strict  66.68", "stderr": ""}}
    assert len(differences(before, another)) == 1
