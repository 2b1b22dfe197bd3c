"""Keys planted in every place that a run has: afterwards they stand in no file that it left."""

import base64
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.leaderboard import submission
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import Parameter, ToolSpec
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.runs.verdicts import read_verdicts
from tests.builders import (
    atomic_task,
    checkpoint,
    parameter,
    tool,
    workflow_task,
    write_atomic,
    write_workflow,
)
from tests.chat_server import ChatServer, chat_server
from tests.cli.test_run import gta
from tests.needs import needs
from tests.served.support import tool_server
from tests.tools.openai_server import openai_server, png

ENVIRONMENT = {
    "PLANTED_API_KEY": "envk-71c0ffee5a5a",
    "PLANTED_PASSWORD": 'q"uo\\te/äß+77x',
    "MODEL_LOGIN": "named-93b1d2e4aa",  # by key_env of gta.toml
    "ENDPOINT_LOGIN": "endp-6c6f67696e99",
    "MY_LOGIN": "hvar-5e5e17d0cc4",  # by --harness-env
}
IN_COMMAND, IN_ADDRESS, IN_TOOLS = (
    "cmdk-0a1b2c3d4e5f",
    "urlp-44de55ad66",
    "tool-88fe77dc66-9b8a7c6d",
)
KEYS = (*ENVIRONMENT.values(), IN_COMMAND, IN_ADDRESS)
# What an agent's model and tools, and the judge, could know and repeat.
REPEATED = " and ".join(key for key in KEYS if key not in (ENVIRONMENT["MY_LOGIN"], IN_COMMAND))
TOML = """
[models.m]
model = "openai-api/local/m"
base_url = "{model}"
key_env = "MODEL_LOGIN"

[endpoints.mine]
url = "{endpoint}/v1"
model = "tiny-vlm"
key_env = "ENDPOINT_LOGIN"

[tools.ImageDescription]
endpoint = "mine"

[judge]
pictures = false
"""
HARNESS = """
import base64, gzip, json, os, sys, urllib.request, zipfile

keys = [sys.argv[2], os.environ["MY_LOGIN"]]
text = "I was given " + " and ".join(keys) + "."
os.chdir("outputs")
open("notes.md", "w").write(text)
open("notes-" + keys[1] + ".txt", "w").write("named")
open("notes.b64", "w").write(base64.b64encode(b"x" + text.encode()).decode())
open("wide.txt", "w", encoding="utf-16").write(text)
gzip.open("notes.gz", "wt").write(text)
with zipfile.ZipFile("notes.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("deep/notes.txt", text * 20)
os.symlink("/nowhere/" + keys[0], "link")
params = {"name": "Calculator", "arguments": {"expression": keys[0]}}
body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
print(urllib.request.urlopen(urllib.request.Request(
    os.environ["GTA_MCP_URL"],
    json.dumps(body).encode(),
    {
        "Authorization": "Bearer " + os.environ["GTA_MCP_TOKEN"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    },
)).read().decode())
print(text)
print(text, file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_KEY", "none")
    monkeypatch.setenv("PRIMARY_KEY", "customer_id")
    for board in submission.SIZES:
        monkeypatch.setitem(submission.SIZES, board, 1)


def views(data: bytes) -> Iterator[bytes]:
    """The bytes as they are, and all that is packed or encoded in them."""
    yield data
    yield data.replace(b"\0", b"")  # UTF-16
    if data[:2] == b"\x1f\x8b":
        yield from views(gzip.decompress(data))
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from views(archive.read(name))
    for run in re.findall(rb"[A-Za-z0-9+/_-]{12,}", data):
        plain = run.replace(b"-", b"+").replace(b"_", b"/")
        for start in range(4):
            part = plain[start:]
            yield base64.b64decode(part[: len(part) // 4 * 4])


def forms(key: str) -> set[bytes]:
    quoted = {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1]}
    return {form.encode() for form in quoted} | {key.encode().hex().encode()}


def found_in(*places: Path) -> list[str]:
    """Every key with the file that it stands in, by content or by name."""
    found = []
    for place in places:
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_symlink():
                seen = str(file.readlink()).encode()
            else:
                seen = b"\n".join(views(file.read_bytes())) if file.is_file() else b""
            seen += str(file).encode()
            found += [
                f"{key}: {file}" for key in (*KEYS, IN_TOOLS) if any(f in seen for f in forms(key))
            ]
    return found


def model_reply(request: dict[str, Any]) -> dict[str, Any]:
    """Calls a tool with keys as argument, then repeats them all."""
    if any(message["role"] == "tool" for message in request["messages"]):
        encoded = base64.b64encode(f"so {REPEATED}".encode()).decode()
        said = f"LOCAL_KEY is none, customer_id too. It costs 7: {REPEATED} {encoded}"
        return {"message": {"role": "assistant", "content": said}}
    calls = [
        ("ImageDescription", {"image": "inputs/menu.jpg"}),
        ("Calculator", {"expression": REPEATED}),
    ]
    return {
        "finish_reason": "tool_calls",
        "message": {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": name,
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for name, arguments in calls
            ],
        },
    }


def judge_reply(request: dict[str, Any]) -> str:
    (leaf,) = request["response_format"]["json_schema"]["schema"]["properties"]["leaf"]["enum"]
    return json.dumps({"leaf": leaf, "used": [], "reason": f"It says {REPEATED}.", "score": 8})


def with_password(server: ChatServer) -> str:
    return server.url.replace("://", f"://me:{IN_ADDRESS}@")


def finish(out: Path, folder: Path) -> list[Path]:
    """Score, report and pack the run."""
    page, bundle = folder / "page.html", folder / "bundle.zip"
    for words in (
        ("score", out),
        ("report", out, "--html", page),
        ("leaderboard", "submit", out, "--out", bundle, "--key", folder / "sign.pem"),
    ):
        result = gta(*words)
        assert result.exit_code == 0, result.output
    return [out, page, bundle]


def test_an_agent_whose_model_and_tools_repeat_keys_leaves_none(
    tmp_path: Path, loopback: None
) -> None:
    names = [tool("ImageDescription"), tool("Calculator", parameter("expression"))]
    data = write_atomic(tmp_path / "data", {"0": atomic_task(tools=names)}, names)
    (data / "image" / "menu.jpg").write_bytes(png())
    with openai_server() as endpoint, chat_server(model_reply) as server:
        endpoint.say = f"A menu with {REPEATED}."
        toml = TOML.format(model=with_password(server), endpoint=endpoint.origin)
        Path("gta.toml").write_text(toml, encoding="utf-8")
        result = gta(
            *("run", "atomic", "--mode", "end-to-end", "--data", data, "--model", "m"),
            *("--similarity", "exact-or-half", "--out", tmp_path / "run"),
        )
    assert result.exit_code == 0, result.output
    (unit,) = read_units(log_folder(tmp_path / "run"), ("0",), 1, AtomicUnit).units
    assert unit.answer is not None and "LOCAL_KEY is none, customer_id too." in unit.answer
    assert "[redacted:PLANTED_API_KEY] and [redacted:PLANTED_PASSWORD]" in unit.answer
    assert [call.status for call in unit.calls] == ["done", "error"]
    assert found_in(*finish(tmp_path / "run", tmp_path)) == []


@pytest.mark.slow
@needs("bwrap")
def test_a_harness_that_writes_its_keys_everywhere_leaves_none(
    tmp_path: Path, loopback: None
) -> None:
    names = [tool("Calculator", parameter("expression"))]
    task = workflow_task(tools=names, sub_tasks=[checkpoint("cp1")])
    data = write_workflow(tmp_path / "data", {"0": task}, names)
    Path("harness.py").write_text(HARNESS, encoding="utf-8")
    command = f"python3 harness.py --api-key {IN_COMMAND} --password hunter2"
    with chat_server(judge_reply) as server:
        toml = TOML.format(model=with_password(server), endpoint="http://127.0.0.1:9")
        Path("gta.toml").write_text(toml, encoding="utf-8")
        result = gta(
            *("run", "workflow", "--data", data, "--harness", command, "--judge", "m"),
            *("--harness-env", "MY_LOGIN", "--out", tmp_path / "run"),
        )
    assert result.exit_code == 0, result.output
    manifest = read_manifest(tmp_path / "run")
    shown = manifest.spec.system.harness or ""
    assert shown.endswith("--api-key [redacted:harness] --password [redacted:harness]")
    (unit,) = read_units(log_folder(tmp_path / "run"), ("0",), 1, WorkflowUnit).units
    assert "[redacted:harness] and [redacted:MY_LOGIN]." in (unit.answer or "")
    assert [file.path for file in unit.deliverables] == [
        "outputs/notes-REDACTED.txt",
        *(f"outputs/{name}" for name in ("notes.b64", "notes.gz", "notes.md", "notes.zip")),
        "outputs/wide.txt",
    ]
    assert found_in(*finish(tmp_path / "run", tmp_path)) == []


class Leaky:
    """Foreign tools whose replies and files contain keys."""

    def specs(self) -> dict[str, ToolSpec]:
        text = Parameter(type="text", name="expression")
        return {"Calculator": ToolSpec(name="Calculator", description="Counts.", inputs=(text,))}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        said = f"{REPEATED} and {IN_TOOLS}"
        file = workspace.write("notes.md", f"It is {said}.".encode())
        parts = (ReplyPart(type="text", content=said), ReplyPart(type="file", content=file.path))
        return ToolResult(parts=parts, tool=name, tool_version="1", backend=f"key {IN_TOOLS}")


def leaky_reply(request: dict[str, Any]) -> str | dict[str, Any]:
    """A judge's reply where one is asked for, else that of a model; both repeat all keys."""
    if "response_format" in request:
        return judge_reply(request)
    called = {"name": "Calculator", "arguments": json.dumps({"expression": IN_TOOLS})}
    if any(message["role"] == "tool" for message in request["messages"]):
        return {"message": {"role": "assistant", "content": f"Done: {REPEATED} {IN_TOOLS}"}}
    calls = [{"id": "call1", "type": "function", "function": called}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"finish_reason": "tool_calls", "message": message}


@pytest.mark.parametrize("prefix", ["", pytest.param("mcp+", marks=pytest.mark.slow)])
def test_a_tool_server_a_model_and_a_judge_that_repeat_keys_leave_none(
    tmp_path: Path, loopback: None, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """The server's own token is among them: it knows it and can say it."""
    monkeypatch.setenv("GTA_TOOLS_TOKEN", IN_TOOLS)
    names = [tool("Calculator", parameter("expression"))]
    task = workflow_task(tools=names, sub_tasks=[checkpoint("cp1")])
    data = write_workflow(tmp_path / "data", {"0": task}, names)
    with (
        tool_server(Leaky(), tmp_path / "served", tokens=(IN_TOOLS,)) as served,
        chat_server(leaky_reply) as server,
    ):
        toml = TOML.format(model=with_password(server), endpoint="http://127.0.0.1:9")
        Path("gta.toml").write_text(toml, encoding="utf-8")
        result = gta(
            *("run", "workflow", "--data", data, "--model", "m", "--judge", "m"),
            *("--tools", f"{prefix}{served.url}", "--out", tmp_path / "run"),
        )
    assert result.exit_code == 0, result.output
    (unit,) = read_units(log_folder(tmp_path / "run"), ("0",), 1, WorkflowUnit).units
    assert [call.status for call in unit.calls] == ["done"]
    assert unit.answer.startswith("Done: [redacted:PLANTED_API_KEY] and")
    assert [file.path for file in unit.deliverables] == ["outputs/notes.md"]
    (verdict,) = read_verdicts(tmp_path / "run").values()
    assert isinstance(verdict.verdict, Scored)
    assert "[redacted:PLANTED_API_KEY]" in verdict.verdict.reason
    assert found_in(*finish(tmp_path / "run", tmp_path)) == []


def test_a_key_in_the_address_of_tools_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    data = write_atomic(tmp_path / "data")
    for address in (
        f"http://me:{IN_TOOLS}@127.0.0.1:9",
        f"http://127.0.0.1:9/?key={IN_TOOLS}",
        f"mcp+http://127.0.0.1:9/sk-{IN_TOOLS}/mcp",
    ):
        result = gta(
            *("run", "atomic", "--mode", "end-to-end", "--data", data, "--agent", "gold"),
            *("--tools", address, "--out", tmp_path / "run"),
        )
        assert "takes a plain address" in str(result.exception)
        assert not (tmp_path / "run").exists()
