import re
from hashlib import sha256
from importlib.resources import files

import pytest

from gta_bench.agents import prompts
from gta_bench.agents.contract import files_text
from gta_bench.agents.prompts import digests, render
from gta_bench.agents.react import make_system_prompt, make_upstream_system_prompt
from gta_bench.records.files import Attachment
from gta_bench.records.tools import Parameter, ToolSpec
from tests.agents.builders import MENU, TOOLS
from tests.agents.conftest import CheckGolden

SECOND = Attachment(path="inputs/bill.jpg", source="image/bill.jpg")

RENDERED = {
    "react-upstream.txt": make_upstream_system_prompt(TOOLS),
    "react.txt": make_system_prompt(TOOLS),
    "react-upstream-arguments.txt": render("react_upstream_arguments.md"),
    "toolcalling.txt": render("toolcalling.md"),
    "files.txt": files_text((MENU, SECOND)) or "",
    "answer-without-tools.txt": render("answer_without_tools.md"),
    "answer-now.txt": render("answer_now.md"),
    "feedback.txt": render("feedback.md", total="3", failed="- checkpoint 2: failed"),
}


@pytest.mark.parametrize("name", RENDERED)
def test_a_prompt_is_rendered_as_its_golden_file(name: str, check_golden: CheckGolden) -> None:
    check_golden(f"prompts/{name}", RENDERED[name])


def test_a_missing_golden_file_fails(
    check_golden: CheckGolden, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--update-golden"):
        pytest.skip("golden files are being written")
    with pytest.raises(AssertionError, match="no golden file prompts/none"):
        check_golden("prompts/none.txt", "x")


def test_every_prompt_file_is_known_and_has_a_golden_form() -> None:
    present = {item.name for item in files(prompts).iterdir() if item.name.endswith(".md")}
    assert present == set(sorted(prompts.digests()))
    assert len(RENDERED) == len(present)


@pytest.mark.parametrize("fields", [{}, {"path": "x"}, {"paths": "x", "more": "y"}])
def test_a_missing_or_extra_field_fails(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"Prompt 'files.md' has the fields \['paths'\], but got"):
        render("files.md", **fields)


def test_an_unknown_prompt_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"Unknown prompt '../catalog.py'. Known prompts: answer"):
        render("../catalog.py")


def test_values_are_not_filled_in_again() -> None:
    assert render("files.md", paths="$paths ${names} {x} $$") == (
        "These files belong to the request: $paths ${names} {x} $$"
    )


def test_digests_are_those_of_the_files() -> None:
    found = digests()
    assert list(found) == sorted(sorted(prompts.digests()))
    for name, digest in found.items():
        assert digest == sha256(files(prompts).joinpath(name).read_bytes()).hexdigest()


def test_a_task_without_files_has_no_file_message() -> None:
    assert files_text(()) is None


def test_upstreams_tool_list_is_a_python_literal_of_upstreams_shape() -> None:
    line = RENDERED["react-upstream.txt"].splitlines()[1]
    listed = eval(line, {"__builtins__": {}})
    assert [list(tool) for tool in listed] == [
        ["name", "description", "parameters", "required", "parameter_description"]
    ] * len(TOOLS)
    assert listed[1]["parameters"][1] == {
        "name": "k",
        "description": "How many results.",
        "type": "NUMBER",
    }
    assert [parameter["type"] for parameter in listed[2]["parameters"]] == [
        *("STRING", "STRING", "FLOAT", "BOOLEAN", "STRING")
    ]
    assert listed[0]["parameters"][0]["description"] is None
    assert listed[2]["required"] == ["image", "bbox"]
    assert "default" not in line


def test_upstreams_allowed_names_stand_in_two_pairs_of_brackets() -> None:
    assert "[['OCR', 'GoogleSearch', 'DrawBox']]" in RENDERED["react-upstream.txt"]


def test_upstreams_markers_have_no_blank_after_the_colon() -> None:
    text = RENDERED["react-upstream.txt"]
    markers = re.findall(r"^(Thought|Action|Action Input|Response|Final Answer):\S", text, re.M)
    assert markers == ["Thought", "Action", "Action Input", "Response", "Thought", "Final Answer"]


def test_our_tool_list_shows_defaults_and_kinds_of_files() -> None:
    read = ToolSpec(
        name="Read",
        inputs=(
            Parameter(type="file", name="path", filetype="application/pdf"),
            Parameter(type="int", name="page", optional=True, default=1),
        ),
    )
    assert make_system_prompt((read,)).splitlines()[1] == (
        '{"name": "Read", "description": "", "parameters": {"path": {"type": "file", '
        '"filetype": "application/pdf"}, "page": {"type": "int", "optional": true, "default": 1}}}'
    )


def test_a_tool_that_is_offered_twice_is_listed_once() -> None:
    assert make_upstream_system_prompt((*TOOLS, TOOLS[0])) == RENDERED["react-upstream.txt"]
    assert make_system_prompt((*TOOLS, TOOLS[0])) == RENDERED["react.txt"]


def test_no_prompt_names_a_path_of_a_machine() -> None:
    for text in RENDERED.values():
        assert not re.search(r"(?<![\w.])/\w", text)
