"""`gta tape diff`: calls repeated with the files that they had."""

import asyncio
import json
from hashlib import sha256
from pathlib import Path

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.tape.diff import CallDrift, repeat_calls
from gta_bench.tape.storage import Tape
from gta_bench.tools.logic.calculator import Calculator
from tests.builders import JPEG, PNG, write_atomic
from tests.tape.builders import Answer, Scripted, call, recording, taped
from tests.tape.datasets import TOOLMETA, multiplication
from tests.tape.test_runs import gta, run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_atomic(tmp_path / "data")


def recorded(tmp_path: Path, data: Path, answer: Answer, *calls: dict[str, str]) -> Tape:
    """A tape of calls in task 0 of the dataset, with its file."""
    workspace = Workspace.create(tmp_path / "space", {"inputs/menu.jpg": data / "image/menu.jpg"})
    source = taped(recording(tmp_path / "tape"), "record", Scripted(answer), task="0")
    for arguments in calls:
        try:
            call(source, workspace, **arguments)
        except (ToolError, ToolUnavailable):
            continue
    return Tape.open(tmp_path / "tape")


def again(tape: Tape, data: Path, answer: Answer, version: str = "2") -> list[CallDrift]:
    async def collect() -> list[CallDrift]:
        live = Scripted(answer, version=version)
        return [drift async for drift in repeat_calls(tape, live, load_atomic(data))]

    return asyncio.run(collect())


def test_a_new_version_that_says_something_else_is_caught(tmp_path: Path, data: Path) -> None:
    tape = recorded(tmp_path, data, lambda *_: "Beer 7", {"image": "inputs/menu.jpg"})
    found = again(tape, data, lambda *_: "Beer 8")[0]
    assert (found.change, found.then, found.now) == ("changed", "Beer 7", "Beer 8")
    assert (found.version_then, found.version_now) == ("1 · eye 1", "2 · eye 1")
    assert again(tape, data, lambda *_: "Beer 7")[0].change == "equal"


def fails(*_: object) -> str:
    raise ToolError("dirty lens")


def misses(*_: object) -> str:
    raise ToolUnavailable("no key.", fix="export KEY=…")


@pytest.mark.parametrize(
    ("then", "now", "change"),
    [
        (lambda *_: "7", fails, "failed"),
        (fails, lambda *_: "7", "failed"),
        (fails, fails, "equal"),
        (lambda *_: "7", misses, "unavailable"),
        (misses, misses, "equal"),
    ],
)
def test_failures_are_compared_as_failures(
    tmp_path: Path, data: Path, then: Answer, now: Answer, change: str
) -> None:
    tape = recorded(tmp_path, data, then, {"note": "x"})
    assert [drift.change for drift in again(tape, data, now)] == [change]


def test_a_made_file_is_compared_by_content_and_given_to_the_calls_that_used_it(
    tmp_path: Path, data: Path
) -> None:
    def draw(workspace: Workspace, given: object) -> str:
        source = json.loads(json.dumps(given)).get("image")
        before = b"" if source is None else workspace.read(source)
        return workspace.write("plot.png", PNG + before).path

    tape = recorded(
        tmp_path, data, draw, {"note": "draw"}, {"image": "outputs/plot.png"}, {"note": "draw"}
    )
    assert [drift.change for drift in again(tape, data, draw)] == ["equal", "equal"]

    def other(workspace: Workspace, given: object) -> str:
        return workspace.write("plot.png", JPEG).path

    changed = again(tape, data, other)
    assert [drift.change for drift in changed] == ["changed"] * 2
    digest = sha256(JPEG).hexdigest()[:12]
    assert {drift.now for drift in changed} == {f"[image]\n[files: {digest}]"}
    assert len({drift.then for drift in changed}) == 2


def test_a_call_whose_file_is_not_here_is_not_made(tmp_path: Path, data: Path) -> None:
    tape = recorded(tmp_path, data, lambda *_: "Beer 7", {"image": "inputs/menu.jpg"})
    (data / "image" / "menu.jpg").write_bytes(JPEG + b"changed")
    assert again(tape, data, lambda *_: "Beer 7")[0].change == "no input"
    (tmp_path / "other").mkdir()
    empty = write_atomic(tmp_path / "other", {})
    assert again(tape, empty, lambda *_: "Beer 7")[0].change == "no input"


@pytest.fixture
def calculated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dataset, and a tape of its reference replayed with the real Calculator."""
    monkeypatch.chdir(tmp_path)
    root = write_atomic(tmp_path / "data" / "gta_atomic", {"0": multiplication(13)}, TOOLMETA)
    tape = ("--tape", "tape", "--tape-mode", "record")
    run(root, tmp_path / "run", "--agent", "gold", *tape)
    return tmp_path


def test_the_command_counts_by_tool_and_version_and_shows_what_changed(
    calculated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = gta("tape", "diff", "tape")
    assert same.exit_code == 0, same.output
    assert "Calculator  1" in same.stdout
    monkeypatch.setattr(Calculator, "version", "99")
    text = (calculated / "tape/tape.jsonl").read_text(encoding="utf-8")
    assert '"content":"91"' in text
    (calculated / "tape/tape.jsonl").write_text(
        text.replace('"content":"91"', '"content":"92"'), encoding="utf-8"
    )
    changed = gta("tape", "diff", "tape", "--tool", "Calculator")
    assert changed.exit_code == 1
    assert 'changed: task 0, Calculator(expression="13*7")' in changed.stderr
    assert "then: 92" in changed.stderr
    assert "99 · pydantic-monty" in changed.stdout
    rows = json.loads(gta("tape", "diff", "tape", "--json").stdout)["calls"]
    assert [(row["tool"], row["change"], row["now"]) for row in rows] == [
        ("Calculator", "changed", "91")
    ]
    assert "has no call of OCR" in str(gta("tape", "diff", "tape", "--tool", "OCR").exception)
