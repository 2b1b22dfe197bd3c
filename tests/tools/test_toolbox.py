import asyncio
from pathlib import Path

import pytest
from pydantic import Field, JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import CallRefused, ToolError, ToolUnavailable, UsageError
from gta_bench.records.tools import Parameter
from gta_bench.settings import Settings
from gta_bench.tools import catalog
from gta_bench.tools.contract import (
    Availability,
    Available,
    Equipment,
    ImagePath,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    text,
)
from gta_bench.tools.toolbox import Toolbox


class EchoInput(ToolInput):
    image: ImagePath
    words: str = Field(description="What to say.")
    times: int = Field(1, ge=1)
    loud: bool = False
    note: str | None = None


class Echo(Tool[EchoInput]):
    name = "Echo"
    category = "logic"
    description = "Says it again."
    version = "1"
    input_type = EchoInput

    def check(self) -> Availability:
        return Available("echo")

    async def apply(self, workspace: Workspace, given: EchoInput) -> Made:
        said = await self.equipment.in_thread(lambda: given.words * given.times)
        return Made((text(said),), backend="echo")


class Absent(Echo):
    name = "Absent"

    def check(self) -> Availability:
        return Unavailable("its key is not set.", "export ABSENT_KEY=…")


@pytest.fixture
def toolbox(monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    table = {"Echo": f"{__name__}:Echo", "Absent": f"{__name__}:Absent"}
    monkeypatch.setattr(catalog, "CATALOG", table)
    return Toolbox(Equipment(Settings()))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "space", {})


def test_a_spec_tells_every_input_with_type_default_and_description(toolbox: Toolbox) -> None:
    spec = toolbox.specs()["Echo"]
    assert spec.inputs == (
        Parameter(name="image", type="image"),
        Parameter(name="words", type="text", description="What to say."),
        Parameter(name="times", type="int", optional=True, default=1),
        Parameter(name="loud", type="bool", optional=True, default=False),
        Parameter(name="note", type="text", optional=True),
    )


def test_a_call_gives_a_result_that_says_what_ran(toolbox: Toolbox, workspace: Workspace) -> None:
    arguments = {"image": "inputs/a.png", "words": "ha", "times": "2"}
    result = asyncio.run(toolbox.call(workspace, "Echo", arguments))
    assert result.text == "haha"
    assert (result.tool, result.tool_version, result.backend) == ("Echo", "1", "echo")
    assert result.seconds >= 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"words": "x"}, "missing argument 'image'"),
        ({"image": "a", "words": "x", "shade": 1}, "unknown argument 'shade', the parameters are"),
        ({"image": "a", "words": "x", "times": "many"}, "argument 'times' must be an integer"),
    ],
)
def test_wrong_arguments_are_told_with_what_the_tool_takes(
    toolbox: Toolbox, workspace: Workspace, arguments: dict[str, str], said: str
) -> None:
    with pytest.raises(CallRefused, match=said):
        asyncio.run(toolbox.call(workspace, "Echo", arguments))


def test_a_value_out_of_range_is_told_with_what_the_tool_takes(
    toolbox: Toolbox, workspace: Workspace
) -> None:
    """A definition has no ranges, so the tool itself has to say this."""
    arguments: dict[str, JsonValue] = {"image": "a", "words": "x", "times": 0}
    with pytest.raises(ToolError, match="argument 'times': Input should be greater") as caught:
        asyncio.run(toolbox.call(workspace, "Echo", arguments))
    assert "It takes: image, words, times, loud, note." in str(caught.value)


def test_an_unknown_tool_is_told_with_the_known_ones(
    toolbox: Toolbox, workspace: Workspace
) -> None:
    with pytest.raises(ToolError, match=r"Unknown tool 'Sing'. Known tools: Echo, Absent"):
        asyncio.run(toolbox.call(workspace, "Sing", {}))
    with pytest.raises(UsageError, match="Unknown tool 'Sing'"):
        catalog.load_tool("Sing")


def test_a_tool_that_cannot_run_here_says_why_and_how_to_mend_it(
    toolbox: Toolbox, workspace: Workspace
) -> None:
    arguments = {"image": "inputs/a.png", "words": "ha"}
    with pytest.raises(ToolUnavailable, match=r"its key is not set\. export ABSENT_KEY"):
        asyncio.run(toolbox.call(workspace, "Absent", arguments))
    assert isinstance(toolbox.availability("Absent"), Unavailable)


def test_without_a_jail_a_tool_that_needs_one_says_so() -> None:
    with pytest.raises(ToolUnavailable, match="No jail was looked for"):
        Equipment(Settings()).need_jail()
