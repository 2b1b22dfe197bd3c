"""What a report says of runs under controls."""

import re
from typing import Any

import pytest

from gta_bench.decisions.controls import (
    NO_FLOOR,
    compare_controls,
    effect_remarks,
    effect_table,
    task_table,
)
from gta_bench.metrics.counts import add_counts
from gta_bench.records.calls import CallRecord
from gta_bench.records.scores import Disturbance
from gta_bench.records.tape import TapeUse
from gta_bench.reports.summary import RunSummary, remarks
from tests.metrics.test_control_effect import manifest, scores

PLAIN = RunSummary("plain", manifest(), scores({"a": "7", "b": "7", "c": "8"}))
ENDS = re.compile(r"[\d.]+ to [\d.]+")
FAULT = CallRecord(tool="OCR", status="error", seconds=0, control="fault")
LURED = CallRecord(tool="Lure", status="done", seconds=0)


def under(*controls: str, answers: dict[str, str], call: CallRecord | None = None) -> RunSummary:
    calls = () if call is None else (call,)
    return RunSummary("run", manifest(controls=controls), scores(answers, *calls))


@pytest.mark.parametrize(
    ("control", "call", "said"),
    [
        (
            "no-tools",
            None,
            [
                "1 of 2 units solved with tools are also solved without any (50.0 %, LOW to HIGH); "
                "1 are not.",
                "solved without tools: tasks a.",
            ],
        ),
        (
            "faults=0.5",
            FAULT,
            [
                "it recovered from 0 of 3 faults (0.0 %, LOW to HIGH); of 2 units with a fault "
                "that are solved without the control, 1 are solved with it (50.0 %, LOW to HIGH).",
                "solved only without the control: tasks b.",
                "solved only with the control: tasks c.",
            ],
        ),
        (
            "distractors=2",
            LURED,
            [
                "3 calls went to distractors, in 3 units.",
                "solved only without the control: tasks b.",
                "solved only with the control: tasks c.",
            ],
        ),
    ],
)
def test_each_control_has_its_sentence_and_its_tasks(
    control: str, call: CallRecord | None, said: list[str]
) -> None:
    run = under(control, answers={"a": "7", "b": "8", "c": "7"}, call=call)
    compared = compare_controls([PLAIN, run])
    floor, change, *rest = effect_remarks(compared[0])
    assert floor == NO_FLOOR
    assert change.startswith("solved with the control minus without it, in points: +0.0 (")
    assert change.endswith("which may be chance.")
    assert [ENDS.sub("LOW to HIGH", one) for one in rest] == said


def under_no_tools(answers: dict[str, list[str]], plain: dict[str, list[str]]) -> list[str]:
    manifests = manifest(), manifest(controls=("no-tools",))
    runs = [
        RunSummary("x", one, scores(own))
        for one, own in zip(manifests, (plain, answers), strict=True)
    ]
    return effect_remarks(compare_controls(runs)[0])


def test_the_noise_floor_is_what_epochs_without_the_control_differ_by() -> None:
    """Of the two other epochs of each solved one, one is not solved, without any control."""
    epochs = [["7", "7", "8"], ["7", "8", "7"], ["8", "7", "7"]]
    plain = {str(number): epochs[number % 3] for number in range(30)}
    shifted = {str(number): epochs[(number + 1) % 3] for number in range(30)}
    floor, change, *_ = under_no_tools(shifted, plain)
    assert (
        floor.startswith("noise floor: of units solved without the control, 50.0 %, ")
        and "; with the control 50.0 %, " in floor
    )
    assert "in points: +0.0 (" in change and change.endswith("which may be chance.")
    floor, change, *_ = under_no_tools({name: ["8"] * 3 for name in plain}, plain)
    assert "; with the control 100.0 %, " in floor
    assert change.endswith("more than chance.")


def test_epochs_in_which_nothing_is_solved_have_no_noise_floor() -> None:
    wrong = {"a": ["8", "8"], "b": ["8", "9"]}
    said = under_no_tools(wrong, wrong)
    assert said[0].startswith("solved with the control minus without it, in points: +0.0 (")


def test_tables_have_a_row_for_each_control_and_for_each_task() -> None:
    run = under("faults=0.5", answers={"a": "7", "b": "8"}, call=FAULT)
    alone = RunSummary("x", manifest(controls=("no-tools",), dataset_digest="other"), run.scores)
    compared = compare_controls([run, PLAIN, alone])
    assert [one.plain for one in compared] == [PLAIN, None]
    table = effect_table(compared)
    assert [(*row[:5], *row[6:9]) for row in table.rows] == [
        ("run", "faults=0.5", "2", "2", "1", "1", "1", "0"),
    ]
    assert table.rows[0][5].startswith("-50.0 (")
    assert table.rows[0][9].startswith("50.00 (") and table.rows[0][10] == "-"
    assert compared[0].effect is not None
    assert task_table(compared[0].effect).rows == (
        ("a", "1", "1.00", "1.00", "faults: 1, recovered: 0", "kept"),
        ("b", "1", "1.00", "0.00", "faults: 1, recovered: 0", "lost"),
    )
    assert "also pass the same system's run without it" in effect_remarks(compared[1])[0]


def tape_remarks(use: dict[str, Any], *calls: CallRecord) -> list[str]:
    used = TapeUse.model_validate({"mode": "replay", "origin": "live", "digest": "d" * 64, **use})
    return remarks(RunSummary("run", manifest(tape=used), scores({"a": "7"}, *calls)))


def test_a_report_says_where_replies_came_from_and_what_was_missing() -> None:
    missing = CallRecord(
        tool="OCR",
        status="unavailable",
        seconds=0,
        taped="missing",
        message="No reply. Nearest: x.",
    )
    assert "tape dddddddddddddddd, replay." in tape_remarks({})
    assert "tape, record." in tape_remarks({"mode": "record", "digest": None})
    said = tape_remarks({"origin": "reference"}, missing)
    assert any("replies come from the reference dialogues (tape dddddddd" in one for one in said)
    assert any("1 call had no recorded reply" in one and "Nearest: x." in one for one in said)


def test_disturbances_add_up() -> None:
    one = Disturbance(replayed=1, faults=2)
    assert add_counts(Disturbance, [one, one]) == Disturbance(replayed=2, faults=4)
