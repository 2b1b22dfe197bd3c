"""Every figure of docs/deviations.md is measured here, and no figure there is unmeasured."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.metrics.categories import IMAGE_TOOLS, TOOL_CATEGORY
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask, WhitelistAnswer
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep, ThoughtStep
from tests.metrics.atomic_variants import (
    FAILURE,
    Traces,
    answers,
    arguments,
    changed,
    every_third_call_failed,
    once,
    score_end_to_end_compat,
    score_end_to_end_strict,
    score_steps_compat,
    score_steps_strict,
    steps_of,
    traces_of,
    without_every_fourth,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "deviations.md"
FIGURE = re.compile(r"([a-z-]+): `([a-z_0-9]+)` ([0-9.]+) → ([0-9.]+)")
PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

Tasks = Mapping[str, AtomicTask]


def _crash(step: PredictedStep) -> PredictedStep:
    if not isinstance(step, AnswerStep):
        return step
    return AnswerStep(content=f"[LagentAgentError] {step.content}", error=FAILURE)


def _unspoken(step: PredictedStep) -> PredictedStep:
    return ThoughtStep(content=step.content) if isinstance(step, AnswerStep) else step


def _half_more(text: str) -> str:
    return f"{text}.5" if text.isdecimal() else text


def _negated(text: str) -> str:
    return f"-{text}" if PLAIN_NUMBER.fullmatch(text) else text


def _written_out(text: str) -> str:
    return f"{float(text):,.3f}" if PLAIN_NUMBER.fullmatch(text) else text


def _typeset(text: str) -> str:
    """Minus signs and apostrophes as a typesetter has them; long texts stay as they are."""
    return text.replace("-", "\u2212").replace("'", "\u2019") if len(text) < 100 else text


def _number_for_truth(value: JsonValue) -> JsonValue:
    return int(value) if isinstance(value, bool) else value


def _dotted(value: JsonValue) -> JsonValue:
    is_path = isinstance(value, str) and value.startswith(("inputs/", "outputs/"))
    return f"./{value}" if is_path else value


def _own_file(value: JsonValue) -> JsonValue:
    return "outputs/1.png" if value == PLACEHOLDER_IMAGE else value


def _without_add_text(traces: Traces) -> Traces:
    return {
        name: tuple(s for s in trace if not (isinstance(s, CallStep) and s.name == "AddText"))
        for name, trace in traces.items()
    }


SETS: Mapping[str, Callable[[Traces], Traces]] = {
    "reference": lambda traces: traces,
    "third-failed": every_third_call_failed,
    "fourth-missing": without_every_fourth,
    "last-turn-missing": lambda traces: {name: trace[:-1] for name, trace in traces.items()},
    "blank-answers": lambda traces: answers(traces, lambda text: " "),
    "crash-answers": lambda traces: changed(traces, _crash),
    "thought-answers": lambda traces: changed(traces, _unspoken),
    "half-more": lambda traces: answers(traces, _half_more),
    "negated": lambda traces: answers(traces, _negated),
    "written-out": lambda traces: answers(traces, _written_out),
    "typeset": lambda traces: answers(traces, _typeset),
    "counted-up": lambda traces: answers(traces, lambda text: " ".join(map(str, range(2000)))),
    "number-for-truth": lambda traces: arguments(traces, _number_for_truth),
    "dotted-paths": lambda traces: arguments(traces, _dotted),
    "own-files": lambda traces: arguments(traces, _own_file),
    "no-add-text": _without_add_text,
}
STEP_COLUMNS = ("inst_acc", "tool_acc", "arg_acc", "arg_typed", "summ_acc")


def measured(tasks: Tasks, name: str, column: str) -> tuple[float, float]:
    """A column by upstream's rule and by ours; `arg_typed` stands beside upstream's `arg_acc`."""
    if column in STEP_COLUMNS:
        steps = SETS[name](steps_of(tasks))
        old: object = score_steps_compat(tasks, steps)
        new: object = score_steps_strict(tasks, steps)
    else:
        traces = once(tasks) if name == "once" else SETS[name](traces_of(tasks))
        old = score_end_to_end_compat(tasks, traces)
        new = score_end_to_end_strict(tasks, traces)
    before = getattr(old, "arg_acc" if column == "arg_typed" else column)
    return before, getattr(new, column)


def figures() -> list[tuple[str, str, str, str]]:
    return FIGURE.findall(DOCUMENT.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "column", "before", "after"), figures())
def test_a_documented_effect_is_what_the_scores_give(
    atomic_tasks: Tasks, name: str, column: str, before: str, after: str
) -> None:
    old, new = measured(atomic_tasks, name, column)
    assert (f"{old:.2f}", f"{new:.2f}") == (before, after)


def test_every_prediction_set_is_explained_and_used() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    used = {name for name, *_ in figures()}
    assert used == {*SETS, "once"}
    for name in used:
        assert f"| `{name}` |" in text


def test_every_deviation_has_five_filled_cells() -> None:
    rows = re.findall(r"^\| D[0-9]+ \|.*$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    numbers = sorted(int(row.split("|")[1].strip()[1:]) for row in rows)
    assert numbers == list(range(1, len(rows) + 1))
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 5
        assert all(cells)


def test_the_two_effects_within_every_answer_score_are_6_40_and_0_56_points(
    atomic_tasks: Tasks,
) -> None:
    old, new = measured(atomic_tasks, "reference", "ans_acc")
    assert f"{new - old:.2f}" == "6.40"
    _, among_turns = measured(atomic_tasks, "reference", "summ_acc")
    assert f"{among_turns - new:.2f}" == "0.56"


def test_the_data_has_none_of_the_cases_whose_effect_is_0(atomic_tasks: Tasks) -> None:
    for task in atomic_tasks.values():
        if isinstance(task.answer, WhitelistAnswer):
            assert task.answer.whitelist
            assert all(alias for group in task.answer.whitelist for alias in group)
        assert task.answer is not None or any(turn.call.name in IMAGE_TOOLS for turn in task.calls)
        assert all(turn.call.name in TOOL_CATEGORY for turn in task.calls)
