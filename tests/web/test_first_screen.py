"""The first screen of a report: how many tasks its numbers are about, and what is beside them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.pinned import RELEASED_DIGESTS
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.tape import TapeUse
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.web.first_screen import FirstScreen, find_headlines, view_first_screen
from gta_bench.web.material import JudgedRun, RunMaterial
from gta_bench.web.page import render_report
from tests.builders import manifest
from tests.metrics.workflow_units import SEVEN, rows, unit
from tests.web.test_atomic_page import gold, material

Tasks = Mapping[str, AtomicTask]


def screen(run: RunMaterial) -> FirstScreen:
    return view_first_screen(1, run, find_headlines(run))


def judged(values: Mapping[str, Mapping[str, float | str]], name: str = "a") -> JudgedRun:
    """A Workflow run with these verdicts by task."""
    units = [unit(task) for task in values]
    said = [row for task, own in values.items() for row in rows(own, task)]
    about = manifest(
        dataset="workflow",
        dataset_digest="0",
        mode="workflow",
        system=System(model="m", agent="toolcalling"),
        tasks=tuple(values),
    )
    scores = score_workflow(units, said, thresholds=SEVEN)
    return JudgedRun(WorkflowSummary(name, about, scores), units, {}, {}, lambda digest: b"")


RELEASED = RELEASED_DIGESTS["atomic"]
GOLD = System(model="none/none", agent="gold")
RIGHT: Mapping[str, float | str] = {"a1": 10, "a2": 9, "b": 8}
LOST: Mapping[str, float | str] = {"a1": 10, "a2": 9, "b": "timeout"}


def test_n_is_the_number_of_tasks_that_the_metric_counts(atomic_tasks: Tasks) -> None:
    found = screen(material(gold(atomic_tasks), "end-to-end"))
    assert found.interval.endswith("· n 172 of 229 tasks, those with a reference answer")
    smalls = {one.name: one.small for one in found.figures}
    assert smalls["AnsAcc+I"].endswith(" · n 229")


def test_the_interval_of_a_run_that_lacks_scores_is_one_of_its_judged_tasks() -> None:
    found = screen(judged({"1": RIGHT, "2": RIGHT, "3": LOST}))
    assert found.interval.startswith("95 % interval of the 2 judged tasks ")
    assert found.interval.endswith(" · n 2 of 3 tasks")
    whole = screen(judged({"1": RIGHT, "2": RIGHT}))
    assert "judged" not in whole.interval and whole.interval.endswith(" · n 2 of 2 tasks")
    assert screen(judged({"1": LOST})).interval == "n 0 of 1 task"


def test_a_run_without_score_is_named_in_the_comparison() -> None:
    text = render_report([judged({"1": RIGHT}), judged({"1": LOST}, "b")])
    assert '<a href="#run-2">2 (b)</a>: no score yet' in text
    assert text.count(": no score yet") == 1


def test_text_from_outside_hides_and_reorders_nothing() -> None:
    """A model's name could turn the rest of its line around, and an answer could delete text."""
    run = judged({"1": RIGHT}, "mine\u202e")
    system = System(model="m\u2067odel\u200b", agent="toolcalling")
    about = manifest(dataset="workflow", mode="workflow", tasks=("1",), system=system)
    trace = (AnswerStep(content="Done.\x1b[2K\x00 \U000e0041 \u200d<b> 👩\u200d💻"),)
    units = [one.model_copy(update={"trace": trace}) for one in run.units]
    changed = replace(run, summary=run.summary._replace(manifest=about), units=units)
    text = render_report([changed])
    assert "m[U+2067]odel[U+200B]" in text and "mine[U+202E]" in text
    assert "Done.[U+001B][2K[U+0000] [U+E0041] [U+200D]&lt;b&gt; 👩\u200d💻" in text
    assert not [sign for sign in "\u202e\u2067\u200b\x1b\x00\U000e0041" if sign in text]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tasks": ("own-task",)}, "These tasks are not the released ones"),
        ({"edited_from": "0"}, "These tasks are not the released ones"),
        ({"dataset_digest": "0" * 64}, "The dataset 000000000000 is not the released one"),
        ({"system": GOLD}, "The agent gold is scripted and asks no model"),
        (
            {"system": System(model="mockllm/m", agent="react")},
            "The model mockllm/m is scripted",
        ),
        (
            {"tape": TapeUse(mode="replay", origin="reference")},
            "The tool replies come from the reference",
        ),
        ({"controls": ("no-tools",)}, "The run is under controls (no-tools)"),
        ({}, "Answers were compared by exact-or-half, not by the published similarity"),
    ],
)
def test_published_systems_are_left_out_where_they_are_not_comparable(
    atomic_tasks: Tasks, changes: dict[str, Any], reason: str
) -> None:
    few = dict(list(atomic_tasks.items())[:4])
    run = material(gold(few), "end-to-end")
    facts = {"mode": "end-to-end", "tasks": tuple(few), "dataset_digest": RELEASED, **changes}
    about = manifest(**facts)
    found = screen(replace(run, summary=run.summary._replace(manifest=about)))
    assert found.neighbors is None
    assert found.no_neighbors == f"{reason}, so no published result is comparable."


def test_the_released_digest_is_that_of_the_released_data(data_dir: Path) -> None:
    assert dataset_digest(load_atomic(data_dir / "gta_atomic")) == RELEASED


def test_intervals_are_compared_with_published_ones_only_on_all_tasks(atomic_tasks: Tasks) -> None:
    def note(tasks: Tasks) -> str:
        run = material(gold(tasks, "step"), "step")
        about = manifest(mode="step", tasks=tuple(tasks), dataset_digest=RELEASED)
        found = screen(replace(run, summary=run.summary._replace(manifest=about))).neighbors
        assert found is not None
        return found.note

    assert "overlaps" in note(atomic_tasks)
    few = note(dict(list(atomic_tasks.items())[:4]))
    assert few.startswith("Not all 229 tasks have a score here") and "overlaps" not in few


def test_causes_come_before_published_systems_where_panels_are_stacked(atomic_tasks: Tasks) -> None:
    """On phones, panels are in the order of the page."""
    run = material(gold(atomic_tasks, "step"), "step")
    about = manifest(mode="step", tasks=tuple(atomic_tasks), dataset_digest=RELEASED)
    text = render_report([replace(run, summary=run.summary._replace(manifest=about))])
    first, beside = (text.index(title) for title in ("What became of", "Next to published systems"))
    assert text.index('<div class="hero">') < first < beside < text.index("What to do next")
