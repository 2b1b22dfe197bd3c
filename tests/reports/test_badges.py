"""What stands beside a number that would be taken for more than it is."""

from typing import Any

import pytest

from gta_bench.records.run import System
from gta_bench.records.tape import TapeUse
from gta_bench.reports.summary import judge_badges, run_badges
from tests.builders import manifest

ALL = tuple(map(str, range(229)))
GOLD = System(model="none/none", agent="gold")


@pytest.mark.parametrize(
    ("changes", "badges"),
    [
        ({"tasks": ALL}, ()),
        ({"tasks": ALL, "dataset_tasks": 229}, ()),
        ({"tasks": ALL[:4]}, ("subset: 4 of 229 tasks",)),
        ({"tasks": ALL[:1], "dataset_tasks": 229}, ("subset: 1 of 229 tasks",)),
        ({"dataset": "workflow", "mode": "workflow"}, ("subset: 2 of 132 tasks",)),
        ({"dataset_tasks": 2}, ("dataset of 2 tasks, not the released 229",)),
        (
            {"dataset_tasks": 3},
            ("subset: 2 of 3 tasks", "dataset of 3 tasks, not the released 229"),
        ),
        ({"tasks": ALL, "system": GOLD}, ("scripted agent (gold)",)),
        (
            {"tasks": ALL, "system": System(model="mockllm/x", agent="react")},
            ("scripted model",),
        ),
        (
            {"tasks": ALL, "imported_from": "a folder", "network": "open"},
            ("imported", "open network"),
        ),
        (
            {
                "tasks": ALL,
                "controls": ("no-tools",),
                "tape": TapeUse(mode="replay", origin="reference"),
                "system": System(model="m", agent="toolcalling", images="attached"),
            },
            ("under controls (no-tools)", "tool replies from the reference", "images attached"),
        ),
    ],
)
def test_a_run_says_what_its_number_is_not(
    changes: dict[str, Any], badges: tuple[str, ...]
) -> None:
    assert run_badges(manifest(**changes)) == badges


@pytest.mark.parametrize(
    ("judge", "badges"),
    [
        ("scripted/honest [inputs=off]", ("scripted judge",)),
        ("mockllm/scripted-judge", ("scripted judge",)),
        ("openai/scripted", ()),
    ],
)
def test_a_scripted_judge_is_no_judge(judge: str, badges: tuple[str, ...]) -> None:
    assert judge_badges(judge) == badges
