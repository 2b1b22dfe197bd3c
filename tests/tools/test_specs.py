"""Our definitions of the computing and drawing tools against both datasets' toolmeta.json."""

import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.metrics.categories import WORKFLOW_CATEGORY
from gta_bench.tools.catalog import CATALOG, load_tool
from tests.tools.calling import differences

ATOMIC = ["Calculator", "Solver", "Plot", "GoogleSearch", "DrawBox", "AddText"]
WORKFLOW = [*ATOMIC, "Prover", "ImageQualityTest"]

# The default is a folder of the authors' machine, and the argument is not used.
INTENDED = {
    name: ["output_dir: default '/home/zhenjue2/GTA-v2/tooloutput' -> None"]
    for name in ("DrawBox", "AddText")
}


@pytest.mark.parametrize("name", ATOMIC)
def test_names_types_and_requiredness_are_those_of_atomic(name: str, atomic_dir: Path) -> None:
    assert differences(name, atomic_dir / "toolmeta.json") == []


@pytest.mark.parametrize("name", WORKFLOW)
def test_names_types_and_requiredness_are_those_of_workflow(name: str, workflow_dir: Path) -> None:
    assert differences(name, workflow_dir / "toolmeta.json") == INTENDED.get(name, [])


@pytest.mark.parametrize("name", WORKFLOW)
def test_every_input_is_described(name: str) -> None:
    tool = load_tool(name)
    assert tool.name == name
    assert all(parameter.description for parameter in tool.spec().inputs)


def test_scores_know_every_tool_by_the_category_of_its_definition() -> None:
    assert {name: load_tool(name).category for name in CATALOG} == WORKFLOW_CATEGORY


def test_openai_is_not_imported_before_an_endpoint_is_called() -> None:
    """It takes a second, and most commands call no endpoint."""
    code = (
        "import sys\n"
        "from gta_bench.tools.catalog import CATALOG, load_tool\n"
        "for name in CATALOG: load_tool(name)\n"
        "sys.exit('openai' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
