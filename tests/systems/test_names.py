"""What the source does with files is the same on every system: encodings, ends of lines, names."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gta_bench
from gta_bench.runs.directory import judge_folder_name
from tests.conftest import REPOSITORY
from tests.systems.machines import INVALID, RESERVED

SOURCE = Path(gta_bench.__file__).parent
MODULES = [file for file in sorted(SOURCE.rglob("*.py")) if "inside" not in file.parts]


@cache
def trees() -> dict[str, ast.Module]:
    read = {str(one.relative_to(SOURCE)): one.read_text(encoding="utf-8") for one in MODULES}
    return {name: ast.parse(text) for name, text in read.items()}


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a method of that name, with its place."""
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr == name:
                yield f"{file}:{node.lineno}", node


def options(call: ast.Call) -> dict[str | None, ast.expr]:
    return {one.arg: one.value for one in call.keywords}


def test_text_is_written_with_an_encoding_and_the_same_ends_of_lines() -> None:
    """Windows writes its own code page and two characters at the end of a line."""
    found = list(calls("write_text"))
    assert len(found) > 10
    bad = [place for place, call in found if not {"encoding", "newline"} <= options(call).keys()]
    assert bad == []


def test_text_is_read_with_an_encoding() -> None:
    found = list(calls("read_text"))
    assert len(found) > 10
    bad = [place for place, call in found if not call.args and "encoding" not in options(call)]
    assert bad == []


def test_files_are_opened_as_bytes_or_with_an_encoding() -> None:
    bad = []
    for place, call in calls("open"):
        mode = call.args[0] if call.args else options(call).get("mode", ast.Constant("r"))
        is_mode = isinstance(mode, ast.Constant) and isinstance(mode.value, str)
        text = is_mode and set(str(mode.value)) <= set("rwax+t")  # type: ignore[attr-defined]
        if text and "encoding" not in options(call):
            bad.append(place)
    assert bad == []


def test_files_of_the_package_and_the_repository_can_be_unpacked_everywhere() -> None:
    for folder in ("src", "docs", "examples", "plugins", "docker", "deploy"):
        files = [one for one in (REPOSITORY / folder).rglob("*") if "node_modules" not in one.parts]
        bad = [
            str(one) for one in files if INVALID.search(one.name) or RESERVED.fullmatch(one.name)
        ]
        assert [one for one in bad if "__pycache__" not in one] == []
        names = [str(one).casefold() for one in files]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("judge", ["openai/gpt-5:free", "CON", "nul.", 'a"b<c>|d?*', "x\\y"])
def test_a_judges_folder_has_a_name_for_every_system(judge: str) -> None:
    name = judge_folder_name(judge)
    assert not INVALID.search(name)
    assert not RESERVED.fullmatch(name)
