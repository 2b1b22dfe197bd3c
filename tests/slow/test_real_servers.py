"""Five published MCP servers: ten tasks by an agent, a command and Codex, and replayed."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from pydantic import JsonValue

import gta_bench
from gta_bench.harnesses.choice import Harness
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Unscored
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.check_run import read_score
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.runs.verdicts import read_verdicts
from tests.needs import needs, require_programs
from tests.served.test_server_runs import gta

pytestmark = [pytest.mark.slow, needs("bwrap")]
NODE = ("filesystem", "everything", "memory")
NODE_VERSION = "2026.8.31"
PYTHON = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
# What these two need besides the packages that we need ourselves.
NEEDED = ("gitpython", "gitdb", "smmap", "tzlocal", "tzdata")
NAME = "mockllm/model"
COUNTS = {"files": 14, "everything": 13, "memory": 9, "git": 12, "time": 2}
REPO = {"repo_path": "/workspace/repo"}
# Of today, where it is about noon now: a conversion has a date, which must not change in between.
HOUR = datetime.now(UTC).hour
NOON = {"source_timezone": f"Etc/GMT{HOUR - 12:+d}", "time": "12:00"}
TEA = {"name": "tea", "entityType": "drink", "observations": ["from leaves"]}
MILK = {"name": "milk", "entityType": "drink", "observations": ["white"]}
Calls = list[tuple[str, dict[str, Any]]]
# Calls, and the checks that decide each task.
TASKS: dict[str, tuple[Calls, str]] = {
    "files-write": (
        [("files__write_file", {"path": "outputs/tea.txt", "content": "Assam and Ceylon"})],
        '{ is = "text.contains", file = "tea.txt", all = ["Assam", "Ceylon"] }',
    ),
    "files-edit": (
        [
            ("files__write_file", {"path": "outputs/a.txt", "content": "black tea"}),
            (
                "files__edit_file",
                {"path": "outputs/a.txt", "edits": [{"oldText": "black", "newText": "green"}]},
            ),
            ("files__read_text_file", {"path": "/etc/passwd"}),
        ],
        '{ is = "text.contains", file = "a.txt", all = ["green tea"] }',
    ),
    "everything-picture": (
        [("everything__get-tiny-image", {})],
        '{ is = "file.kind", file = "*.png", kind = "png" }',
    ),
    "everything-blob": (
        [
            ("everything__get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
            ("everything__get-resource-links", {"count": 2}),
            ("everything__get-sum", {"a": 20, "b": 22}),
        ],
        '{ is = "answer.contains", all = ["42", "demo://resource"] }',
    ),
    "memory-create": (
        [("memory__create_entities", {"entities": [TEA]}), ("memory__read_graph", {})],
        '{ is = "answer.contains", all = ["from leaves"] }',
    ),
    "memory-relate": (
        [
            ("memory__create_entities", {"entities": [TEA, MILK]}),
            (
                "memory__create_relations",
                {"relations": [{"from": "tea", "to": "milk", "relationType": "takes"}]},
            ),
            ("memory__open_nodes", {"names": ["milk"]}),
        ],
        '{ is = "answer.contains", all = ["takes", "white"] }',
    ),
    "git-status": (
        [("git__git_status", REPO), ("git__git_log", {"repo_path": "/workspace/none"})],
        '{ is = "answer.contains", all = ["nothing to commit"] }',
    ),
    "git-branch": (
        [
            ("git__git_create_branch", {**REPO, "branch_name": "oolong"}),
            ("git__git_show", {**REPO, "revision": "oolong"}),
        ],
        '{ is = "answer.contains", all = ["oolong", "the first leaf"] }',
    ),
    "time-tokyo": (
        [("time__convert_time", {**NOON, "target_timezone": "Asia/Tokyo"})],
        f'{{ is = "answer.contains", all = ["T{(HOUR + 9) % 24:02d}:00:00+09:00"] }}',
    ),
    "time-nowhere": (
        [
            ("time__convert_time", {**NOON, "target_timezone": "Nowhere/Land"}),
            ("time__convert_time", {**NOON, "target_timezone": "UTC"}),
        ],
        '{ is = "answer.contains", all = ["Invalid timezone"] }',
    ),
}
COMMAND = """
import json, os, urllib.request

task = json.load(open(os.environ["GTA_TASK_FILE"]))
said = []
for name, arguments in json.loads(task["request"].splitlines()[-1]):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body["params"] = {"name": name, "arguments": arguments}
    headers = {
        "Authorization": "Bearer " + os.environ["GTA_MCP_TOKEN"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(os.environ["GTA_MCP_URL"], json.dumps(body).encode(), headers)
    result = json.load(urllib.request.urlopen(request))["result"]
    said += [block["text"] for block in result["content"] if block["type"] == "text"]
print(" ".join(said))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The servers, from npm and from PyPI."""
    require_programs("npm")
    folder = tmp_path_factory.mktemp("servers")
    names = [f"@modelcontextprotocol/server-{name}@{NODE_VERSION}" for name in NODE]
    npm = ["npm", "install", "--no-audit", "--no-fund", "--silent", *names]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", "python"]
    for command in (npm, [*pip, *PYTHON, *NEEDED]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    subprocess.run(["chmod", "-R", "o+rX", str(folder)], check=True)
    return folder


def list_servers(installed: Path) -> dict[str, Any]:
    """The settings of the five servers."""
    modules, packages = installed / "node_modules/.bin", str(installed / "python")
    python = {"readable": [packages], "env": {"PYTHONPATH": packages}}
    make = (
        "git init -q repo && cd repo && git config user.name T && git config user.email t@t && "
        "git commit -q --allow-empty -m 'the first leaf' && exec \"$@\""
    )
    git = ["-c", make, "sh", sys.executable, "-m", "mcp_server_git"]
    return {
        "files": {
            "command": str(modules / "mcp-server-filesystem"),
            "args": ["/workspace"],
            "files": "write",
        },
        "everything": {"command": str(modules / "mcp-server-everything")},
        "memory": {
            "command": str(modules / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": "/workspace/memory.json"},
        },
        "git": {"command": "sh", "args": git, **python},
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"], **python},
    }


# The same, decided by what the servers have afterwards: right, wrong, and nothing done.
MEMORY = 'is = "state.file", server = "memory", path = "memory.json"'
FILE = 'is = "state.file", server = "files", path = "teas/list.txt"'
BRANCH = '{ is = "state.file", server = "git", path = "stdout", changed = true, all = ["oolong"] }'
STATES: dict[str, tuple[Calls, str]] = {
    "files-right": (
        [
            ("files__create_directory", {"path": "/workspace/teas"}),
            ("files__write_file", {"path": "/workspace/teas/list.txt", "content": "Assam"}),
        ],
        f'{{ {FILE}, all = ["Assam"] }}',
    ),
    "files-wrong": (
        # A deliverable with the wanted content and name is no state.
        [
            ("files__create_directory", {"path": "/workspace/outputs/teas"}),
            ("files__write_file", {"path": "outputs/teas/list.txt", "content": "Assam"}),
        ],
        f'{{ {FILE}, all = ["Assam"] }}',
    ),
    "files-idle": ([], f"{{ {FILE} }}"),
    "memory-right": (
        [
            ("memory__create_entities", {"entities": [TEA, MILK]}),
            ("memory__delete_entities", {"entityNames": ["milk"]}),
        ],
        f'{{ {MEMORY}, changed = true, all = ["from leaves"], none = ["milk"] }}',
    ),
    "memory-wrong": (
        [("memory__create_entities", {"entities": [TEA, MILK]})],
        f'{{ {MEMORY}, changed = true, all = ["from leaves"], none = ["milk"] }}',
    ),
    "memory-idle": ([], f"{{ {MEMORY}, changed = true }}"),
    "git-right": ([("git__git_create_branch", {**REPO, "branch_name": "oolong"})], BRANCH),
    "git-wrong": ([("git__git_create_branch", {**REPO, "branch_name": "assam"})], BRANCH),
    "git-idle": ([("git__git_status", REPO)], BRANCH),
}
DECLARED: dict[str, dict[str, Any]] = {
    "files": {"state": "."},
    "memory": {"state": "memory.json"},
    "git": {"state_command": ["git", "-C", "repo", "branch", "--format=%(refname:short)"]},
}


def write_tasks(folder: Path, tasks: dict[str, tuple[Calls, str]] = TASKS) -> Path:
    for name, (calls, check) in tasks.items():
        task = folder / name
        task.mkdir(parents=True)
        server = name.partition("-")[0]
        lines = ["format = 1", f'id = "{name}"', 'category = "Planning & Decision Support"']
        lines += [f'tools = ["{server}__*"]', "[[leaf]]", 'id = "done"', 'says = "It is done."']
        (task / "task.toml").write_text("\n".join([*lines, f"checks = [{check}]"]) + "\n")
        (task / "request.md").write_text(f"Make these calls.\n{json.dumps(calls)}\n")
    return folder


def write_settings(folder: Path, servers: dict[str, Any]) -> None:
    """The same servers in gta.toml."""
    lines = []
    for name, server in servers.items():
        lines.append(f"[tool_servers.{name}]")
        plain = {key: value for key, value in server.items() if key != "env"}
        lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
        lines += [
            f"env.{key} = {json.dumps(value)}" for key, value in server.get("env", {}).items()
        ]
    (folder / "gta.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain(name: str) -> str:
    return name.replace("-", "_")


def scripted() -> Model:
    """Makes the calls that the request lists, and repeats what the tools said."""

    def reply(messages: list[ChatMessage], tools: Any, choice: Any, config: Any) -> ModelOutput:
        request = next(one.text for one in messages if "Make these calls." in one.text)
        line = next(line for line in request.splitlines() if line.startswith("["))
        said = [one.text for one in messages if one.role == "tool"]
        calls = json.loads(line)
        if len(said) < len(calls):
            name, arguments = calls[len(said)]
            # Codex writes `get_sum` for the tool `get-sum`.
            offered = next(tool.name for tool in tools if plain(tool.name).endswith(plain(name)))
            output = ModelOutput.for_tool_call(NAME, offered, arguments)
        else:
            output = ModelOutput.from_content(NAME, " ".join(said) or "Nothing to do.")
        # Without it, Inspect counts tokens with a vocabulary from the network.
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


def read(out: Path) -> tuple[WorkflowUnit, ...]:
    spec = read_manifest(out).spec
    return read_units(log_folder(out), spec.tasks, spec.epochs, WorkflowUnit).units


def test_states_of_published_servers_decide_tasks_also_without_the_servers(
    installed: Path, tmp_path: Path
) -> None:
    data, tape = write_tasks(tmp_path / "tasks", STATES), tmp_path / "tape"
    servers: dict[str, JsonValue] = {
        name: {**server, **DECLARED[name]}
        for name, server in list_servers(installed).items()
        if name in DECLARED
    }
    gta_bench.run(
        *("workflow", tmp_path / "live"),
        data=data,
        model=scripted(),
        settings={"tool_servers": servers},
        tape=tape,
        tape_mode="record",
    )
    gta_bench.run(
        *("workflow", tmp_path / "again"), data=data, model=scripted(), settings={}, tape=tape
    )
    expected = {name: 10.0 if name.endswith("right") else 0.0 for name in STATES}
    for name in ("live", "again"):
        rows = read_verdicts(tmp_path / name)
        assert {key.task: read_score(row) for key, row in rows.items()} == expected
    units, replayed = read(tmp_path / "live"), read(tmp_path / "again")
    assert [unit.states for unit in replayed] == [unit.states for unit in units]
    # Without a declared state, nothing is decided.
    undeclared: Any = {"tool_servers": {"memory": list_servers(installed)["memory"]}}
    gta_bench.run(
        *("workflow", tmp_path / "none"),
        data=data,
        model=scripted(),
        settings=undeclared,
        tasks=["memory-right"],
    )
    (row,) = read_verdicts(tmp_path / "none").values()
    assert isinstance(row.verdict, Unscored) and "Declare `state`" in row.verdict.detail


@pytest.mark.measure
def test_codex_does_the_ten_tasks(installed: Path, codex: str, tmp_path: Path) -> None:
    scores = gta_bench.run(
        *("workflow", tmp_path / "codex"),
        data=write_tasks(tmp_path / "tasks"),
        model=scripted(),
        harness=Harness(kind="named", target="codex", version=codex),
        # Each unit starts a program every 5 s: ten of them leave nothing of two cores to others.
        settings={"tool_servers": list_servers(installed), "budget": {"max_connections": 2}},
        preflight=False,
    )
    check_solved(scores)


def check_solved(scores: WorkflowScores) -> None:
    found = scores.table("check")
    assert found is not None and (found.strict.n, found.strict.root_score) == (10, 10.0)


def test_ten_tasks_over_five_published_servers_live_by_a_harness_and_replayed(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, tape = write_tasks(tmp_path / "tasks"), tmp_path / "tape"
    settings: Any = {"tool_servers": list_servers(installed)}
    live = gta_bench.run(
        *("workflow", tmp_path / "live"),
        data=data,
        model=scripted(),
        settings=settings,
        tape=tape,
        tape_mode="record",
    )
    pins = read_manifest(tmp_path / "live").spec.server_pins
    assert {name: len(pin.tools) for name, pin in pins.items()} == COUNTS
    (tmp_path / "harness.py").write_text(COMMAND)
    command = gta_bench.run(
        *("workflow", tmp_path / "command"),
        data=data,
        harness=f"python3 {tmp_path / 'harness.py'}",
        settings=settings,
        preflight=False,
    )
    write_settings(tmp_path, settings["tool_servers"])
    drifts = gta("tape", "diff", tape, "--data", data, "--json")
    said = json.loads(drifts.stdout)
    # What these two say depends on the time: a resource, and the date of a commit.
    changed = {one["tool"]: one for one in said["calls"] if one["change"] != "equal"}
    assert {*changed} == {"everything__get-resource-reference", "git__git_show"}
    assert {one["change"] for one in changed.values()} == {"changed"}
    assert (len(said["calls"]), said["definitions"]) == (20, [])
    installed.rename(installed.with_name("away"))
    again = gta_bench.run(
        *("workflow", tmp_path / "again"), data=data, model=scripted(), settings={}, tape=tape
    )
    for scores in (live, command, again):
        check_solved(scores)
    units, replayed = read(tmp_path / "live"), read(tmp_path / "again")
    assert [unit.trace for unit in replayed] == [unit.trace for unit in units]
    assert [unit.deliverables for unit in replayed] == [unit.deliverables for unit in units]
    done = [call for unit in replayed for call in unit.calls if call.status == "done"]
    assert {call.taped for call in done} == {"replayed"}
    assert {call.jail for unit in units for call in unit.calls if call.jail} == {"bubblewrap"}
