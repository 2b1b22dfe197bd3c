from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.checks import ATOMIC_CHECKS, WORKFLOW_CHECKS, verify
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.finding import Finding
from tests.builders import (
    JPEG,
    PNG,
    atomic_task,
    call,
    checkpoint,
    parameter,
    reply,
    tool,
    workflow_task,
    write_atomic,
    write_workflow,
)


def tasks_by_check(findings: Iterable[Finding]) -> dict[str, list[str | None]]:
    grouped: dict[str, list[str | None]] = defaultdict(list)
    for finding in findings:
        grouped[finding.check].append(finding.task)
    return grouped


def ids(text: str) -> list[str | None]:
    return list(text.split())


@pytest.fixture(scope="module")
def found_in_atomic(atomic_dir: Path) -> dict[str, list[str | None]]:
    return tasks_by_check(verify(load_atomic(atomic_dir)).findings)


@pytest.mark.parametrize(
    ("check", "tasks"),
    [
        ("no-final-answer", "12 14 15 34 35 44 45 46 47 48 49 115 157 166 175 176"),
        (
            "tool-differs",
            "50 51 52 83 85 86 87 88 89 160 178 179 180 181 182 183 184 186 190 191 192 212 219",
        ),
        ("tool-twice", "47"),
        ("plot-unparsable", "12 14 75 76 175 176"),
        ("unequal-replies", "51 204 108 225"),
        ("whitelist-unmatchable", "19 67 69 71 72 83 94 170 171 198 206"),
        ("host-path-reply", "118 118 118"),
        ("call-without-reply", "34 35"),
        ("argument-unlisted", "89 89"),
        ("argument-unfit", "34 35"),
        ("file-not-attached", "50 108 135 225 226"),
        ("content-beside-call", "34 35 37"),
        ("call-without-thought", "11 19 21 21 49 162 220 222 223"),
        (
            "placeholder-image",
            "48 49 149 150 151 152 154 155 156 157 158 199 224 225 226 227 228",
        ),
    ],
)
def test_the_known_quirks_of_gta_atomic_are_found(
    found_in_atomic: dict[str, list[str | None]], check: str, tasks: str
) -> None:
    assert found_in_atomic[check] == ids(tasks)


def test_the_eight_images_whose_bytes_disagree_are_found(atomic_dir: Path) -> None:
    findings = verify(load_atomic(atomic_dir)).findings
    images = {finding.file for finding in findings if finding.check == "bytes-disagree"}
    numbers = (106, 236, 243, 82, 200, 248, 305, 309)
    assert images == {f"image/image_{number}.jpg" for number in numbers}


def test_the_release_of_gta_atomic_is_usable_and_recognized(atomic_dir: Path) -> None:
    verified = verify(load_atomic(atomic_dir))
    assert verified.usable
    assert "not-the-release" not in tasks_by_check(verified.findings)


def test_the_attachments_missing_from_the_workflow_data_are_errors(workflow_dir: Path) -> None:
    verified = verify(load_workflow(workflow_dir))
    assert not verified.usable
    found = tasks_by_check(verified.findings)
    assert found["attachment-missing"] == ["82", "151"]
    assert len(found["host-path-default"]) == 14
    assert found["incomplete"] == [None]


def test_a_check_that_both_datasets_have_is_equally_grave_in_both() -> None:
    for name in ATOMIC_CHECKS.keys() & WORKFLOW_CHECKS.keys():
        assert ATOMIC_CHECKS[name].severity == WORKFLOW_CHECKS[name].severity


def atomic_checks(tmp_path: Path, task: dict[str, Any], **options: Any) -> list[str]:
    root = write_atomic(tmp_path, {"0": task}, **options)
    findings = verify(load_atomic(root)).findings
    return [finding.check for finding in findings if finding.check != "not-the-release"]


def dialogue(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "Q"},
        *turns,
        {"role": "assistant", "content": "A"},
    ]


OCR_CALL = call("OCR", {"image": "image/menu.jpg"})


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        ({}, []),
        ({"files": [{"path": "image/gone.jpg"}]},
         ["attachment-missing", "file-unused", "file-not-attached"]),
        ({"dialogs": dialogue(reply("OCR", "x"))}, ["reply-of-another-tool"]),
        ({"dialogs": [reply("OCR", "x")]}, ["no-final-answer", "reply-of-another-tool"]),
        ({"dialogs": dialogue(OCR_CALL, reply("Plot", "x"))}, ["reply-of-another-tool"]),
        ({"dialogs": dialogue(OCR_CALL)}, ["call-without-reply"]),
        ({"tools": [tool("Plot")], "dialogs": dialogue()}, ["tool-unknown"]),
        ({"tools": [tool("OCR", description="other")]}, ["tool-differs"]),
        ({"tools": [tool("OCR", parameter("picture", "image"))]}, ["tool-differs", "argument-unfit",
                                                                   "argument-unfit"]),
        ({"tools": []}, ["call-not-offered"]),
        (
            {"dialogs": dialogue(call("OCR", {"image": 5}), reply("OCR", "x"))},
            ["argument-unfit", "file-not-attached"],
        ),
        (
            {"dialogs": dialogue(call("OCR", {"image": "image/menu.jpg"}, thought=""),
                                 reply("OCR", "x"))},
            ["call-without-thought"],
        ),
    ],
)  # fmt: skip
def test_each_fault_of_a_task_is_found_by_its_check(
    tmp_path: Path, change: dict[str, Any], checks: list[str]
) -> None:
    (tmp_path / "image").mkdir()
    assert atomic_checks(tmp_path, atomic_task(**change)) == checks


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        (True, "bool", True),
        ("true", "bool", False),
        (3, "int", True),
        (True, "int", False),
        (3.5, "int", False),
        (3, "float", True),
        ("3", "float", False),
        ("x", "text", True),
        (None, "text", False),
    ],
)
def test_an_argument_of_another_type_is_found(
    tmp_path: Path, value: Any, kind: str, fits: bool
) -> None:
    own = tool("OCR", parameter("value", kind))
    task = atomic_task(
        tools=[own], dialogs=dialogue(call("OCR", {"value": value}), reply("OCR", "x"))
    )
    found = atomic_checks(tmp_path, task, toolmeta=[own])
    assert found == ([] if fits else ["argument-unfit"])


@pytest.mark.parametrize(
    ("command", "good"),
    [
        ("def solution():\n    return 1", True),
        ("```python\ndef solution():\n    return 1\n```", True),
        ("x = '\\d'", True),
        ("def solution(:", False),
        ("x = \0", False),
        ("(" * 2000 + ")" * 2000, False),
        ("-" * 200_000 + "1", False),
    ],
)
def test_a_plot_command_that_is_not_python_is_found(
    tmp_path: Path, command: str, good: bool
) -> None:
    plot = tool("Plot", parameter("command"))
    turns = dialogue(call("Plot", {"command": command}), reply("Plot", "x"))
    task = atomic_task(tools=[plot], dialogs=turns)
    assert atomic_checks(tmp_path, task, toolmeta=[plot]) == ([] if good else ["plot-unparsable"])


def test_equal_calls_with_unequal_replies_are_found_across_tasks(tmp_path: Path) -> None:
    other = atomic_task(dialogs=dialogue(OCR_CALL, reply("OCR", "something else")))
    root = write_atomic(tmp_path, {"0": atomic_task(), "1": other, "2": atomic_task()})
    found = tasks_by_check(verify(load_atomic(root)).findings)
    assert found["unequal-replies"] == ["1"]


def test_a_tool_that_toolmeta_lacks_is_found_once_and_its_arguments_are_not(
    tmp_path: Path,
) -> None:
    own = tool("Sing", parameter("song"))
    turns = dialogue(call("Sing", {"song": "la"}), reply("Sing", "x"))
    assert atomic_checks(tmp_path, atomic_task(tools=[own], dialogs=turns)) == ["tool-unknown"]


def test_a_dataset_with_every_task_of_the_release_is_not_incomplete(tmp_path: Path) -> None:
    root = write_workflow(tmp_path, {str(number): workflow_task() for number in range(132)})
    assert verify(load_workflow(root)).findings == ()


def test_a_description_that_two_tools_share_is_found(tmp_path: Path) -> None:
    twins = [tool("DrawBox", description="Draws."), tool("AddText", description="Draws.")]
    found = atomic_checks(tmp_path, atomic_task(), toolmeta=[tool("OCR"), *twins])
    assert found == ["description-copied"]


def test_a_file_that_is_not_what_its_name_says_is_found(tmp_path: Path) -> None:
    root = write_atomic(tmp_path)
    (root / "image" / "menu.jpg").write_bytes(PNG)
    found = tasks_by_check(verify(load_atomic(root)).findings)
    assert found["bytes-disagree"] == ["0"]


def workflow_checks(tmp_path: Path, task: dict[str, Any]) -> list[str]:
    root = write_workflow(tmp_path, {"0": task})
    findings = verify(load_workflow(root)).findings
    return [finding.check for finding in findings if finding.check != "incomplete"]


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        ({}, []),
        ({"sub_tasks": []}, ["no-checkpoints"]),
        ({"sub_tasks": [checkpoint("a", requirements=" ")]}, ["leaf-without-requirement"]),
        ({"sub_tasks": [checkpoint("a", checkpoint("a"))]}, ["checkpoint-twice"]),
        ({"sub_tasks": [checkpoint("a", weight=0)]}, ["weight-zero"]),
        ({"workflow_category_6class": "Gardening"}, ["category-unknown"]),
        ({"files": [{"path": "a.jpg", "type": "video"}]}, ["type-disagrees"]),
        ({"files": [{"path": "a.jpg", "type": "image"}]}, []),
        ({"files": [{"path": "a.jpg"}]}, []),
        ({"files": [{"path": "b.csv", "type": "file"}]}, ["attachment-missing"]),
    ],
)
def test_each_fault_of_a_workflow_task_is_found_by_its_check(
    tmp_path: Path, change: dict[str, Any], checks: list[str]
) -> None:
    (tmp_path / "a.jpg").write_bytes(JPEG)
    assert workflow_checks(tmp_path, workflow_task(**change)) == checks
