"""Arguments that several tools take."""

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox

WRITERS: list[tuple[str, dict[str, JsonValue]]] = [
    ("DocxFileGenerator", {"content": "x", "image_paths": ""}),
    ("PdfFileGenerator", {"content": "x", "image_paths": ""}),
    ("PptxFileGenerator", {"slides_content_str": "[]", "image_paths": ""}),
    ("AudioClipTool", {"audio": "inputs/a.wav"}),
    ("VideoClip", {"video": "inputs/a.mp4"}),
    ("AddTextVideoTool", {"video": "inputs/a.mp4", "text": "x"}),
]


@pytest.mark.parametrize(("tool", "given"), WRITERS)
def test_a_name_that_no_file_can_have_is_refused_before_any_work(
    tmp_path: Path, tool: str, given: dict[str, JsonValue]
) -> None:
    """It was refused after the jail had made the whole document."""
    box, space = Toolbox(Equipment(Settings())), Workspace.create(tmp_path, {})
    with pytest.raises(ToolError, match=r"'../..' is not a usable file name"):
        asyncio.run(box.call(space, tool, {**given, "filename": "../.."}))
    with pytest.raises(ToolUnavailable, match="No jail"):
        asyncio.run(box.call(space, tool, {**given, "filename": "../../x"}))
