"""Wrong calls are refused alike by live tools and by a tape."""

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import CallRefused
from gta_bench.redaction import Redactor
from gta_bench.settings import Settings
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.catalog import tool_names
from gta_bench.tools.contract import Equipment
from gta_bench.tools.offering import OfferedTools
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox


def refusal(source: ToolSource, space: Workspace, name: str, given: dict[str, JsonValue]) -> str:
    with pytest.raises(CallRefused) as caught:
        asyncio.run(source.call(space, name, given))
    return f"{caught.value.cause}: {caught.value}"


def test_a_wrong_call_of_any_tool_is_refused_alike_live_and_taped(tmp_path: Path) -> None:
    live = Toolbox(Equipment(Settings()))
    tape = Tape.record(tmp_path / "tape", dataset="atomic", origin="live")
    tape.offer(live.specs().values())
    tape.close()
    unit = TapeUnit("atomic", "0", 1)
    replay = TapedTools(Tape.open(tmp_path / "tape"), unit, "replay", Redactor({}))
    space = Workspace.create(tmp_path / "space", {})
    for name in tool_names():
        for given in ({}, {"nope": 1}, {"nope": None}):
            if given.get("nope") or any(not one.optional for one in live.specs()[name].inputs):
                said = refusal(live, space, name, dict(given))
                assert said == refusal(replay, space, name, dict(given))
    offered = [live.specs()["OCR"]]
    for source in (live, replay):
        said = refusal(OfferedTools(source, offered), space, "Calculator", {"expression": "1"})
        assert said == "tool: Unknown tool 'Calculator'. Known tools: OCR."
