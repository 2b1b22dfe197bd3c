"""The state of tool servers: kept before and after, in runs, on tapes, and decided by checks."""

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gta_bench.cli.bundles import _list_artefacts
from gta_bench.confine.files import read_below
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ConfigError, ToolServerFailure
from gta_bench.judge_quality.judge_runs import make_bridge
from gta_bench.records.files import Deliverable
from gta_bench.records.tool_servers import ServerState
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.serving import server_state
from gta_bench.serving.server_tools import open_server
from gta_bench.serving.tool_servers import choose_servers
from gta_bench.settings import Settings, ToolServerSettings
from tests.harnesses.mcp_calls import calling_harness
from tests.needs import needs
from tests.served.foreign import bad, own
from tests.served.test_server_runs import AGENT, KEY, gta, read, run, write_servers

pytestmark = needs("bwrap")
WORK = "own__work"
Calls = list[dict[str, Any]]


def observe(
    server: ToolServerSettings, folder: Path, calls: Calls, tool: str = WORK
) -> tuple[ServerState, dict[str, bytes]]:
    """The state after these calls, and the content of its files by digest."""
    kept: dict[str, bytes] = {}

    def keep(path: str, data: bytes) -> Deliverable:
        digest = hashlib.sha256(data).hexdigest()
        kept[digest] = data
        return Deliverable(path=path, digest=digest, size=len(data))

    async def go() -> ServerState | None:
        workspace = Workspace.create(folder, {})
        async with open_server("own", server, workspace, keep) as source:
            for arguments in calls:
                await source.call(workspace, tool, arguments)
            return await source.read_state()

    state = asyncio.run(go())
    assert state is not None
    return state, kept


def contents(files: tuple[Deliverable, ...], kept: Mapping[str, bytes]) -> dict[str, str]:
    return {file.path: kept[file.digest].decode() for file in files}


def test_a_folder_is_kept_before_the_first_and_after_the_last_call(tmp_path: Path) -> None:
    calls: Calls = [
        {"write": {"data/a/tea.txt": "Assam", "other.txt": "not in the folder"}},
        {"late": True},
    ]
    state, kept = observe(bad("has a state", state="data"), tmp_path, calls)
    first = {"data/first.txt": "from the beginning"}
    assert contents(state.before.files, kept) == first
    assert contents(state.after.files, kept) == {
        **first,
        "data/a/tea.txt": "Assam",
        "data/late.txt": "at the end",  # when its input was closed
    }


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (".", ["data/first.txt", "outputs-of-mine.txt"]),
        ("data/first.txt", ["data/first.txt"]),
        ("no/such", []),
    ],
)
def test_a_state_is_a_file_a_folder_or_everything_and_never_the_outputs(
    tmp_path: Path, path: str, names: list[str]
) -> None:
    calls: Calls = [{"write": {"outputs/planted.txt": "planted", "outputs-of-mine.txt": "mine"}}]
    state, _ = observe(bad("has a state", state=path, files="write"), tmp_path, calls)
    assert [file.path for file in state.after.files] == names
    assert (tmp_path / "outputs/planted.txt").is_file()


def test_links_out_of_the_folder_are_noted_and_not_followed(tmp_path: Path) -> None:
    links = {"data/passwd": "/etc/passwd", "data/etc": "/etc", "data/up": "../.."}
    state, kept = observe(bad("has a state", state="data"), tmp_path, [{"link": links}])
    assert [file.path for file in state.after.files] == ["data/first.txt"]
    assert state.after.strays == ("data/etc", "data/passwd", "data/up")
    assert not any(b"root:" in data for data in kept.values())
    swapped, _ = observe(bad("has a state", state="x/y"), tmp_path, [{"link": {"x": "/etc"}}])
    assert (swapped.after.files, swapped.after.strays) == ((), ("x",))


def test_a_command_is_the_user_of_the_server(tmp_path: Path) -> None:
    """Git refuses a repository of another user, and nobody else may read private files."""
    words = "test -O data/first.txt && chmod 600 data/* && cat data/first.txt"
    server = bad("has a state", state_command=["sh", "-c", words])
    state, kept = observe(server, tmp_path, [])
    assert contents(state.after.files, kept) == {"stdout": "from the beginning"}


def test_a_command_prints_the_state_in_a_cell_with_the_folder_of_the_server(
    tmp_path: Path,
) -> None:
    words = "ls data; cat /etc/hostname /root/* outputs/* 2>&1 | grep -c No.such"
    server = bad("has a state", state_command=["sh", "-c", words], files="write")
    state, kept = observe(server, tmp_path, [{"write": {"data/b.txt": "b", "outputs/x": "x"}}])
    assert [file.path for file in state.after.files] == ["stdout"]
    said = [kept[one.files[0].digest].decode().split() for one in (state.before, state.after)]
    assert said == [["first.txt", "3"], ["b.txt", "first.txt", "3"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sh", "-c", "echo no >&2; exit 4"], "failed, it ended with status 4 and said 'no'"),
        (["sleep", "60"], "took more than 0.5 seconds"),
        (["sh", "-c", "yes | head -c 3000000"], "printed more than 1000000 bytes"),
        (["no-such-program"], "program 'no-such-program' of `state_command` not found"),
    ],
)
def test_a_command_that_fails_fails_the_unit_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.setattr(server_state, "MOST_BYTES", 1_000_000)
    server = bad("has a state", state_command=words, call_seconds=0.5)
    with pytest.raises((ToolServerFailure, ConfigError)) as caught:
        observe(server, tmp_path, [])
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_state_that_a_system_makes_too_large_is_not_ours_to_excuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = bad("has a state", state="data")
    state, _ = observe(server, tmp_path / "a", [{"large": {"data/big": 65 << 20}}])
    assert state.excess == "it has more than 67108864 bytes"
    assert [file.path for file in state.before.files] == ["data/first.txt"]
    monkeypatch.setattr(server_state, "MOST_BYTES", 3)
    with pytest.raises(ToolServerFailure, match="more than 3 bytes"):
        observe(server, tmp_path / "b", [])


def test_the_state_of_a_server_that_has_died_is_what_it_left(tmp_path: Path) -> None:
    async def go() -> ServerState | None:
        workspace = Workspace.create(tmp_path, {})

        def keep(path: str, data: bytes) -> Deliverable:
            return Deliverable(path=path, digest="0" * 64, size=len(data))

        async with open_server("own", bad("has a state", state="data"), workspace, keep) as source:
            with pytest.raises(ToolServerFailure):
                await source.call(workspace, WORK, {"write": {"data/x": "x"}, "die": True})
            return await source.read_state()

    state = asyncio.run(go())
    assert state is not None
    assert [file.path for file in state.after.files] == ["data/first.txt", "data/x"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"state": "/etc"}, "a path in /workspace"),
        ({"state": "a/../../b"}, "a path in /workspace"),
        ({"state": "outputs/db"}, "not in `inputs` or `outputs`"),
        ({"state": "data", "state_command": ["ls"]}, "not both"),
    ],
)
def test_a_state_outside_of_the_folder_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bad("has a state", **given)


def test_a_server_on_http_has_no_state_to_keep() -> None:
    servers = {"far": {"url": "http://127.0.0.1:9/mcp", "state": "data"}}
    settings = Settings.model_validate({"tool_servers": servers})
    with pytest.raises(ConfigError, match="its state is out of reach"):
        choose_servers(settings, ["far"])


def test_pipes_deep_folders_and_many_files_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_text("a")
    limits = {"most_bytes": 10, "most_files": 2}
    assert sorted(read_below(tmp_path, ".", **limits)) == [("a", b"a"), ("pipe", None)]
    (tmp_path / "b").write_text("b")
    with pytest.raises(OSError, match="more than 2 files"):
        list(read_below(tmp_path, ".", **limits))
    (tmp_path / "b").write_bytes(b"b" * 11)
    with pytest.raises(OSError, match="more than 10 bytes"):
        list(read_below(tmp_path, "b", **limits))
    (tmp_path / "deep" / "/".join("d" * 70)).mkdir(parents=True)
    with pytest.raises(OSError, match="levels of folders"):
        list(read_below(tmp_path, "deep", **limits))


# Runs

NOTES = "CREATE TABLE notes (text); INSERT INTO notes VALUES ('Assam'), ('Ceylon');"
COUNT = {"path": "data/notes.db", "query": "SELECT count(*) FROM notes", "equals": 2}
CHECKS: list[dict[str, Any]] = [
    {"is": "sqlite.query", "server": "notes", **COUNT},
    {"is": "state.file", "server": "notes", "path": "data/first.txt", "changed": False},
    {"is": "state.file", "server": "notes", "path": "data/tea.txt", "all": ["Assam"]},
]
RIGHT: Calls = [{"sql": NOTES}, {"write": {"data/tea.txt": "Assam"}}]
WRONG: Calls = [{"sql": NOTES.replace("('Assam'), ", "")}, {"write": {"data/tea.txt": "Oolong"}}]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write_tasks(folder: Path, **tasks: Calls) -> None:
    """Task folders whose requests list the calls to make; their leaves look at the state."""
    for name, calls in tasks.items():
        task = folder / "data" / name
        task.mkdir(parents=True, exist_ok=True)
        lines = ["format = 1", f'id = "{name}"', 'category = "Planning & Decision Support"']
        lines.append('tools = ["notes__*"]')
        for number, check in enumerate(CHECKS):
            pairs = ", ".join(f"{key} = {json.dumps(value)}" for key, value in check.items())
            lines += ["[[leaf]]", f'id = "leaf{number}"', f'says = "It is done, {number}."']
            lines.append(f"checks = [{{ {pairs} }}]")
        (task / "task.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        request = json.dumps([["notes__work", arguments] for arguments in calls])
        (task / "request.md").write_text(request + "\n", encoding="utf-8")


def verdicts(out: Path) -> dict[tuple[str, str], float | str]:
    """The points of each leaf, or why there are none."""
    found: dict[tuple[str, str], float | str] = {}
    for key, row in read_verdicts(out).items():
        match row.verdict:
            case Scored(value=value):
                found[key.task, key.leaf] = value
            case Unscored(detail=detail):
                found[key.task, key.leaf] = detail
    return found


def points(out: Path) -> dict[str, list[float | str]]:
    found: dict[str, list[float | str]] = {}
    for (task, _), value in sorted(verdicts(out).items()):
        found.setdefault(task, []).append(value)
    return found


def test_a_run_is_decided_by_the_state_and_so_is_its_replay_without_the_server(
    here: Path,
) -> None:
    write_servers(here, notes={"how": "has a state", "state": "data"})
    write_tasks(here, right=RIGHT, wrong=WRONG, idle=[])
    run(here / "live", *AGENT, "--tape", "tape", "--tape-mode", "record")
    expected = {"idle": [0.0, 10.0, 0.0], "right": [10.0] * 3, "wrong": [0.0, 10.0, 0.0]}
    assert points(here / "live") == expected
    (here / "gta.toml").unlink()
    run(here / "again", *AGENT, "--tape", "tape")
    assert points(here / "again") == expected
    live, again = read(here / "live"), read(here / "again")
    assert [unit.states for unit in again] == [unit.states for unit in live]
    assert all(unit.states for unit in live)
    # Other calls, and the same ones in another order, have a state that nobody knows.
    write_tasks(here, right=RIGHT[:1], wrong=WRONG[::-1], idle=[])
    run(here / "other", *AGENT, "--tape", "tape", code=1)
    found = points(here / "other")
    assert found["idle"] == expected["idle"]
    for task in ("right", "wrong"):
        assert all("made other calls than those" in str(one) for one in found[task])


def test_a_deliverable_with_the_name_of_a_state_changes_nothing(here: Path) -> None:
    write_servers(here, notes={"how": "has a state", "state": "data"})
    write_tasks(here, right=[])
    program = calling_harness([("notes__work", {})], "done")
    program += "\nimport pathlib, sqlite3\nplace = pathlib.Path('outputs/data')\nplace.mkdir()\n"
    program += "(place / 'tea.txt').write_text('Assam')\n"
    program += f"sqlite3.connect('outputs/data/notes.db').executescript({NOTES!r})\n"
    (here / "harness.py").write_text(program, encoding="utf-8")
    run(here / "run", "--harness", "python3 harness.py", "--no-preflight")
    assert points(here / "run") == {"right": [0.0, 10.0, 0.0]}
    (unit,) = read(here / "run")
    assert {file.path for file in unit.deliverables} == {
        "outputs/data/notes.db",
        "outputs/data/tea.txt",
    }


def test_without_a_declared_state_leaves_are_unscored(
    here: Path,
) -> None:
    write_servers(here, notes={"how": "has a state"})
    write_tasks(here, right=RIGHT)
    run(here / "run", *AGENT, code=1)
    assert all("Declare `state`" in str(one) for one in points(here / "run")["right"])


def test_a_snapshot_that_fails_leaves_the_unit_unscored_and_the_same_command_runs_it_again(
    here: Path,
) -> None:
    huge = {"how": "has a state", "state_command": ["sh", "-c", "exit 7"]}
    write_servers(here, notes=huge)
    write_tasks(here, right=RIGHT)
    run(here / "run", *AGENT, code=1)
    (unit,) = read(here / "run")
    assert "The state of tool server 'notes' cannot be read" in str(unit.failure)
    assert not points(here / "run")
    write_servers(here, notes={"how": "has a state", "state": "data"})
    run(here / "run", *AGENT)
    assert points(here / "run") == {"right": [10.0] * 3}


def test_a_harness_whose_attempts_are_used_up_is_scored_by_the_state_that_it_left(
    here: Path,
) -> None:
    write_servers(here, notes={"how": "has a state", "state": "data"})
    toml = here / "gta.toml"
    toml.write_text(toml.read_text() + "[budget]\nmax_attempts = 1\n", encoding="utf-8")
    write_tasks(here, right=[])
    calls = [("notes__work", arguments) for arguments in (*RIGHT, {"die": True})]
    (here / "harness.py").write_text(calling_harness(calls, "done"), encoding="utf-8")
    run(here / "run", "--harness", "python3 harness.py", "--no-preflight")
    assert points(here / "run") == {"right": [10.0] * 3}


def test_keys_in_a_state_are_nowhere_in_run_and_tape(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_WORD", KEY)
    env = {"OWN_KEY": "${MY_SECRET_WORD}"}
    write_servers(here, notes={"how": "has a state", "state": "data", "env": env})
    insert = NOTES.replace("Ceylon", KEY)
    write_tasks(here, right=[{"sql": insert, "write": {"data/tea.txt": f"Assam {KEY}"}}])
    run(here / "run", *AGENT, "--tape", "tape", "--tape-mode", "record")
    # The database can still be read: marks in it are as long as the key.
    assert points(here / "run") == {"right": [10.0] * 3}
    for folder in ("tape", "run"):
        for file in (here / folder).rglob("*"):
            assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_a_stored_state_is_checked_again_without_the_server(here: Path) -> None:
    write_servers(here, notes={"how": "has a state", "state": "data"})
    write_tasks(here, right=RIGHT)
    run(here / "run", *AGENT)
    (here / "gta.toml").unlink()
    toml = here / "data/right/task.toml"
    toml.write_text(toml.read_text().replace("equals = 2", "equals = 3"), encoding="utf-8")
    result = gta("score", here / "run", "--data", "data")
    assert result.exit_code == 0, result.output
    assert points(here / "run") == {"right": [0.0, 10.0, 10.0]}
    assert {file.path for file in _list_artefacts(here / "run")} == {
        "right/states/notes/before/data/first.txt",
        *(f"right/states/notes/after/data/{name}" for name in ("first.txt", "notes.db", "tea.txt")),
    }
    assert make_bridge(here / "run", here / "bridge", count=None, seed=0) == len(CHECKS)
    assert [unit.states for unit in read(here / "bridge")] == [
        unit.states for unit in read(here / "run")
    ]
    assert gta("score", here / "bridge").exit_code == 0
    assert points(here / "bridge") == points(here / "run")


def test_a_real_server_with_a_database(tmp_path: Path) -> None:
    calls: Calls = [{"text": "Assam"}, {"text": "Ceylon"}]
    state, kept = observe(own(state="data"), tmp_path, calls, "own__store")
    assert state.before.files == ()
    names = [file.path for file in state.after.files]
    assert "data/notes.db" in names
    assert any(b"Ceylon" in data for data in kept.values())
