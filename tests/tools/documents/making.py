"""Calling a document tool as an agent does, and looking at what it made."""

import asyncio
import io
import json
import subprocess
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import find_pandoc
from gta_bench.errors import ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.toolbox import Toolbox
from tests.tools.documents.sample import tall_picture, wide_picture


@cache
def jail() -> Jail:
    """The jail of this machine, one for all tests."""
    try:
        return asyncio.run(find_jail(slots=2))
    except ToolUnavailable as exc:
        pytest.skip(f"no jail here: {exc}")


@dataclass
class Bench:
    """A workspace with two pictures, and the tools."""

    workspace: Workspace
    toolbox: Toolbox
    results: list[ToolResult] = field(default_factory=list)

    def make(self, tool: str, **arguments: Any) -> bytes:
        """The file that a call makes; what this machine lacks skips the test."""
        state = self.toolbox.availability(tool)
        if isinstance(state, Unavailable):
            pytest.skip(f"{tool}: {state.reason} {state.fix}")
        arguments.setdefault("filename", "report")
        result = asyncio.run(self.toolbox.call(self.workspace, tool, arguments))
        self.results.append(result)
        (part,) = result.parts
        assert part.type == "file"
        return self.workspace.read(part.content)


def bench(folder: Path) -> Bench:
    """`inputs/wide.png` and `inputs/tall.png` are there."""
    pictures = {"wide.png": wide_picture(), "tall.png": tall_picture()}
    for name, data in pictures.items():
        (folder / name).write_bytes(data)
    attachments = {f"inputs/{name}": folder / name for name in pictures}
    space = Workspace.create(folder / "space", attachments)
    return Bench(space, Toolbox(Equipment(Settings(), jail=jail())))


def back_to_markdown(docx: bytes) -> str:
    """What pandoc reads out of a Word document."""
    program = find_pandoc()
    assert program is not None
    command = [str(program), "--sandbox", "-f", "docx", "-t", "gfm", "--wrap=none"]
    done = subprocess.run(command, input=docx, capture_output=True, check=True)
    return done.stdout.decode()


def parts(archive: bytes) -> dict[str, bytes]:
    """The members of an Office file."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
