"""Tools called as agents call them: by name, through a toolbox, with untyped arguments."""

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import Parameter, ToolSpec
from gta_bench.settings import Settings
from gta_bench.tools.catalog import load_tool
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox

PLAIN = Equipment(Settings())
_boxes: dict[int, Toolbox] = {}  # as in a run, where tools are made once


def call(
    name: str, workspace: Workspace, equipment: Equipment = PLAIN, /, **arguments: JsonValue
) -> ToolResult:
    box = _boxes.setdefault(id(equipment), Toolbox(equipment))
    return asyncio.run(box.call(workspace, name, arguments))


def error(
    name: str, workspace: Workspace, equipment: Equipment = PLAIN, /, **arguments: JsonValue
) -> str:
    """The words of the ToolError that the call comes to."""
    with pytest.raises(ToolError) as caught:
        call(name, workspace, equipment, **arguments)
    return str(caught.value)


def differences(name: str, toolmeta: Path) -> list[str]:
    """Where our spec is not upstream's: names, types, requiredness, defaults."""
    listed = json.loads(toolmeta.read_text(encoding="utf-8"))
    theirs = ToolSpec.model_validate(listed[name])
    ours = load_tool(name).spec()
    found = [f"output {output.type}" for output in theirs.outputs]
    expected = [f"output {output.type}" for output in ours.outputs]
    differing = [] if found == expected else [f"outputs: {found} {expected}"]
    for parameter in theirs.inputs:
        mine = ours.input(parameter.name or "")
        if mine is None:
            differing.append(f"{parameter.name}: missing")
        else:
            differing += _parameter_differences(mine, parameter)
    required = {entry.name for entry in theirs.inputs}
    differing += [
        f"{entry.name}: required here alone"
        for entry in ours.inputs
        if entry.name not in required and not entry.optional
    ]
    return differing


def _parameter_differences(mine: Parameter, theirs: Parameter) -> list[str]:
    return [
        f"{theirs.name}: {field} {getattr(theirs, field)!r} -> {getattr(mine, field)!r}"
        for field in ("type", "optional", "default")
        if getattr(mine, field) != getattr(theirs, field)
    ]
