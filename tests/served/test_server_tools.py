"""Somebody else's MCP server as a source of tools."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import mcp_types as types
import pytest

from gta_bench.agents.react import make_system_prompt
from gta_bench.agents.toolcalling import make_tool_info
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ConfigError, ToolError, ToolServerFailure
from gta_bench.records.calls import ToolResult
from gta_bench.records.tool_servers import describe_drift, pin_servers
from gta_bench.records.tools import ToolSpec
from gta_bench.redaction import protect
from gta_bench.serving.server_tools import ServerTools, make_spec, read_result
from gta_bench.serving.wire import input_schema
from gta_bench.settings import ToolServerSettings
from gta_bench.tools.offering import check_call
from tests.needs import needs
from tests.served.foreign import BAD, bad, call_once, on_loopback, own, use
from tests.served.own_server import KINDS, SEARCH, list_tools

pytestmark = needs("bwrap")
CONTENT: dict[str, list[tuple[str, str]]] = {
    "echo": [("text", "hello")],
    "picture": [("image", "outputs/own__picture.png")],
    "sound": [("audio", "outputs/own__sound.wav")],
    "link": [("text", "[a.txt](file:///far/a.txt): A far file")],
    "note": [("text", "memo://1\nremember")],
    "blob": [("file", "outputs/data.bin")],
    "mixed": [("text", "before"), ("image", "outputs/own__mixed.png")],
    "add": [("text", '{"sum": 5}')],
}


ARGUMENTS: dict[str, Any] = {
    "query": "tea",
    "filters": [{"field": None}],
    "limit": 1.0,
    "more": None,
}


class Seen(NamedTuple):
    """What one use of the server showed; it takes seconds to start."""

    specs: Mapping[str, ToolSpec]
    kinds: dict[str, ToolResult]
    search: ToolResult
    failures: dict[str, str]
    outputs: Path


async def every_kind(source: ServerTools, workspace: Workspace) -> dict[str, ToolResult]:
    return {
        name: await source.call(workspace, f"own__{name}", {"text": "hello"}) for name in CONTENT
    }


async def look(source: ServerTools, workspace: Workspace) -> Seen:
    kinds = await every_kind(source, workspace)
    search = await source.call(workspace, "own__search", ARGUMENTS)
    failures = {}
    for name in ("fail", "crash", "nothing", "slow"):
        with pytest.raises(ToolError) as caught:
            await source.call(workspace, f"own__{name}", {})
        failures[name] = str(caught.value)
    return Seen(source.specs(), kinds, search, failures, workspace.root / "outputs")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return use(own(call_seconds=3.0), tmp_path_factory.mktemp("seen"), look)


def check_every_kind(found: dict[str, ToolResult]) -> None:
    said = {name: [(one.type, one.content) for one in found[name].parts] for name in found}
    assert said == CONTENT
    assert {one.backend for one in found.values()} == {"tool server own 1.2"}


def test_every_kind_of_content_arrives_as_text_or_file(seen: Seen) -> None:
    check_every_kind(seen.kinds)
    assert {one.jail for one in seen.kinds.values()} == {"bubblewrap"}
    assert (seen.outputs / "own__picture.png").read_bytes().startswith(b"\x89PNG")
    assert (seen.outputs / "data.bin").read_bytes() == b"\0\1\2"


@pytest.mark.usefixtures("loopback")
def test_a_server_on_http_gives_the_same_and_gets_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_TOKEN", "tok-7f3a9b2c")
    with on_loopback("tok-7f3a9b2c") as url:
        server = ToolServerSettings(url=url, headers={"Authorization": "Bearer ${OWN_TOKEN}"})
        check_every_kind(use(server, tmp_path / "a", every_kind))
        with pytest.raises(ToolServerFailure, match=r"Tool server 'own' .*\[tool_servers.own\]"):
            use(ToolServerSettings(url=url), tmp_path / "b", every_kind)


@pytest.mark.usefixtures("loopback")
def test_a_server_that_nobody_started_is_one_line(tmp_path: Path) -> None:
    server = ToolServerSettings(url="http://127.0.0.1:9/mcp")
    with pytest.raises(ToolServerFailure, match="Tool server 'own'") as caught:
        use(server, tmp_path, every_kind)
    assert "\n" not in str(caught.value)


def test_all_pages_are_listed_and_schemas_are_unchanged(seen: Seen) -> None:
    names = {f"own__{name}" for name in ("echo", "write", "store", "search", "add", *KINDS)}
    assert set(seen.specs) == names
    search = seen.specs["own__search"]
    assert input_schema(search) == SEARCH
    info = make_tool_info(search)
    assert info.parameters.model_dump(exclude_none=True) == SEARCH
    assert info.model_dump(exclude_none=True)["parameters"] == SEARCH
    # Harnesses that Inspect drives get a copy, with what its own fields can express.
    copied = info.parameters.properties["query"]
    assert (copied.type, copied.pattern, copied.description) == ("string", "^[a-z]+$", "query")
    assert [(one.name, one.optional) for one in search.inputs] == [
        ("query", False),
        ("order", True),
        ("filters", True),
    ]
    echo = seen.specs["own__echo"].served
    assert echo is not None and echo.annotations == {"readOnlyHint": True}
    assert '"$defs"' in make_system_prompt([search])


def test_arguments_are_passed_on_unchanged(seen: Seen) -> None:
    assert json.loads(seen.search.text) == ARGUMENTS
    assert '"limit": 1.0' in seen.search.text
    assert check_call(seen.specs, "own__search", ARGUMENTS) == ARGUMENTS


def test_a_failed_call_is_the_agents_to_read(seen: Seen) -> None:
    assert seen.failures["fail"] == "the disk is full"
    assert seen.failures["crash"].startswith("own__crash: ")
    assert seen.failures["nothing"].startswith("Unknown tool 'own__nothing'")
    assert seen.failures["slow"] == "own__slow did not answer within 3 seconds."


@pytest.mark.parametrize(
    ("texts", "structured", "added"),
    [
        (["hi"], {"content": "hi"}, False),
        (['{"sum": 5}'], {"sum": 5}, False),
        (['[{"a": 1}]'], {"rows": [{"a": 1}]}, False),
        (["hi"], {"content": "hi", "more": 1}, True),
        ([], {}, True),
    ],
)
def test_structured_content_is_added_if_no_text_says_it(
    tmp_path: Path, texts: list[str], structured: Any, added: bool
) -> None:
    found = types.CallToolResult(
        content=[types.TextContent(text=text) for text in texts], structured_content=structured
    )
    parts = read_result(found, Workspace.create(tmp_path, {}), "own__x")
    assert len(parts) == len(texts) + added


def test_a_server_keeps_its_state_for_one_unit_only(tmp_path: Path) -> None:
    async def twice(source: ServerTools, workspace: Workspace) -> list[str]:
        return [(await source.call(workspace, "own__work", {})).text for _ in range(2)]

    found = [use(bad("counts"), tmp_path / name, twice) for name in "ab"]
    assert found == [["1", "2"], ["1", "2"]]


def test_files_are_shown_as_declared(tmp_path: Path) -> None:
    found = call_once(bad("writes", files="write"), tmp_path / "a", "work")
    assert found.text == "written"
    note = tmp_path / "a/outputs/note.txt"
    assert note.read_text() == "from the server"
    assert note.stat().st_uid == (tmp_path / "a").stat().st_uid
    for access, said in (("read", "Read-only file system"), ("none", "No such file or directory")):
        found = call_once(bad("writes", files=access), tmp_path / access, "work")
        assert found.text == said
        assert not (tmp_path / access / "outputs/note.txt").exists()


def test_only_the_declared_environment_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", "of-this-process")
    assert call_once(bad("shows OWN_KEY"), tmp_path / "a", "work").text == "unset"
    server = bad("shows OWN_KEY", env={"OWN_KEY": "${OWN_KEY}-${OTHER:-x}"})
    assert call_once(server, tmp_path / "b", "work").text == "of-this-process-x"
    with pytest.raises(ConfigError, match="environment variable MISSING is not set"):
        call_once(bad("counts", env={"OWN_KEY": "${MISSING}"}), tmp_path / "c", "work")


def test_a_secret_in_a_definition_reaches_nobody() -> None:
    protect({"Repeats a text": "PLANTED_KEY"})
    assert make_spec("own", list_tools(False)[0]).description == "[redacted:PLANTED_KEY]."


def test_changes_are_named_tool_by_tool() -> None:
    one, same, other = (
        pin_servers(make_spec("own", tool) for tool in list_tools(changed))
        for changed in (False, False, True)
    )
    assert one == same
    assert one["own"].digest != other["own"].digest
    assert describe_drift(one, same) == []
    assert describe_drift(one, other) == [
        "own__count is gone",
        "own__echo has another description",
        "own__fresh is new",
        "own__search has another schema",
    ]


@pytest.mark.parametrize("name", ["bin/own", "./bin/own", "../here/bin/own"])
def test_a_program_by_a_relative_path_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script = tmp_path / "here/bin/own"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\nexec /usr/bin/python3 {BAD} counts\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    server = ToolServerSettings(command=name, readable=[str(BAD)])
    assert call_once(server, tmp_path / "space", "work").text == "1"


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[tool_servers.own\]: program 'no-such' not found"):
        call_once(ToolServerSettings(command="no-such"), tmp_path, "echo")
    server = ToolServerSettings(command=sys.executable, args=["-c", "raise SystemExit('nope')"])
    with pytest.raises(ToolServerFailure, match="it ended with status 1 and said 'nope'"):
        call_once(server, tmp_path / "b", "echo")
