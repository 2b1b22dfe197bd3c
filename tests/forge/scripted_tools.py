"""Tools that know what was drawn: they read every picture without a model."""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.forge.atomic import AtomicFamily, Question
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import ToolSpec


class ScriptedTools:
    """A source for families that it has watched.

    It misreads the first pictures, and can fail instead of calculating.
    """

    def __init__(self, misread: int = 0, *, fails: bool = False) -> None:
        self._drawn: dict[bytes, str] = {}
        self._given: list[str] = []
        self.misread = misread
        self._fails = fails

    def watch(self, family: AtomicFamily) -> AtomicFamily:
        """Return the family; what it draws becomes known."""

        def make(dice: TaskDice, level: TaskLevel) -> Question:
            question = family.make(dice, level)
            for picture in question.pictures:
                lines = (f"{line.box} {line.text}" for line in picture.lines)
                self._drawn[picture.data] = "\n".join(lines)
            return question

        return family._replace(make=make)

    def specs(self) -> Mapping[str, ToolSpec]:
        """Nobody asks."""
        return {}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Read what was drawn, calculate, or write a file."""
        given = {key: str(value) for key, value in arguments.items()}
        if name in ("AddText", "DrawBox", "Plot"):
            # What is read on a picture that a tool made is what the tool was given.
            self._given += [
                part for text in given.values() for part in re.split(r"['\[\], ]", text)
            ]
            self._given += [*given.values(), *re.findall("'([^']+)'", given.get("command", ""))]
            path = workspace.write("made.png", b"made").path
            return _reply(name, ReplyPart(type="image", content=path))
        if name == "OCR":
            return _reply(name, ReplyPart(type="text", content=self._read(workspace, given)))
        if self._fails:
            raise ToolError(f"{name}: took too long.")
        if name == "Calculator":
            value = eval(given["expression"], {"__builtins__": {}}, {"round": round})
            return _reply(name, ReplyPart(type="text", content=str(value)))
        space: dict[str, object] = {}
        exec(given["command"].removeprefix("```python\n").removesuffix("```"), space)
        solution = space["solution"]
        assert name == "Solver" and callable(solution)
        return _reply(name, ReplyPart(type="text", content=str(solution())))

    def _read(self, workspace: Workspace, given: Mapping[str, str]) -> str:
        if given["image"].startswith("outputs/"):
            return "\n".join(
                f"(0, {10 * at}, 9, {10 * at + 5}) {text}"
                for at, text in enumerate(" ".join(one.split()) for one in self._given)
                if text
            )
        if self.misread:
            self.misread -= 1
            return "(0, 0, 9, 9) l1l1"
        return self._drawn[(workspace.root / given["image"]).read_bytes()]


def _reply(name: str, part: ReplyPart) -> ToolResult:
    return ToolResult(parts=(part,), tool=name, tool_version="1", backend="scripted")
