import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app, doctor
from gta_bench.errors import ToolError, ToolUnavailable, UsageError
from tests.needs import needs


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_list_says_of_every_tool_whether_it_works_here() -> None:
    result = gta("tools", "list", "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert rows["Calculator"]["available"] is True
    assert rows["Calculator"]["backend"].startswith("pydantic-monty")
    assert rows["Calculator"]["reason"] is None
    assert rows["GoogleSearch"]["available"] is False
    assert "SERPER_API_KEY" in rows["GoogleSearch"]["reason"]
    for row in rows.values():
        assert set(row) == {"name", "category", "available", "backend", "version", "reason"}


def test_list_is_a_table_for_people() -> None:
    result = gta("tools", "list")
    assert "yes  Calculator " in result.stdout
    assert "tools work here." in result.stderr


def test_call_prints_the_result_and_what_ran() -> None:
    result = gta("tools", "call", "Calculator", "--arg", "expression=6*7")
    assert result.exit_code == 0, result.output
    assert result.stdout == "42\n"
    assert "pydantic-monty" in result.stderr


def test_call_takes_a_file_of_this_machine_and_keeps_what_was_produced(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (200, 100), "white").save("photo.png")
    arguments = ["--arg", "image=photo.png", "--arg", "bbox=(10, 10, 90, 90)"]
    result = gta("tools", "call", "DrawBox", *arguments, "--out", "made", "--json")
    assert result.exit_code == 0, result.output
    part = json.loads(result.stdout)["parts"][0]
    assert part["type"] == "image"
    produced = list(Path("made").iterdir())
    assert len(produced) == 1
    with Image.open(produced[0]) as picture:
        assert picture.size == (200, 100)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (["Singer"], UsageError, "Unknown tool 'Singer'"),
        (["Calculator", "--arg", "expression"], UsageError, "write it as NAME=VALUE"),
        (["Calculator"], ToolError, "missing argument 'expression'"),
        (["Calculator", "--arg", "expression=1/0"], ToolError, "division by zero"),
        (["GoogleSearch", "--arg", "query=x"], ToolUnavailable, "SERPER_API_KEY"),
        (["DrawBox", "--arg", "image=gone.png", "--arg", "bbox=(1,2,3,4)"], ToolError, "gone.png"),
    ],
)
def test_a_mistake_in_a_call_is_one_line(
    arguments: list[str], error: type[Exception], said: str
) -> None:
    result = gta("tools", "call", *arguments)
    assert isinstance(result.exception, error)
    assert said in str(result.exception)


def test_unknown_weights_are_told_with_the_known_ones() -> None:
    result = gta("tools", "fetch", "gpt-5")
    assert isinstance(result.exception, UsageError)
    assert "Known weights: " in str(result.exception)


def test_verify_finds_recorded_replies_that_calculator_does_not_give(atomic_dir: Path) -> None:
    result = gta("data", "verify", "atomic", "--data", atomic_dir, "--json")
    findings = json.loads(result.stdout)
    found = [one["task"] for one in findings if one["check"] == "reply-not-computed"]
    assert " ".join(found) == "2 21 25 26 27 52 53 91 101 104 107 110 193 204"


@needs("bwrap")
def test_doctor_looks_at_jails_and_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of each kind is rendered in tests/packaging/test_core_alone.py."""
    monkeypatch.setattr(doctor, "_check_evidence", lambda _: ())
    found = {entry["name"]: entry for entry in json.loads(gta("doctor", "--json").stdout)}
    assert found["jail bubblewrap"]["state"] == "ok"
    assert found["tool Calculator"]["state"] == "ok"
    assert "SERPER_API_KEY" in found["tool GoogleSearch"]["fix"]
