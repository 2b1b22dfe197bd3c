import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from tests.builders import write_atomic, write_workflow


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bundled files, which take ten seconds to show: tests/judging/test_lacking.py has them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gta_bench.judging.known_good.FOLDER", tmp_path)


def test_missing_data_is_told_with_the_line_that_mends_it() -> None:
    result = gta("doctor")
    assert result.exit_code == 0
    assert re.search(r"missing +data atomic +data/gta_atomic does not exist", result.stdout)
    assert "gta data fetch atomic" in result.stdout


def test_data_that_is_there_is_counted(tmp_path: Path) -> None:
    write_atomic(tmp_path / "data" / "gta_atomic")
    write_workflow(tmp_path / "data" / "gta_workflow")
    said = gta("doctor").stdout
    assert re.search(r"ok +data atomic +1 task in data/gta_atomic", said)
    assert re.search(r"ok +data workflow +1 task in data/gta_workflow", said)


def test_data_that_is_broken_ends_with_3(tmp_path: Path) -> None:
    root = write_atomic(tmp_path / "data" / "gta_atomic")
    (root / "dataset.json").write_text("{", encoding="utf-8")
    result = gta("doctor")
    assert result.exit_code == 3
    assert "broken   data atomic" in result.stdout
    assert "Remove data/gta_atomic and run: gta data fetch atomic" in result.stdout


def test_settings_that_are_broken_end_with_3() -> None:
    Path("gta.toml").write_text("[judge]\nrepeat = 1\n", encoding="utf-8")
    result = gta("doctor")
    assert result.exit_code == 3
    assert "unknown key `judge.repeat`; did you mean 'repeats'?" in result.stdout


def test_keys_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTA_TEST_KEY_A", "s3cret")
    Path("gta.toml").write_text(
        '[models.a]\nmodel = "openai/x"\nkey_env = "GTA_TEST_KEY_A"\n'
        '[models.b]\nmodel = "openai/y"\nkey_env = "GTA_TEST_KEY_B"\n',
        encoding="utf-8",
    )
    found = {entry["name"]: entry["state"] for entry in json.loads(gta("doctor", "--json").stdout)}
    assert found["GTA_TEST_KEY_A"] == "ok"
    assert found["GTA_TEST_KEY_B"] == "missing"


def test_the_similarity_is_named_with_the_way_to_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    said = gta("doctor").stdout
    assert re.search(r"ok +similarity +wordllama\n +gta tools fetch all-mpnet-base-v2", said)
