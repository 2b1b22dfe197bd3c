"""The specs of the document tools, and when the tools are available."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.settings import Settings
from gta_bench.tools.catalog import load_tool
from gta_bench.tools.contract import Available, Equipment, Unavailable
from tests.tools.documents.making import jail

TOOLS = (
    "DocxFileGenerator",
    "PdfFileGenerator",
    "HtmlFileGenerator",
    "PptxFileGenerator",
    "XlsxFileGenerator",
    "CsvFileGenerator",
)
JAILED = ("DocxFileGenerator", "PdfFileGenerator", "PptxFileGenerator")


@pytest.mark.parametrize("name", TOOLS)
def test_names_types_and_requiredness_are_upstream_s(name: str, workflow_dir: Path) -> None:
    meta = json.loads((workflow_dir / "toolmeta.json").read_text(encoding="utf-8"))[name]
    spec = load_tool(name).spec()
    ours = [(i.name, i.type, i.optional) for i in spec.inputs]
    assert ours == [(i["name"], i["type"], i["optional"]) for i in meta["inputs"]]
    assert [output.type for output in spec.outputs] == ["file"]


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_names_its_backend_with_versions(name: str) -> None:
    tool = load_tool(name)(Equipment(Settings(), jail=jail()))
    state = tool.check()
    if isinstance(state, Unavailable):
        pytest.skip(f"{state.reason} {state.fix}")
    assert isinstance(state, Available)
    assert state.backend


@pytest.mark.parametrize("name", JAILED)
def test_without_a_jail_the_tool_says_so(name: str) -> None:
    state = load_tool(name)(Equipment(Settings())).check()
    assert state == Equipment(Settings()).no_jail


def test_specs_are_available_without_any_extra_package() -> None:
    """An installation without extras lists the tools and says what each lacks."""
    code = f"""
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("PIL", "pptx", "openpyxl", "typst", "pypandoc", "lxml"):
            raise ModuleNotFoundError(name)
        return None
sys.meta_path.insert(0, Refuse())
from gta_bench.tools.catalog import load_tool
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
for name in {TOOLS!r}:
    assert load_tool(name).spec().name == name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_checking_is_cheap() -> None:
    import time

    tools = [load_tool(name)(Equipment(Settings(), jail=jail())) for name in TOOLS]
    for tool in tools:
        tool.check()
    start = time.process_time()
    for tool in tools:
        tool.check()
    assert time.process_time() - start < 0.1
