"""The gate on outcomes with known flips: decisions, flaky leaves, missing scores, refusals."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from gta_bench.decisions.gate import choose_metric, decide_gate, format_baseline
from gta_bench.decisions.gate_tables import (
    LONGEST_MARKDOWN,
    TASKS_IN_MARKDOWN,
    format_gate_junit,
    format_gate_markdown,
    list_remarks,
    state_decision,
)
from gta_bench.errors import GtaError, UsageError
from gta_bench.records.gate import (
    EXIT_CODES,
    GateFlip,
    GateResult,
    Repeats,
    RunOutcomes,
    TaskOutcomes,
)
from tests.builders import manifest

Leaves = dict[str, dict[str, Repeats]]
WHEN = datetime(2026, 11, 17, tzinfo=UTC)


def outcomes(
    *values: tuple[float | None, ...],
    leaves: Leaves | None = None,
    **changes: Any,
) -> RunOutcomes:
    """A Workflow run whose tasks "0", "1" … have these outcomes."""
    names = tuple(str(number) for number in range(len(values)))
    spec = manifest(
        dataset="workflow", mode="workflow", tasks=names, epochs=max(map(len, values))
    ).spec
    facts: dict[str, Any] = {
        "name": "runs/a",
        "metric": "root_sr",
        "judge": "strict",
        "created": WHEN,
        "spec": spec,
        "dataset_digest": "d",
        "scoring_version": 4,
        "thresholds": (7.0, 7.0),
        "tasks": tuple(
            TaskOutcomes(task=name, values=own, leaves=(leaves or {}).get(name, {}))
            for name, own in zip(names, values, strict=True)
        ),
    }
    return RunOutcomes(**{**facts, **changes})


def passing(*passed: int, **changes: Any) -> RunOutcomes:
    """One repeat of each task."""
    return outcomes(*((float(one),) for one in passed), **changes)


def newer(run: RunOutcomes) -> RunOutcomes:
    return run.model_copy(update={"name": "runs/b", "created": WHEN + timedelta(days=1)})


def show(flip: GateFlip) -> str:
    return f"gta view runs/b --task {flip.task}"


@pytest.mark.parametrize(
    ("broken", "margin", "decision"),
    [
        (0, 15, "not worse"),
        (0, 10, "undecided"),
        (1, 15, "undecided"),
        (3, 15, "undecided"),
        (5, 15, "worse"),
        (8, 10, "worse"),
        (8, 61, "not worse"),
        (0, 0, "undecided"),
    ],
)
def test_twenty_tasks_of_which_some_break(broken: int, margin: float, decision: str) -> None:
    base = passing(*[1] * 20)
    new = newer(passing(*[0] * broken, *[1] * (20 - broken)))
    found = decide_gate(base, new, margin=margin)
    assert found.decision == decision
    assert found.exit_code == {"not worse": 0, "worse": 10, "undecided": 11}[decision]
    assert found.base_value is not None and found.new_value is not None
    drop = found.base_value - found.new_value
    assert drop == pytest.approx(5 * broken)
    assert found.low is not None and found.high is not None
    assert found.low <= drop <= found.high
    assert [(flip.task, flip.worse) for flip in found.flips] == [
        (str(number), True) for number in range(broken)
    ]


def test_the_sentence_names_metric_margin_tasks_and_the_risk() -> None:
    base, bad = passing(*[1] * 20), newer(passing(*[0] * 8, *[1] * 12))
    assert state_decision(decide_gate(base, bad)) == (
        "Worse: NEW has dropped in Root SR over 20 tasks (5 % risk of error), and a drop of 10 "
        "points or more cannot be ruled out. BASE 100.00, NEW 60.00, change -40.00; the true "
        "change is at least -60.64 and at most -13.71 (each with 95 % confidence)."
    )
    good = state_decision(decide_gate(base, newer(base), margin=15))
    assert good.startswith("Not worse: NEW has not dropped by 15 points or more in Root SR over 20")
    small = state_decision(decide_gate(base, bad, margin=70))
    assert "There is a drop, but it is smaller than that." in small
    equal = state_decision(decide_gate(base, newer(base)))
    assert equal.startswith("Undecided: neither a drop above 0 in Root SR over 20 tasks is shown")
    often = decide_gate(base, bad, sequential=True, seed="x")
    assert f"; {often.used} of 20 tasks used, in random order." in state_decision(often)


def test_the_order_of_a_sequential_test_is_another_one_for_every_pair_of_runs() -> None:
    base, bad = passing(*[1] * 20), newer(passing(*[0] * 8, *[1] * 12))
    found = decide_gate(base, bad, sequential=True)
    assert (found.decision, found.low) == ("worse", None)
    later = bad.model_copy(update={"created": WHEN + timedelta(days=2)})
    assert decide_gate(base, later, sequential=True).tasks != found.tasks
    assert sorted(found.tasks) == sorted(decide_gate(base, bad).tasks)


def test_repeats_of_a_task_count_once_by_their_mean() -> None:
    base = outcomes(*[(1.0, 1.0, 0.0)] * 12)
    found = decide_gate(base, newer(outcomes(*[(0.0,)] * 12)), margin=10)
    assert found.base_value == pytest.approx(200 / 3)
    assert (found.decision, found.repeats) == ("worse", (3, 1))
    assert {flip.base_repeats for flip in found.flips} == {"flaky"}


def test_leaves_that_flip_between_repeats_of_base_are_flaky_and_unknown_with_one() -> None:
    leaves: Leaves = {"0": {"sums": (8.0, 3.0), "text": (9.0, 10.0), "new": (9.0, None)}}
    now: Leaves = {"0": {"sums": (2.0, 2.0), "text": (6.9, 9.0), "new": (1.0, None)}}
    base, new = outcomes((1.0, 0.0), leaves=leaves), newer(outcomes((1.0, 1.0), leaves=now))
    found = decide_gate(base, new)
    assert found.flaky == ("0 / sums",)
    assert [(flip.leaf, flip.base, flip.new, flip.base_repeats) for flip in found.flips] == [
        (None, 50, 100, "flaky"),
        ("new", 100, 0, "unknown"),
        ("sums", 50, 0, "flaky"),
        ("text", 100, 50, "steady"),
    ]
    assert [flip.epoch for flip in found.flips] == [1, 1, 1, 1]
    assert "flaky in BASE, its repeats differ: 0 / sums" in list(list_remarks(found))
    once = decide_gate(passing(1), newer(passing(0)))
    assert once.flips[0].base_repeats == "unknown"
    assert any("unknown, because it has one repeat" in remark for remark in list_remarks(once))
    flaky = decide_gate(outcomes((1.0, 0.0)), newer(outcomes((1.0, 0.5))))
    assert flaky.flaky == ("0",)


def test_missing_scores_matter_only_if_they_could_change_the_decision() -> None:
    base = passing(*[1] * 20)
    few = newer(outcomes(*[(0.0,)] * 12, *[(1.0,)] * 6, (None,), (None,)))
    found = decide_gate(base, few)
    assert (found.decision, found.missing) == ("worse", ("18", "19"))
    assert any("whatever their scores are" in remark for remark in list_remarks(found))
    assert found.new_value == pytest.approx(100 * 6 / 18)
    many = newer(outcomes(*[(0.0,)] * 4, *[(1.0,)] * 6, *[(None,)] * 10))
    lacking = decide_gate(base, many)
    assert (lacking.decision, lacking.exit_code) == (None, 3)
    assert "10 tasks of 20 have no score" in state_decision(lacking)
    one = decide_gate(base, newer(outcomes(*[(0.0,)] * 4, *[(1.0,)] * 15, (None,))))
    assert "1 task of 20 has no score" in state_decision(one)
    nothing = decide_gate(base, newer(outcomes(*[(None,)] * 20)))
    assert nothing.exit_code == 3
    assert "No task is scored in both runs." in state_decision(nothing)
    assert "| - | - |" in format_gate_markdown(nothing, show)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"metric": "leaf_sr"}, "the metrics differ (root_sr and leaf_sr)"),
        ({"judge": "mild"}, "the judges differ (strict and mild)"),
        ({"thresholds": (6.0, 7.0)}, "the thresholds differ"),
        ({"scoring_version": 3}, "the scoring versions differ (4 and 3); run `gta score` on both"),
        ({"judge_prompts": ("x", "y")}, "the prompts of strict differ; judge both again"),
        ({"created": WHEN}, "they are the same run, or copies of it"),
        ({"tasks": ()}, "no task with this metric is the same in both"),
    ],
)
def test_what_is_not_measured_alike_is_refused(changes: dict[str, Any], said: str) -> None:
    base = passing(1, 1)
    with pytest.raises(GtaError) as raised:
        decide_gate(base, newer(base).model_copy(update=changes))
    assert said in str(raised.value)
    assert raised.value.exit_code == 2


def test_only_tasks_that_are_the_same_and_have_the_metric_are_paired() -> None:
    def with_digests(run: RunOutcomes, *digests: str | None) -> RunOutcomes:
        tasks = tuple(
            own.model_copy(update={"digest": digest and digest * 32})
            for own, digest in zip(run.tasks, digests, strict=True)
        )
        return run.model_copy(update={"tasks": tasks})

    base = with_digests(outcomes((1.0,), (1.0,), (), (1.0,)), "a", "b", "c", None)
    new = with_digests(newer(outcomes((1.0,), (1.0,), (), (1.0,), (1.0,))), "a", "x", "c", "d", "e")
    edited = new.model_copy(update={"dataset_digest": "e"})
    found = decide_gate(base, edited)
    assert (found.tasks, found.left_out) == (("0", "3"), ("1", "4"))
    assert any(remark.startswith("left out") for remark in list_remarks(found))
    assert decide_gate(base, new).tasks == ("0", "1", "3"), "the same dataset needs no digests"


def test_other_settings_are_named() -> None:
    base = passing(1, 1)
    spec = base.spec.model_copy(update={"tools": "http://127.0.0.1:1"})
    new = newer(base).model_copy(update={"spec": spec, "prompts": {"leaf.md": "a" * 64}})
    remarks = list(list_remarks(decide_gate(base, new)))
    assert remarks[-1].startswith("not only the system differs: tools: local and http://127")
    assert "prompts: - and leaf.md aaaaaaaaaaaa" in remarks[-1]


def test_wrong_margins_and_metrics_name_the_right_ones() -> None:
    with pytest.raises(UsageError, match="not from 0 to below 100 points"):
        decide_gate(passing(1), newer(passing(0)), margin=100)
    with pytest.raises(UsageError, match=r"did you mean 'root_sr'\? Metrics for workflow runs"):
        choose_metric("workflow", "root_rs")
    assert choose_metric("workflow", None).name == "root_sr"
    ten = decide_gate(
        passing(1, metric="root_score"), newer(passing(0, metric="root_score")), margin=None
    )
    assert (ten.margin, ten.most, ten.base_value) == (1.0, 10.0, 10.0)


def test_a_baseline_survives_writing_and_reading_with_a_line_for_each_task() -> None:
    run = outcomes((1.0, None), (0.5, 1.0), leaves={"0": {"sums": (8.0, None)}})
    text = format_baseline(run)
    assert RunOutcomes.model_validate_json(text) == run
    assert sum('"task"' in line for line in text.splitlines()) == 2
    assert run.describe().startswith("runs/a, root_sr: m")


def find_case(gate: GateResult, name: str) -> str:
    xml = format_gate_junit(gate, show, when=WHEN).decode()
    return xml.split(f'name="{name}" time="0"')[1].split("<testcase")[0]


def test_single_tasks_fail_in_junit_only_if_the_system_got_worse() -> None:
    base = passing(*[1] * 20)
    bad = decide_gate(base, newer(passing(*[0] * 8, *[1] * 12)))
    assert '<failure message="Root SR fell from 100.0 to 0.0." type="worse">' in find_case(bad, "3")
    assert '<failure message="Worse: ' in find_case(bad, "decision")
    chance = decide_gate(base, newer(passing(0, *[1] * 19)))
    assert "failure" not in find_case(chance, "0")
    assert "gta view runs/b --task 0" in find_case(chance, "0")
    assert '<skipped message="Undecided: ' in find_case(chance, "decision")
    lacking = decide_gate(base, newer(outcomes(*[(0.0,)] * 4, *[(1.0,)] * 15, (None,))))
    assert 'type="unscored"' in find_case(lacking, "19")
    assert "<error" in find_case(lacking, "decision")


def test_markdown_is_short_enough_for_a_comment() -> None:
    base = passing(*[1] * 229)
    text = format_gate_markdown(decide_gate(base, newer(passing(*[0] * 229))), show)
    assert f"And {229 - TASKS_IN_MARKDOWN} more tasks." in text
    assert len(text.encode()) < 64 * 1024
    assert text.startswith("<!-- gta-bench:gate -->\n## Gate: worse\n")
    assert "| 7 | 100.0 | 0.0 | - | `gta view runs/b --task 7` |" in text
    link = format_gate_markdown(decide_gate(base, newer(passing(*[0] * 229))), lambda _: "r.html#x")
    assert "| [open](r.html#x) |" in link


def test_markdown_has_one_row_for_each_task_with_its_leaves() -> None:
    leaves: Leaves = {"0": {"sums": (8.0, 3.0), "text": (9.0, 9.0)}, "1": {"new": (0.0, 0.0)}}
    now: Leaves = {"0": {"sums": (2.0, 2.0), "text": (1.0, 1.0)}, "1": {"new": (9.0, 0.0)}}
    base, new = (
        outcomes((1.0, 0.0), (1.0, 1.0), leaves=leaves),
        newer(outcomes((0.0, 0.0), (1.0, 1.0), leaves=now)),
    )
    text = format_gate_markdown(decide_gate(base, new), lambda _: "r.html#x")
    worse = "| 0 | 50.0 | 0.0 | flaky | text, sums (50 to 0 %, flaky in BASE) | [open](r.html#x) |"
    assert worse in text
    assert "| 1 | same | same | - | new (0 to 50 %) | [open](r.html#x) |" in text


def test_names_can_neither_begin_a_line_nor_markup() -> None:
    evil = "x\n::error::owned\n## Gate: not worse <img src=x> [a](b) `c` | d @me"
    base, new = (
        passing(1, 1, leaves={"0": {evil: (9.0,)}}),
        passing(0, 1, leaves={"0": {evil: (1.0,)}}),
    )
    gate = decide_gate(base, newer(new)).model_copy(
        update={"left_out": (evil,), "missing": (evil,), "decision": None}
    )
    text = format_gate_markdown(gate, lambda flip: f"gta view {evil} --task 0")
    said = [state_decision(gate), *list_remarks(gate), *text.splitlines()]
    assert not any("\n" in one for one in said)
    assert not any(one.startswith(("::", "## Gate: not worse")) for one in said)
    shown = "x ::<!-- -->error::owned #<!-- -->#<!-- --> Gate: not worse "
    shown += "\\<img src=x\\> \\[a\\](b) \\`c\\`"
    assert f"| {shown} \\| d @<!-- -->me |" in text
    assert f"- left out, not the same in both runs: {shown} | d @<!-- -->me" in text
    assert "`` gta view x ::error" in text


def test_markdown_with_long_names_is_short_enough_for_a_comment() -> None:
    names = {f"{number} {'x' * 200}": (9.0,) for number in range(8)}
    failed: dict[str, Repeats] = dict.fromkeys(names, (1.0,))
    base = passing(*[1] * 90, leaves={str(task): {**names} for task in range(90)})
    new = passing(*[0] * 90, leaves={str(task): failed for task in range(90)})
    text = format_gate_markdown(decide_gate(base, newer(new)), show)
    assert 20_000 < len(text.encode()) <= LONGEST_MARKDOWN
    assert "And 65 more tasks." in text


def test_a_leaf_that_got_better_in_a_task_that_got_worse_does_not_hide_that() -> None:
    base = passing(1, leaves={"0": {"a": (9.0,), "b": (1.0,)}})
    new = passing(0, leaves={"0": {"a": (1.0,), "b": (9.0,)}})
    better = format_gate_markdown(decide_gate(base, newer(new)), show).split("got better")[1]
    assert "| 0 | 100.0 | 0.0 | b |" in better


def test_the_sentence_says_that_tasks_were_left_out() -> None:
    gate = decide_gate(passing(1, 1, 1), newer(passing(1, 1)))
    assert "in Root SR over 2 tasks that both runs have (1 left out) is shown" in state_decision(
        gate
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"values": [-5.0]},
        {"values": [7.0]},
        {"values": [float("nan")]},
        {"values": [1.0, 1.0]},
        {"leaves": {"a": [11.0]}},
        {"task": "1"},
    ],
)
def test_a_baseline_that_was_edited_into_nonsense_is_refused(changes: dict[str, Any]) -> None:
    stored = json.loads(format_baseline(passing(1, 0)))
    stored["tasks"][0].update(changes)
    with pytest.raises(ValidationError):
        RunOutcomes.model_validate(stored)


def test_no_error_has_an_exit_code_of_the_gate() -> None:
    def every(kind: type[GtaError]) -> list[type[GtaError]]:
        return [kind, *(one for sub in kind.__subclasses__() for one in every(sub))]

    assert {EXIT_CODES["worse"], EXIT_CODES["undecided"]} == {10, 11}
    assert not {kind.exit_code for kind in every(GtaError)} & {10, 11}
