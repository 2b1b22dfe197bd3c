import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import EnvironmentProblem


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
    assert "the defaults apply" in gta("config", "check").stderr


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


def test_check_opens_the_models_and_names_every_one_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GTA_TEST_KEY_A", raising=False)
    Path("gta.toml").write_text(
        '[models.good]\nmodel = "openai-api/local/x"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'key_env = "GTA_TEST_KEY_B"\n'
        '[models.keyless]\nmodel = "openai/x"\nkey_env = "GTA_TEST_KEY_A"\n'
        '[models.nobody]\nmodel = "nobody/x"\n[judge]\nmodel = "anthropic/x"\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("GTA_TEST_KEY_B", "s3cret")
    monkeypatch.setitem(sys.modules, "anthropic", None)
    result = gta("config", "check")
    assert isinstance(result.exception, EnvironmentProblem)
    assert str(result.exception).endswith(
        "models.keyless, models.nobody, judge.model. The lines above say why."
    )
    assert "models.keyless: GTA_TEST_KEY_A is not set" in result.stderr
    assert "export GTA_TEST_KEY_A=" in result.stderr
    assert "models.nobody: Model 'nobody/x'" in result.stderr
    assert "Install with: pip install anthropic" in result.stderr
    assert "is right" not in result.stderr


def test_check_opens_an_openai_compatible_model_with_the_core_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No socket is allowed here: the model is not called."""
    monkeypatch.setenv("GTA_TEST_KEY_A", "s3cret")
    Path("gta.toml").write_text(
        '[models.a]\nmodel = "openai-api/local/x"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'key_env = "GTA_TEST_KEY_A"\n',
        encoding="utf-8",
    )
    assert "gta.toml is valid." in gta("config", "check").stderr


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "gta.toml"
    file.write_text(
        '[models.m]\nmodel = "openai/m"\nbase_url = "http://me:s3cret-password@localhost/v1"\n',
        encoding="utf-8",
    )
    for form in ((), ("--json",)):
        result = CliRunner().invoke(app, ["--config", str(file), "config", "show", *form])
        assert result.exit_code == 0, result.output
        assert "http://me:[redacted:models.m]@localhost/v1" in result.output
        assert "s3cret" not in result.output
