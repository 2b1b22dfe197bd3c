import asyncio
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.tools.source import PlaceholderImages
from tests.builders import PNG


class Keeper:
    """A source that keeps the arguments it is called with."""

    def __init__(self) -> None:
        self.kept: list[Mapping[str, JsonValue]] = []

    def specs(self) -> Mapping[str, ToolSpec]:
        return {"AddText": ToolSpec(name="AddText")}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        self.kept.append(arguments)
        return ToolResult(parts=(), tool=name, tool_version="1", backend="keeper")


def call(workspace: Workspace, arguments: dict[str, JsonValue]) -> Mapping[str, JsonValue]:
    keeper = Keeper()
    asyncio.run(PlaceholderImages(keeper).call(workspace, "AddText", arguments))
    return keeper.kept[0]


def test_the_placeholder_is_the_newest_image_of_the_task(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path, {})
    workspace.write("first.png", PNG)
    newest = workspace.write("second.png", PNG)
    workspace.write("notes.txt", b"no image")
    given = call(workspace, {"image": PLACEHOLDER_IMAGE, "text": "hi"})
    assert given == {"image": newest.path, "text": "hi"}


def test_without_an_image_the_placeholder_stays(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path, {})
    assert call(workspace, {"image": PLACEHOLDER_IMAGE}) == {"image": PLACEHOLDER_IMAGE}


def test_the_specs_are_those_of_the_wrapped_source() -> None:
    assert list(PlaceholderImages(Keeper()).specs()) == ["AddText"]
