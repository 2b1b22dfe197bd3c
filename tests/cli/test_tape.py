import json
from pathlib import Path

import pytest

from tests.builders import write_atomic
from tests.tape.datasets import TOOLMETA, multiplication
from tests.tape.test_runs import gta, run, units


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of three tasks, and a tape of its reference."""
    root = tmp_path_factory.mktemp("data")
    write_atomic(root, {str(n): multiplication(n + 12) for n in range(3)}, TOOLMETA)
    result = gta("tape", "from-reference", "--data", root, "--out", root / "tape")
    assert result.exit_code == 0, result.output
    assert "3 calls in " in result.stderr
    return root


def test_a_run_on_the_references_tape_under_a_control(root: Path, tmp_path: Path) -> None:
    options = ("--agent", "gold", "--tape", root / "tape")
    run(root, tmp_path / "plain", *options)
    said = run(root, tmp_path / "spoiled", *options, "--control", "corrupt-replies").stderr
    assert "tool replies come from the reference dialogues" in said
    assert "also pass the same system's run without it" in said
    calls = [call for unit in units(tmp_path / "spoiled") for call in unit.calls]
    assert [(call.taped, call.control) for call in calls] == [("replayed", "corrupted")] * 3
    report = gta("report", tmp_path / "plain", tmp_path / "spoiled")
    assert "3 replies in 3 units; of the 3 of these that are solved without the control, 0" in (
        report.stderr
    )
    entries = gta("report", tmp_path / "plain", tmp_path / "spoiled", "--format", "json").stdout
    assert [entry["control_effect"] is None for entry in json.loads(entries)] == [True, False]
    page = gta("report", tmp_path / "plain", tmp_path / "spoiled", "--format", "markdown").stdout
    assert "| 0 | 1 | 1.00 | 1.00 | corrupted replies: 1 | kept |" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--mode", "step", "--control", "no-tools"), "step mode calls no tool"),
        (("--mode", "step", "--tape", "tape"), "step mode calls no tool"),
        (("--mode", "end-to-end", "--control", "chaos"), "Known controls"),
        (("--mode", "end-to-end", "--tape-mode", "record"), "needs a tape: add --tape"),
        (("--mode", "end-to-end", "--tape", "nowhere"), "is not a tape"),
    ],
)
def test_a_mistake_is_met_by_one_line(
    root: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = gta(
        "run", "atomic", "--agent", "gold", "--data", root, "--out", tmp_path / "x", *arguments
    )
    assert said in str(result.exception)
    assert not (tmp_path / "x").exists()


def test_a_live_run_ignores_the_tape(root: Path, tmp_path: Path) -> None:
    tape = ("--tape", root / "tape", "--tape-mode", "live")
    said = run(root, tmp_path / "live", "--agent", "gold", "--tasks", "0", *tape).stderr
    assert "tape" not in said
    assert units(tmp_path / "live")[0].calls[0].backend.startswith("pydantic-monty")
