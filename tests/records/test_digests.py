"""Digests change with what a system is asked and how it is scored, and with nothing else."""

import copy
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.digests import (
    TaskDigests,
    canonical_json,
    content_digest,
    digest_atomic,
    digest_known,
    digest_workflow,
)
from gta_bench.records.files import Deliverable
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from tests.builders import PNG, write_atomic
from tests.conftest import REPOSITORY

DEMO = REPOSITORY / "src" / "gta_bench" / "demo" / "data"
SHA = "0" * 64

ATOMIC: dict[str, Any] = {
    "id": "0",
    "tools": [
        {"name": "Calculator", "inputs": [{"type": "text", "name": "expression"}]},
        {"name": "OCR", "description": "Reads a picture."},
    ],
    "attachments": [{"path": "inputs/menu.jpg", "source": "image/menu.jpg"}],
    "dialogue": [
        {"turn": "user", "content": "What do two coffees cost?"},
        {"turn": "call", "call": {"name": "Calculator", "arguments": {"expression": "2*3"}}},
        {"turn": "reply", "tool": "Calculator", "type": "text", "content": "6"},
        {"turn": "answer", "content": "They cost 6."},
    ],
    "answer": {"kind": "whitelist", "whitelist": [["6", "six"]]},
}
WORKFLOW: dict[str, Any] = {
    "id": "1",
    "request": "Write a report.",
    "category": None,
    "tools": ["Calculator"],
    "attachments": [{"path": "inputs/menu.jpg", "source": "image/menu.jpg"}],
    "checkpoints": [
        {
            "id": "a",
            "requirements": "The text",
            "weight": 2.0,
            "children": [
                {"id": "a1", "requirements": "It names the price."},
                {"id": "a2", "requirements": "It is short."},
            ],
        },
        {"id": "b", "requirements": "There is a file."},
    ],
}
TOOLS = {"Calculator": ToolSpec(name="Calculator", description="Computes.")}


def changed(task: dict[str, Any], place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The task with one value replaced."""
    found: Any = copy.deepcopy(task)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return dict(found)


def atomic(*place: str | int, to: object = None, sha: str = SHA) -> TaskDigests:
    raw = changed(ATOMIC, place, to) if place else ATOMIC
    return digest_atomic(AtomicTask.model_validate(raw), inputs={"inputs/menu.jpg": sha})


def workflow(
    *place: str | int, to: object = None, sha: str | None = SHA, tools: Any = TOOLS
) -> TaskDigests:
    raw = changed(WORKFLOW, place, to) if place else WORKFLOW
    task = WorkflowTask.model_validate(raw)
    return digest_workflow(task, inputs={"inputs/menu.jpg": sha}, tools=tools)


def differing(one: TaskDigests, other: TaskDigests) -> set[str]:
    """The names of the parts that differ."""
    parts = {name for name in ("asks", "weighs") if getattr(one, name) != getattr(other, name)}
    leaves = {*one.leaf, *other.leaf}
    return parts | {name for name in leaves if one.leaf.get(name) != other.leaf.get(name)}


@pytest.mark.parametrize(
    ("place", "to", "parts"),
    [
        (("category",), "Travel", set()),
        (("attachments", 0, "type"), "image", set()),
        (("attachments", 0, "url"), "https://example.org/menu.jpg", set()),
        (("attachments", 0, "source"), "moved/menu.jpg", set()),
        (("checkpoints", 0, "requirements"), "A heading that nobody scores", set()),
        (("checkpoints", 0, "weight"), 2, set()),
        (("request",), "Write a long report.", {"asks"}),
        (("checkpoints", 0, "weight"), 3, {"weighs"}),
        (("checkpoints", 0, "children", 1, "weight"), 0.5, {"weighs"}),
        (("checkpoints", 0, "id"), "c", {"weighs"}),
        (("checkpoints", 0, "children", 1, "requirements"), "It is long.", {"a2"}),
        (("checkpoints", 1, "requirements"), None, {"b"}),
        (("checkpoints", 1, "id"), "c", {"weighs", "b", "c"}),
    ],
)
def test_a_change_of_a_workflow_task_changes_its_part_alone(
    place: tuple[str | int, ...], to: object, parts: set[str]
) -> None:
    assert differing(workflow(), workflow(*place, to=to)) == parts


@pytest.mark.parametrize(
    ("place", "to", "parts"),
    [
        (("dialogue", 1, "thought"), "I compute.", set()),
        (("dialogue", 1, "content"), "Let me see.", set()),
        (("attachments", 0, "url"), "https://example.org/menu.jpg", set()),
        (("tools",), [*ATOMIC["tools"], {"name": "OCR", "description": "Again."}], set()),
        (("tools",), ATOMIC["tools"][::-1], set()),
        (("dialogue", 0, "content"), "What do three coffees cost?", {"asks"}),
        (("tools", 1, "description"), "Reads text.", {"asks"}),
        (("tools",), ATOMIC["tools"][:1], {"asks"}),
        (("dialogue", 1, "call", "arguments"), {"expression": "3*2"}, {"dialogue"}),
        (("dialogue", 2, "content"), "6.0", {"dialogue"}),
        (("dialogue", 3, "content"), "Six.", {"dialogue"}),
        (("answer", "whitelist"), [["6"]], {"answer"}),
        (("answer", "blacklist"), [["7"]], {"answer"}),
        (("answer",), {"kind": "free_text", "references": ["6"]}, {"answer"}),
        (("answer",), None, {"answer"}),
    ],
)
def test_a_change_of_an_atomic_task_changes_its_part_alone(
    place: tuple[str | int, ...], to: object, parts: set[str]
) -> None:
    assert differing(atomic(), atomic(*place, to=to)) == parts


def test_another_input_or_tool_is_another_question() -> None:
    assert differing(atomic(), atomic(sha="1" * 64)) == {"asks"}
    assert differing(workflow(), workflow(sha="1" * 64)) == {"asks"}
    assert differing(workflow(), workflow(sha=None)) == {"asks"}
    named = {"Calculator": None}
    assert differing(workflow(), workflow(tools=named)) == {"asks"}


def test_leaves_that_share_an_id_are_digested_together() -> None:
    twice = workflow("checkpoints", 0, "children", 1, "id", to="a1")
    other = changed(WORKFLOW, ("checkpoints", 0, "children", 1, "id"), "a1")
    other["checkpoints"][0]["children"][1]["requirements"] = "It is long."
    task = WorkflowTask.model_validate(other)
    again = digest_workflow(task, inputs={"inputs/menu.jpg": SHA}, tools=TOOLS)
    assert {*twice.leaf} == {"a1", "b"}
    assert differing(twice, again) == {"a1"}
    first = changed(WORKFLOW, ("checkpoints", 0, "children", 1, "id"), "a1")
    first["checkpoints"][0]["children"][0]["requirements"] = "It is long."
    earlier = WorkflowTask.model_validate(first)
    found = digest_workflow(earlier, inputs={"inputs/menu.jpg": SHA}, tools=TOOLS)
    assert differing(twice, found) == {"a1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [True, None]}, {"b": [True, None], "a": 1}),
        ({"a": 1.0, "b": -0.0}, {"a": 1, "b": 0}),
        ({"caf\u00e9": "\u00e9"}, {"cafe\u0301": "e\u0301"}),
        (1e20, 10**20),
    ],
)
def test_two_spellings_of_one_content_have_one_digest(one: JsonValue, other: JsonValue) -> None:
    assert canonical_json(one) == canonical_json(other)
    assert content_digest(one) == content_digest(other)


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, "1"), (0.5, 0.25), (None, ""), ([], {}), ("a", "A")]
)
def test_different_contents_have_different_digests(one: JsonValue, other: JsonValue) -> None:
    assert content_digest(one) != content_digest(other)


def test_the_canonical_form_is_compact_and_readable() -> None:
    assert canonical_json({"b": [1.0, 0.5], "a": "é"}) == '{"a":"é","b":[1,0.5]}'


def test_what_a_unit_does_not_tell_is_unknown_and_not_made_up() -> None:
    files = (Deliverable(path="inputs/menu.jpg", digest=SHA, size=1),)
    task, entry = AtomicTask.model_validate(ATOMIC), WorkflowTask.model_validate(WORKFLOW)
    assert digest_known(task, files) == atomic()
    without = digest_known(task, ())
    assert (without.inputs, without.asks) == (None, None)
    assert (without.request, without.tools, without.leaf) == (
        atomic().request,
        atomic().tools,
        atomic().leaf,
    )
    known = digest_known(entry, files)
    assert (known.tools, known.asks) == (None, None)
    assert (known.inputs, known.weighs, known.leaf) == (
        workflow().inputs,
        workflow().weighs,
        workflow().leaf,
    )


def test_a_task_without_attachments_has_known_inputs() -> None:
    task = AtomicTask.model_validate({**ATOMIC, "attachments": []})
    assert digest_known(task, ()) == digest_atomic(task, inputs={})


def whole(digests: TaskDigests) -> str:
    """All parts of a task in one digest."""
    return content_digest([digests.asks, dict(digests.leaf), digests.weighs])


GOLDEN = {
    "atomic": {
        "receipt": "24973e6599c9e1f3fae75708c6250c84",
        "homework": "5d46e2c837ad3823cc7ca344bafdec10",
        "chart": "21252ad0aa8d4a1e26c84587a833d29c",
        "departures": "1b21e446dc57797d2e2c88308b099a57",
        "postcard": "1ef02ab1342f3361917ea78d181d0eb8",
    },
    "workflow": {
        "sales": "646c75b21c429946c3d41d5cbf80093d",
        "picnic": "beaaef59888086a43651f42e3cf5c0b7",
    },
}


@pytest.mark.parametrize("name", ["atomic", "workflow"])
def test_the_digests_of_the_demo_tasks_never_change(name: str) -> None:
    """Stored runs hold digests: another way to compute them would make all history incomparable."""
    dataset = load_atomic(DEMO / name) if name == "atomic" else load_workflow(DEMO / name)
    found = {task: whole(task_digests(dataset, task)) for task in dataset.tasks}
    assert found == GOLDEN[name]


def test_files_are_hashed_once_per_loaded_dataset(tmp_path: Path) -> None:
    dataset = load_atomic(write_atomic(tmp_path))
    (task,) = dataset.tasks
    before = task_digests(dataset, task)
    (tmp_path / "image" / "menu.jpg").write_bytes(PNG)
    assert task_digests(dataset, task) is before
    assert differing(before, task_digests(load_atomic(tmp_path), task)) == {"asks"}
    (tmp_path / "image" / "menu.jpg").unlink()
    assert task_digests(load_atomic(tmp_path), task).asks not in (None, before.asks)


@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), "half a pair: \ud800", 10**400])
def test_whatever_a_dataset_can_hold_has_a_digest(odd: JsonValue) -> None:
    """A digest is a note beside a result: it must never be what makes a unit fail."""
    assert content_digest([odd]) == content_digest([odd]) != content_digest(["plain"])
