"""`gta tape diff` with tool servers: every task's calls in order, on servers started for it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gta_bench.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.needs import needs
from tests.served.foreign import BAD
from tests.served.test_server_runs import AGENT, gta, here, run, write_servers, write_tasks

pytestmark = needs("bwrap")
TWICE = [["shop__work", {}], ["shop__work", {}]]
__all__ = ["here"]


def record(folder: Path, how: str, **settings: Any) -> None:
    write_servers(folder, shop={"how": how, **settings})
    write_tasks(folder, (["shop__*"], TWICE), (["shop__*"], TWICE[:1]))
    run(folder / "live", *AGENT, "--tape", "tape", "--tape-mode", "record")


def diff(*arguments: str, code: int) -> list[dict[str, Any]]:
    result = gta("tape", "diff", "tape", "--data", "data", "--json", *arguments)
    assert result.exit_code == code, result.output
    # Tasks are recorded as they come, each with its calls in order.
    return sorted(json.loads(result.stdout)["calls"], key=lambda one: str(one["task"]))


def test_a_server_that_counts_says_the_same_again(here: Path) -> None:
    record(here, "counts")
    found = diff(code=0)
    assert [(one["task"], one["change"], one["now"]) for one in found] == [
        ("0", "equal", "1"),
        ("0", "equal", "2"),
        ("1", "equal", "1"),
    ]
    assert found[0]["version_now"] == "0 · tool server bad 0"
    assert len(diff("--tool", "shop__work", code=0)) == 3


def test_other_replies_other_files_and_other_definitions_are_changes(here: Path) -> None:
    record(here, "writes", files="write")
    assert {one["change"] for one in diff(code=0)} == {"equal"}
    write_servers(here, shop="counts")  # the file is not written
    found = diff(code=1)
    assert [(one["change"], one["then"], one["now"]) for one in found][:2] == [
        ("changed", "written", "1"),
        ("changed", "written", "2"),
    ]
    write_servers(here, shop="changed")
    result = gta("tape", "diff", "tape", "--data", "data")
    assert result.exit_code == 1
    assert "definition: shop__work has another schema" in result.output


def test_a_server_that_dies_has_failed_and_a_missing_one_is_one_line(here: Path) -> None:
    record(here, "counts")
    write_servers(here, shop="dies")
    assert {one["change"] for one in diff(code=1)} == {"failed"}
    (here / "gta.toml").unlink()
    result = gta("tape", "diff", "tape", "--data", "data")
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith("Tool server 'shop' has no `command` or `url`")


def test_definitions_count_whether_a_task_called_them_or_not(here: Path) -> None:
    write_servers(here, shop="counts", desk="counts")
    write_tasks(here, (["shop__*", "desk__*"], TWICE))
    run(here / "live", *AGENT, "--tape", "tape", "--tape-mode", "record")
    command = ("tape", "diff", "tape", "--data", "data", "--json")
    write_servers(here, shop="counts", desk="changed")
    result = gta(*command)
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert {one["change"] for one in said["calls"]} == {"equal"}
    changed = {"tool": "desk__work", "change": "has another schema", "tasks": []}
    assert said["definitions"] == [changed]
    assert gta(*command, "--tool", "shop__work").exit_code == 0
    write_servers(here, shop="counts")
    assert "Tool server 'desk'" in str(gta(*command).exception)
    assert gta(*command, "--tool", "shop__work").exit_code == 0, "it needs no other server"


def test_a_tape_without_a_definition_or_with_other_tasks_is_no_drift(here: Path) -> None:
    record(here, "counts")
    tape = here / "tape" / "tape.jsonl"
    write_tasks(here, (["shop__*"], TWICE))
    assert [(one["task"], one["change"]) for one in diff(code=1)] == [
        ("0", "equal"),
        ("0", "equal"),
        ("1", "no input"),
    ]
    lines = tape.read_text(encoding="utf-8").splitlines(keepends=True)
    tape.write_text("".join(one for one in lines if '"line":"tool"' not in one), encoding="utf-8")
    result = gta("tape", "diff", "tape", "--data", "data")
    assert str(result.exception) == "tape has no definition of shop__work; record it again."


def test_recorded_sessions_are_repeated_one_by_one_without_any_dataset(here: Path) -> None:
    call: dict[str, Any] = {"method": "tools/call", "params": {"name": "work"}}
    words: list[dict[str, Any]] = [{"method": "tools/list"}, call, call]
    said = [{"jsonrpc": "2.0", "id": number, **word} for number, word in enumerate(words)]
    proxy = [*("-m", "gta_bench", "tape", "record", "--out", "tape", "--name", "shop", "--")]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, *proxy, sys.executable, str(BAD), "counts"],
            input="".join(json.dumps(one) + "\n" for one in said),
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        )
        assert "2 calls of shop" in done.stderr
    write_servers(here, shop="counts")
    result = gta("tape", "diff", "tape", "--json")
    assert result.exit_code == 0, result.output
    assert [one["now"] for one in json.loads(result.stdout)["calls"]] == ["1", "2", "1", "2"]
