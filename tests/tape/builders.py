"""Scripted tools, and tapes in front of them."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tape import CallLine, DoneReply, TapeCall, TapeMode
from gta_bench.records.tools import Parameter, ToolSpec
from gta_bench.redaction import Redactor
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape

LOOK = ToolSpec(
    name="Look",
    inputs=(
        Parameter(type="image", name="image", optional=True),
        Parameter(type="int", name="k", optional=True, default=10),
        Parameter(type="text", name="note", optional=True),
    ),
)
Answer = Callable[[Workspace, Mapping[str, Any]], str]


class Scripted:
    """A source with one tool that answers as the test says, and counts."""

    def __init__(self, answer: Answer, version: str = "1") -> None:
        self.answer = answer
        self.version = version
        self.calls = 0

    def specs(self) -> Mapping[str, ToolSpec]:
        return {"Look": LOOK}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        self.calls += 1
        said = self.answer(workspace, arguments)
        kind = "image" if said.startswith("outputs/") else "text"
        parts = (ReplyPart.model_validate({"type": kind, "content": said}),)
        return ToolResult(
            parts=parts, tool=name, tool_version=self.version, backend="eye 1", seconds=0.5
        )


def counting() -> Scripted:
    """Another reply to every call."""
    source = Scripted(lambda *_: f"reply {source.calls}")
    return source


def taped(
    tape: Tape,
    mode: TapeMode,
    live: Scripted | None = None,
    *,
    task: str = "1",
    epoch: int = 1,
    secrets: Mapping[str, str] | None = None,
) -> TapedTools:
    return TapedTools(tape, TapeUnit("atomic", task, epoch), mode, Redactor(secrets or {}), live)


def call(source: Any, workspace: Workspace, /, **arguments: JsonValue) -> ToolResult:
    result: ToolResult = asyncio.run(source.call(workspace, "Look", arguments))
    return result


def space(folder: Path, **files: bytes) -> Workspace:
    """A workspace with these inputs: `menu` becomes `inputs/menu.png`."""
    sources = folder.parent / f"{folder.name}-sources"
    sources.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (sources / name).write_bytes(data)
    return Workspace.create(folder, {f"inputs/{name}.png": sources / name for name in files})


def recording(folder: Path) -> Tape:
    tape = Tape.record(folder, dataset="atomic", origin="live")
    tape.offer([LOOK])
    return tape


def line(task: str, said: str, *, epoch: int = 1, number: int = 1, **arguments: Any) -> CallLine:
    """A recorded call of Look."""
    return CallLine(
        call=TapeCall(dataset="atomic", task=task, tool="Look", arguments=arguments),
        epoch=epoch,
        number=number,
        reply=DoneReply(
            parts=(ReplyPart(type="text", content=said),), tool_version="1", backend="eye 1"
        ),
    )
