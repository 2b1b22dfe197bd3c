import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_show_says_each_value_and_where_it_came_from() -> None:
    Path("gta.toml").write_text("[judge]\nrepeats = 3\n", encoding="utf-8")
    lines = gta("config", "show").stdout.splitlines()
    assert [line.split() for line in lines if line.startswith("judge.")][:2] == [
        ["judge.model", "-", "default"],
        ["judge.repeats", "3", "gta.toml"],
    ]


def test_show_gives_json() -> None:
    values = json.loads(gta("config", "show", "--json").stdout)
    assert {"key": "budget.max_connections", "value": 10, "origin": "default"} in values


def test_check_without_a_file_says_that_the_defaults_hold() -> None:
    assert "the defaults hold" in gta("config", "check").stderr


def test_check_says_which_keys_are_set_and_prints_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTA_TEST_KEY_A", "s3cret")
    Path("gta.toml").write_text(
        '[models.a]\nmodel = "openai/x"\nkey_env = "GTA_TEST_KEY_A"\n'
        '[endpoints.b]\nurl = "http://h/v1"\nkey_env = "GTA_TEST_KEY_B"\n',
        encoding="utf-8",
    )
    result = gta("config", "check")
    assert "GTA_TEST_KEY_A (models.a): set" in result.stderr
    assert "GTA_TEST_KEY_B (endpoints.b): not set" in result.stderr
    assert "s3cret" not in result.output


def test_another_file_is_used_when_it_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[judge]\nrepeats = 5\n", encoding="utf-8")
    assert "judge.repeats           5" in gta("--config", str(other), "config", "show").stdout
