"""The tools' reference has a real call of every tool, and the pictures that tools made."""

import json

import pytest

from gta_bench.tools.catalog import CATALOG, load_tool
from tests.conftest import REPOSITORY

REFERENCE = REPOSITORY / "docs" / "reference"
EXAMPLES = json.loads((REFERENCE / "tool-examples.json").read_text(encoding="utf-8"))


def test_every_tool_has_an_example() -> None:
    assert list(EXAMPLES) == list(CATALOG)


@pytest.mark.parametrize("name", CATALOG)
def test_the_example_is_a_call_of_the_tool(name: str) -> None:
    """Its arguments are read as a call's are; what an image tool gave can be seen."""
    tool, example = load_tool(name), EXAMPLES[name]
    tool.input_type.model_validate(example["arguments"])
    assert ("said" in example) == ("backend" in example)
    makes_image = "image" in [output.type for output in tool.outputs]
    assert ("picture" in example) == (makes_image and "said" in example)


def test_pictures_are_small_and_used() -> None:
    files = {f"pictures/{file.name}": file for file in (REFERENCE / "pictures").iterdir()}
    assert files.keys() == {one["picture"] for one in EXAMPLES.values() if "picture" in one}
    assert all(file.stat().st_size < 60_000 for file in files.values())
