"""Runs whose tasks use tool servers: planned, recorded, replayed, continued, and refused."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import GtaError
from gta_bench.records.steps import CallStep, ReplyStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from tests.builders import workflow_task, write_workflow
from tests.harnesses.mcp_calls import calling_harness
from tests.needs import needs
from tests.served.foreign import BAD

pytestmark = needs("bwrap")
KEY = "sk-live-7f3a9b2c5d"
AGENT = ("--agent", "tests.served.agents:caller", "--model", "mockllm/model")


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write_servers(folder: Path, **servers: Sequence[str] | dict[str, Any]) -> None:
    """A gta.toml with these servers: how each behaves, and its settings."""
    lines = []
    for name, about in servers.items():
        how, more = (about["how"], dict(about)) if isinstance(about, dict) else (about, {})
        more.pop("how", None)
        lines += [f"[tool_servers.{name}]", f"command = {json.dumps(sys.executable)}"]
        lines += [f"args = {json.dumps([str(BAD), how])}"]
        lines += [f"{key} = {_toml(value)}" for key, value in more.items()]
    (folder / "gta.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def write_tasks(folder: Path, *tasks: tuple[Sequence[str], list[Any]]) -> Path:
    """Tasks with these tools, whose requests list the calls to make."""
    made = {
        str(number): workflow_task(
            tools=list(tools), dialogs=[{"role": "user", "content": json.dumps(calls)}]
        )
        for number, (tools, calls) in enumerate(tasks)
    }
    return write_workflow(folder / "data", made, [])


def read(out: Path) -> Sequence[WorkflowUnit]:
    spec = read_manifest(out).spec
    return read_units(log_folder(out), spec.tasks, spec.epochs, WorkflowUnit).units


def run(out: Path, *arguments: str | Path, code: int = 0) -> str:
    result = gta("run", "workflow", "--data", "data", "--out", out, *arguments)
    assert result.exit_code == code, result.output
    return result.output


def refuse(out: Path, *arguments: str | Path) -> str:
    """The one line with which a command ends."""
    result = gta("run", "workflow", "--data", "data", "--out", out, *arguments)
    assert isinstance(result.exception, GtaError), result.output
    assert result.exception.exit_code in (2, 3)
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_an_agent_uses_the_servers_that_its_tasks_name(here: Path) -> None:
    write_servers(here, files={"how": "writes", "files": "write"}, counter="counts")
    write_tasks(
        here,
        (["files__*"], [["files__work", {}]]),
        (["counter__work"], [["counter__work", {}], ["counter__work", {}], ["files__work", {}]]),
    )
    run(here / "run", *AGENT)
    first, second = read(here / "run")
    assert first.answer == "written"
    assert [file.path for file in first.deliverables] == ["outputs/note.txt"]
    assert [(call.tool, call.backend, call.jail) for call in first.calls] == [
        ("files__work", "tool server bad 0", "bubblewrap")
    ]
    replies = [step.parts[0].content for step in second.trace if isinstance(step, ReplyStep)]
    assert replies == ["1", "2"]
    refused = [step for step in second.trace if isinstance(step, CallStep) and step.error]
    assert "Unknown tool 'files__work'. Known tools: counter__work." in str(refused[0].error)
    pins = read_manifest(here / "run").spec.server_pins
    assert {name: [*pin.tools] for name, pin in pins.items()} == {
        "counter": ["counter__work"],
        "files": ["files__work"],
    }


def test_a_harness_and_a_server_share_the_tasks_outputs(here: Path) -> None:
    write_servers(here, files={"how": "writes", "files": "write"})
    write_tasks(here, (["files__*"], []))
    program = calling_harness([("files__work", {})], "done")
    program += "\nimport pathlib\npath = pathlib.Path('outputs/note.txt')\n"
    program += "path.write_text(path.read_text() + ', and the harness')\n"
    (here / "harness.py").write_text(program, encoding="utf-8")
    run(here / "run", "--harness", "python3 harness.py", "--no-preflight")
    (unit,) = read(here / "run")
    assert [(call.tool, call.status) for call in unit.calls] == [("files__work", "done")]
    note = here / "run/files/0/outputs/note.txt"
    assert note.read_text() == "from the server, and the harness"
    assert note.stat().st_uid == here.stat().st_uid


def test_a_run_can_add_a_server_of_mcp_json_to_every_task(here: Path) -> None:
    shared: dict[str, Any] = {
        "mcpServers": {
            "counter": {"type": "stdio", "command": sys.executable},
            "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
        }
    }
    shared["mcpServers"]["counter"] |= {"args": [str(BAD), "writes"], "disabled": False}
    (here / ".mcp.json").write_text(json.dumps(shared), encoding="utf-8")
    (here / "gta.toml").write_text('[tool_servers.counter]\nfiles = "write"\n', encoding="utf-8")
    write_tasks(here, (["OCR"], [["counter__work", {}]]))
    run(here / "run", *AGENT, "--tool-server", "counter")
    (unit,) = read(here / "run")
    assert unit.answer == "written"
    assert read_manifest(here / "run").spec.tool_servers == ("counter",)


def test_a_tape_replaces_the_servers_and_a_miss_names_the_nearest_call(here: Path) -> None:
    write_servers(here, files={"how": "writes", "files": "write"}, counter="counts")
    tools = ["files__*", "counter__*"]
    calls = [["counter__work", {}], ["files__work", {}], ["counter__work", {}]]
    write_tasks(here, (tools, calls), (["counter__*"], [["counter__work", {}]]))
    run(here / "live", *AGENT, "--tape", "tape", "--tape-mode", "record")
    (here / "gta.toml").unlink()
    run(here / "again", *AGENT, "--tape", "tape")
    live, again = read(here / "live"), read(here / "again")
    assert [unit.trace for unit in again] == [unit.trace for unit in live]
    assert [unit.deliverables for unit in again] == [unit.deliverables for unit in live]
    assert [unit.answer for unit in again] == ["1 written 2", "1"]
    assert {call.taped for unit in again for call in unit.calls} == {"replayed"}
    specs = [read_manifest(here / name).spec for name in ("live", "again")]
    assert specs[0].server_pins == specs[1].server_pins
    # Another task has another state, so even the same call has no reply there.
    write_tasks(here, (tools, [["counter__work", {"n": 2}]]), (["files__*"], [["files__work", {}]]))
    run(here / "other", *AGENT, "--tape", "tape")
    for unit, nearest in zip(
        read(here / "other"), ("counter__work()", "files__work()"), strict=True
    ):
        (call,) = unit.calls
        assert call.taped == "missing"
        assert f"Nearest recorded call: {nearest} in task 0" in call.message
        assert "gave no reply" in unit.answer and "Nearest" not in unit.answer


def test_changed_tools_are_named_before_anything_starts(here: Path) -> None:
    write_servers(here, counter="counts")
    write_tasks(here, (["counter__*"], [["counter__work", {}]]))
    record = (*AGENT, "--tape", "tape", "--tape-mode", "record")
    run(here / "run", *record)
    write_servers(here, counter="changed")
    said = refuse(here / "more", *record)
    assert "recorded with other tools: counter__work has another schema" in said
    assert not (here / "more").exists()
    (here / "tape").rename(here / "elsewhere")
    said = refuse(here / "run", *record, "--epochs", "2")
    assert "was run with other tools: counter__work has another schema" in said


def test_a_server_that_dies_or_changes_fails_its_unit_and_the_run_goes_on(here: Path) -> None:
    write_servers(here, mortal="dies", counter="counts", liar="lies about its schema")
    write_tasks(
        here,
        (["mortal__*"], [["mortal__work", {}]]),
        (["liar__*"], [["liar__work", {}]]),
        (["counter__*"], [["counter__work", {}]]),
    )
    run(here / "run", *AGENT, code=1)
    dead, changed, alive = read(here / "run")
    assert "is gone: it ended with status 3 and said 'out of ideas'" in str(dead.failure)
    assert "has changed since the run began: liar__work has another schema" in str(changed.failure)
    assert alive.answer == "1"


def test_keys_are_nowhere_in_tape_and_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_WORD", KEY)
    write_servers(here, echo={"how": "echoes", "env": {"OWN_KEY": "${MY_SECRET_WORD}"}})
    write_tasks(here, (["echo__*"], [["echo__work", {"key": KEY, KEY: [KEY]}]]))
    run(here / "run", *AGENT, "--tape", "tape", "--tape-mode", "record")
    (unit,) = read(here / "run")
    assert "[redacted:MY_SECRET_WORD]" in unit.answer
    for folder in ("tape", "run"):
        for file in (here / folder).rglob("*"):
            assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    run(here / "again", *AGENT, "--tape", "tape")
    assert read(here / "again")[0].answer == unit.answer


def test_the_tools_of_a_server_are_listed_with_their_digests(here: Path) -> None:
    write_servers(here, counter="counts")
    result = gta("tools", "list", "--server", "counter")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("counter__work  ")
    assert "counter: 1 tool, digest " in result.stderr
    (spec,) = json.loads(gta("tools", "list", "--server", "counter", "--json").stdout)
    assert spec["served"]["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("tools", "servers", "message"),
    [
        (["nobody__*"], {}, "Tool server 'nobody' has no `command` or `url`"),
        (["counter__wrok"], {"counter": "counts"}, "did you mean 'counter__work'?"),
        (["c__*"], {"c": "dies at once"}, "it ended with status 1 and said 'no license'"),
        (["c__*"], {"c": {"how": "counts", "readable": ["data"]}}, "could read"),
        (["c__*"], {"c": {"how": "counts", "readable": ["no-such"]}}, "no-such does not exist"),
    ],
)
def test_what_cannot_run_is_said_in_one_line(
    here: Path, tools: list[str], servers: dict[str, Any], message: str
) -> None:
    write_servers(here, **servers)
    write_tasks(here, (tools, []))
    assert message in refuse(here / "run", *AGENT)
    assert not (here / "run").exists()
