"""The five Read* tools as an agent calls them."""

import asyncio
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.settings import Settings
from gta_bench.tools.catalog import load_tool
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.operation.read_files import MOST_CHARACTERS, limit_length
from gta_bench.tools.toolbox import Toolbox
from tests.content import samples

NAMES = ("ReadCSV", "ReadDOCX", "ReadPDF", "ReadPPTX", "ReadXLSX")
FILES = {
    "a.csv": "编号;名\n007;茶\n".encode("gb18030"),
    "a.docx": samples.docx(samples.word_table([["a", "b"], ["1", "2"]])),
    "a.pdf": samples.pdf([samples.words("Hello from a page."), ""]),
    "a.pptx": samples.deck(),
    "a.xlsx": samples.workbook(),
    "broken.docx": samples.docx("")[:-40],
    "bomb.xlsx": samples.bomb(samples.unzipped(samples.workbook()), 40),
    "long.csv": b"abcdefghi\n" * 20_000,
}


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    try:
        found = asyncio.run(find_jail(slots=2))
    except ToolUnavailable as exc:
        pytest.skip(str(exc))
    with found:
        yield found


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    sources = {}
    for name, data in FILES.items():
        source = tmp_path / name
        source.write_bytes(data)
        sources[f"inputs/{name}"] = source
    return Workspace.create(tmp_path / "space", sources)


@pytest.fixture
def toolbox(jail: Jail) -> Toolbox:
    return Toolbox(Equipment(Settings(), jail=jail), NAMES)


def call(toolbox: Toolbox, workspace: Workspace, name: str, file: str) -> ToolResult:
    key = "csv_file" if name == "ReadCSV" else "file"
    return asyncio.run(toolbox.call(workspace, name, {key: file}))


@pytest.mark.parametrize(
    ("name", "file", "shown", "backend", "jailed"),
    [
        ("ReadCSV", "inputs/a.csv", "编号,名\n007,茶\n", "python csv", False),
        ("ReadDOCX", "inputs/a.docx", "| a   | b   |", "pypandoc-binary 1", True),
        ("ReadPDF", "a.pdf", "[Page 1]\nHello from a page.", "pypdf 7", True),
        ("ReadPPTX", "inputs/a.pptx", "North: Q1=1.5, Q2=2", "python-pptx 1", True),
        ("ReadXLSX", "inputs/a.xlsx", "D2 =B2*C2", "openpyxl 3", True),
    ],
)
def test_a_file_is_read_and_the_result_says_what_ran(
    name: str,
    file: str,
    shown: str,
    backend: str,
    jailed: bool,
    toolbox: Toolbox,
    workspace: Workspace,
    jail: Jail,
) -> None:
    assert isinstance(toolbox.availability(name), Available)
    result = call(toolbox, workspace, name, file)
    assert shown in result.text
    assert result.backend.startswith(backend)
    assert result.jail == (jail.kind if jailed else None)
    assert (result.tool, result.tool_version) == (name, "1")


@pytest.mark.parametrize("name", NAMES)
def test_names_arguments_and_descriptions_are_upstreams(name: str, workflow_dir: Path) -> None:
    released = json.loads((workflow_dir / "toolmeta.json").read_text(encoding="utf-8"))[name]
    spec = load_tool(name).spec().model_dump(mode="json")
    assert spec == released


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("ReadDOCX", "inputs/none.docx", "There is no file 'inputs/none.docx'. Files:"),
        ("ReadDOCX", "inputs/broken.docx", "zip archive|broken"),
        ("ReadDOCX", "inputs/a.xlsx", "not docx; it is xlsx"),
        ("ReadXLSX", "inputs/bomb.xlsx", "times its size"),
        ("ReadPPTX", "inputs/a.pdf", "not pptx; it is pdf"),
        ("ReadPDF", "inputs/a.csv", "not pdf; it is text"),
        ("ReadCSV", "inputs/a.pptx", "not text"),
        ("ReadPDF", "../../etc/passwd", "is not a path of this task"),
    ],
)
def test_the_agent_gets_the_reason_why_a_file_cannot_be_read(
    name: str, file: str, said: str, toolbox: Toolbox, workspace: Workspace
) -> None:
    with pytest.raises(ToolError, match=said):
        call(toolbox, workspace, name, file)


def test_a_long_text_is_cut_with_a_note(toolbox: Toolbox, workspace: Workspace) -> None:
    text = call(toolbox, workspace, "ReadCSV", "long.csv").text
    assert len(text) < MOST_CHARACTERS + 100
    assert text.endswith("[Cut here: 100000 more characters, of 200000 in all.]")
    assert limit_length("short") == "short"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ReadCSV"])
def test_without_a_jail_the_reason_is_given(name: str) -> None:
    state = Toolbox(Equipment(Settings()), NAMES).availability(name)
    assert isinstance(state, Unavailable)
    assert "jail" in state.reason


def test_a_csv_file_is_read_without_a_jail(workspace: Workspace) -> None:
    assert "007" in call(Toolbox(Equipment(Settings()), NAMES), workspace, "ReadCSV", "a.csv").text


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ReadCSV"])
def test_without_its_package_a_tool_names_the_extra(
    name: str, toolbox: Toolbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in EVIDENCE_PACKAGES:
        monkeypatch.setitem(sys.modules, module, None)
    state = toolbox.availability(name)
    assert isinstance(state, Unavailable)
    assert "gta-bench[documents]" in state.fix
    with pytest.raises(ToolUnavailable, match="not available here"):
        call(toolbox, workspace, name, "inputs/a.pdf")


def test_pages_without_text_are_read_by_the_ocr_engine(
    toolbox: Toolbox, workspace: Workspace, tmp_path: Path
) -> None:
    picture = Image.new("RGB", (900, 300), "white")
    font = ImageFont.load_default(60)
    ImageDraw.Draw(picture).text((60, 100), "Invoice 2026", fill="black", font=font)
    stream = io.BytesIO()
    picture.save(stream, "PDF")
    workspace.write("scan.pdf", stream.getvalue())
    result = asyncio.run(toolbox.call(workspace, "ReadPDF", {"file": "outputs/scan.pdf"}))
    assert "Invoice 2026" in result.text
