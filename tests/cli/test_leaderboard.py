import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.leaderboard.entries import read_published_entries


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_published_rows_are_checked_without_files() -> None:
    result = gta("leaderboard", "check")
    assert result.exit_code == 1
    assert result.stderr == "65 rows checked: 5 rows flagged, 3 facts.\n"
    assert result.stdout == (
        "ans-acc-i-bound AnsAcc+I 11.94 is not between 12.81 and 37.70, "
        "as AnsAcc 17.06 requires\n"
        "  2024-07/atomic/mistral-large\n"
        "  2026-04/atomic/mistral-large\n"
        "ans-acc-i-bound AnsAcc+I 14.47 is not between 17.61 and 42.50, "
        "as AnsAcc 23.44 requires\n"
        "  2024-07/atomic/claude3-opus\n"
        "  2026-04/atomic/claude-3-opus\n"
        "no-count InstAcc 23.23 is no k/729; the nearest are 23.18 (169/729) and 23.32 (170/729)\n"
        "  2024-07/atomic/yi-34b-chat\n"
    )


def test_files_are_checked_instead_where_they_are_given(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(read_published_entries()[0].model_dump_json(), encoding="utf-8")
    result = gta("leaderboard", "check", file, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("GPT-4o\u202e", "it contains U+202E (RIGHT-TO-LEFT OVERRIDE), which cannot be seen"),
        ("Cl\u0430ude", "mixes scripts that look alike: Latin U+0065 and Cyrillic U+0430"),
    ],
)
def test_a_name_that_looks_like_another_is_refused_in_a_line(
    tmp_path: Path, name: str, reason: str
) -> None:
    entry = read_published_entries()[0].model_copy(update={"system": name})
    file = tmp_path / "entry.json"
    file.write_text(entry.model_dump_json(), encoding="utf-8")
    commands: list[list[str | Path]] = [
        ["check", file],
        ["build", file, "--out", tmp_path / "site"],
    ]
    for command in commands:
        said = gta("leaderboard", *command).exception
        assert isinstance(said, UsageError)
        assert "entry.json is not a leaderboard entry: system: " in str(said)
        assert reason in str(said)
    assert not (tmp_path / "site").exists()


def test_findings_are_there_as_json() -> None:
    findings = json.loads(gta("leaderboard", "check", "--json").stdout)
    assert len(findings) == 5
    assert findings[0]["metric"] == "ans_acc_i"


def test_a_bundle_that_is_none_is_rejected(tmp_path: Path) -> None:
    torn = tmp_path / "torn.zip"
    torn.write_bytes(b"PK")
    result = gta("leaderboard", "check", torn)
    assert result.exit_code == 1 and "it is not a zip archive" in result.stdout
    assert result.stderr == f"{torn}: signature not checked; rejected.\n"


def test_the_site_holds_the_published_rows_and_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    mine = read_published_entries()[-1].model_copy(
        update={"id": "mine", "system": "My own harness"}
    )
    file.write_text(mine.model_dump_json(), encoding="utf-8")
    # Only what comes with the program is published.
    result = gta("leaderboard", "build", file, "--out", tmp_path / "none")
    assert isinstance(result.exception, UsageError) and "'self-reported'" in str(result.exception)
    mine = mine.model_copy(update={"status": "self-reported"})
    file.write_text(mine.model_dump_json(), encoding="utf-8")
    # An entry alone is not taken for a bundle whose scores follow from its logs.
    said = gta("leaderboard", "check", file).stderr.splitlines()
    assert (
        said[-1]
        == "1 row without a bundle here: whether the scores follow from logs was not checked."
    )
    result = gta("leaderboard", "build", file, "--out", tmp_path / "site")
    assert result.exit_code == 0
    assert result.stderr.startswith("Wrote 66 rows. Open ")
    page = (tmp_path / "site" / "harnesses.html").read_text(encoding="utf-8")
    assert "My own harness" in page and " · no bundle" in page


def test_a_tier_needs_the_bundle_that_was_repeated(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    mine = read_published_entries()[-1].model_copy(
        update={"id": "mine", "status": "reproduced", "run_digest": "0" * 64}
    )
    file.write_text(mine.model_dump_json(), encoding="utf-8")
    (tmp_path / "board").mkdir()
    commands: list[list[str | Path]] = [
        ["check", file],
        ["check", file, "--board", tmp_path / "board"],
        ["build", file, "--out", tmp_path / "site"],
    ]
    for command in commands:
        said = gta("leaderboard", *command).exception
        assert isinstance(said, UsageError)
        assert "Entry 'mine' has the tier 'reproduced', but there is no bundle" in str(said)
    assert not (tmp_path / "site").exists()


def test_what_the_site_needs_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "scipy", None)
    result = gta("leaderboard", "build", "--out", "unused")
    assert isinstance(result.exception, EnvironmentProblem)
    assert str(result.exception).startswith("gta leaderboard build needs scipy, which is not")


def test_the_check_needs_no_extra() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['scipy', 'numpy', 'jinja2']));"
        "from gta_bench.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "leaderboard", "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == "65 rows checked: 5 rows flagged, 3 facts.\n"
