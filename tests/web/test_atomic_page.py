"""Atomic runs on the page: scores, groups, failures, steps, and what is left out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from html import unescape
from typing import Any

import pytest

from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import CallRecord
from gta_bench.records.run import Mode, System
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    ReplyPart,
    ReplyStep,
    StepError,
    ThoughtStep,
)
from gta_bench.records.units import AtomicUnit, Usage
from gta_bench.reports.certainty import (
    REPEATS,
    collect_metrics,
    collect_repeats,
    describe_broken,
    repeat_remarks,
)
from gta_bench.reports.gains import Loss, unit_losses
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.tables import short
from gta_bench.runs.logs import pick_units
from gta_bench.similarity.catalog import load_similarity, score_units
from gta_bench.web.material import AtomicRun, anchor, error_kinds
from gta_bench.web.page import render_report
from gta_bench.web.sections import STEPS_SHOWN, pair_steps, reference_text
from tests.builders import manifest as build_manifest

Tasks = Mapping[str, AtomicTask]


def material(units: Sequence[AtomicUnit], mode: Mode, name: str = "runs/a") -> AtomicRun:
    manifest = build_manifest(
        dataset="atomic",
        dataset_digest="0",
        mode=mode,
        system=System(model="m", agent="gold"),
        tasks=tuple(unit.task.id for unit in units),
    )
    scores = score_units(units, mode, load_similarity("exact-or-half"))
    return AtomicRun(RunSummary(name, manifest, scores), units)


def losses(run: AtomicRun) -> Sequence[Loss]:
    found = unit_losses(
        run.summary.scores, partial(pick_units, run.units), most=len(list(run.units))
    )
    assert found.number == len(found.worst)
    return found.worst


def gold(tasks: Tasks, mode: Mode = "end-to-end", **changes: Any) -> list[AtomicUnit]:
    traced = reference_steps if mode == "step" else reference_trace
    return [AtomicUnit(task=task, trace=traced(task), **changes) for task in tasks.values()]


def silent(tasks: Tasks) -> list[AtomicUnit]:
    reply = MalformedStep(content="", reason="empty reply")
    return [AtomicUnit(task=task, trace=(reply,)) for task in tasks.values()]


@pytest.mark.parametrize("mode", ["step", "end-to-end"])
def test_gold_has_everything_and_silent_nothing(atomic_tasks: Tasks, mode: Mode) -> None:
    text = render_report(
        [material(gold(atomic_tasks, mode), mode), material(silent(atomic_tasks), mode, "runs/b")]
    )
    assert "<h1>2 runs</h1>" in text
    cell = "100.00</strong> <small>9" if mode == "step" else "<strong>9"
    assert cell in text
    assert "<strong>0.00</strong> <small>0.00 to" in text
    assert "empty reply" in text
    assert text.count("75 tasks of 229 can be opened here, the worst first") == 2
    assert len(re.findall('<details class="task"', text)) == 150
    assert len(re.findall('<div class="task-bare"', text)) == 2 * (229 - 75)
    assert len(text) < 1_500_000


def test_badges_stand_beside_the_headline(atomic_tasks: Tasks) -> None:
    """Notes on subset, script and similarity were gray bullets further down."""
    text = render_report([material(gold(atomic_tasks)[:4], "end-to-end")])
    (shown,) = re.findall(r'<ul class="badges">(.*?)</ul>', text)
    assert re.findall(r"<span class=\"badge warn\">(.*?)</span>", shown) == [
        "subset: 4 of 229 tasks",
        "scripted agent (gold)",
        "similarity exact-or-half",
    ]
    assert text.index(shown) < text.index('<div class="big"')


def test_repeats_and_broken_work_are_on_the_page_in_the_words_of_the_terminal(
    atomic_tasks: Tasks,
) -> None:
    tasks = dict(list(atomic_tasks.items())[:4])
    crash = AnswerStep(content="[LagentAgentError] no connection")
    again = [one.model_copy(update={"epoch": 2}) for one in gold(tasks, "step")]
    again[0] = again[0].model_copy(update={"trace": (crash,) * len(again[0].trace or ())})
    run = material([*gold(tasks, "step"), *again], "step")
    manifest = run.summary.manifest.with_spec(tasks=tuple(tasks), epochs=2)
    run = AtomicRun(run.summary._replace(manifest=manifest), run.units)
    text = unescape(render_report([run]))
    assert f"<h3>{REPEATS}</h3>" in text
    found = list(collect_metrics([run.summary]))
    said = [*describe_broken(found), *repeat_remarks(collect_repeats(found))]
    assert [one.partition(" (")[0] for one in said] == [
        "runs/a: 1 task failed through no fault of the system",
        f"runs/a: ArgAcc varies from run to run by {said[1].split()[8]} points",
    ]
    for remark in said:
        assert text.count(f"<li>{remark}</li>") == 1
    (table,) = re.findall(f'aria-label="{REPEATS}".*?</table>', text, re.DOTALL)
    cells = re.findall("<td.*?>(.*?)</td>", table)
    assert [tuple(cells[place : place + 4]) for place in (0, 7)] == [
        ("runs/a", "1", "4/4", "87.50"),
        ("runs/a", "2", "4/4", "100.00"),
    ]
    once = unescape(render_report([material(gold(tasks, "step"), "step")]))
    assert REPEATS not in once and "by no fault" not in once


def test_a_wanted_task_is_shown_in_any_case(atomic_tasks: Tasks) -> None:
    runs = [material(silent(atomic_tasks), "end-to-end")]
    assert f'id="{anchor(1, "228", 1)}"' not in render_report(runs, most=2)
    assert f'id="{anchor(1, "228", 1)}"' in render_report(runs, most=2, wanted=["228"])


def test_every_link_of_a_page_leads_somewhere(atomic_tasks: Tasks) -> None:
    text = render_report([material(silent(atomic_tasks), "step")], most=5)
    ids = set(re.findall(r' id="([^"]+)"', text))
    links = set(re.findall(r' href="#([^"]*)"', text))
    assert links <= ids
    assert len([one for one in links if "-task-" in one]) == 5


def test_failures_come_in_the_order_of_what_they_are_worth(atomic_tasks: Tasks) -> None:
    units = gold(atomic_tasks, "step")
    units[0] = units[0].model_copy(update={"trace": None})
    units[7] = units[7].model_copy(update={"trace": units[7].trace[:-1]})  # type: ignore[index]
    run = material(units, "step")
    first, second = losses(run)[:2]
    assert (first.task, first.what) == (units[0].task.id, "no prediction")
    assert second.task == units[7].task.id
    assert first.gain > second.gain > 0
    # If it were fixed, the mean of the metrics would rise by exactly that.
    mended = material(gold(atomic_tasks, "step"), "step").summary.scores.strict
    lost = sum(
        getattr(mended, name) - getattr(run.summary.scores.strict, name)
        for name in ("inst_acc", "tool_acc", "arg_acc", "summ_acc")
    )
    assert first.gain + second.gain == pytest.approx(lost / 4, abs=1e-6)


def test_the_gain_of_a_single_task_that_lacks_everything_is_100_points(
    atomic_tasks: Tasks,
) -> None:
    """The points of four metrics were added up: a page said that one task was worth 105.8."""
    units = silent(atomic_tasks)[:1]
    (loss,) = losses(material(units, "step"))
    assert loss.gain == pytest.approx(100)


def test_steps_stand_beside_the_reference(atomic_tasks: Tasks) -> None:
    task = atomic_tasks["0"]
    gold_steps = reference_steps(task)
    call = next(step for step in gold_steps if isinstance(step, CallStep))
    wrong = (
        call.model_copy(update={"name": "Plot"}),
        call.model_copy(update={"arguments": {"x": 1}}),
        CallStep(name="OCR", arguments="{", error=StepError(type="args", message="no JSON")),
        ThoughtStep(content="hm"),
    )
    notes = [pair.note for pair in pair_steps(AtomicUnit(task=task, trace=(gold_steps[0], *wrong)))]
    assert notes[0] == ""
    assert {"other tool", "failed call", "no turn"} & set(notes)
    assert notes[5:] == ["missing"] * (len(gold_steps) - 5)


def test_long_traces_and_texts_are_cut_with_a_word(atomic_tasks: Tasks) -> None:
    steps = (
        *(ReplyStep(parts=(ReplyPart(type="text", content="x" * 5000),)),) * 60,
        ReplyStep(),
        AnswerStep(content="", error=StepError(type="crash")),
    )
    text = render_report(
        [material([AtomicUnit(task=atomic_tasks["0"], trace=steps)], "end-to-end")]
    )
    assert f"And {62 - STEPS_SHOWN} more steps" in text
    assert "4,400 more characters" in text
    assert short("abc", 2) == "ab… (1 more characters)"


def test_errors_are_counted_by_kind(atomic_tasks: Tasks) -> None:
    bad = CallRecord(tool="OCR", status="error", seconds=1, message="no  such\nfile")
    gone = CallRecord(tool="OCR", status="unavailable", seconds=0)
    crash = AnswerStep(content="", error=StepError(type="crash"))
    called = CallStep(name="Plot", arguments={}, error=StepError(type="timeout"))
    task = atomic_tasks["0"]
    units = [
        AtomicUnit(task=task, trace=(crash, called), calls=(bad, bad, gone)),
        AtomicUnit(task=task, trace=(called,)),
    ]
    assert Counter(kind for unit in units for kind in error_kinds(unit)) == {
        ("OCR", "no such file"): 2,
        ("OCR", "unavailable"): 1,
        ("answer", "crash"): 1,
        ("Plot", "timeout"): 1,
    }


def test_failures_are_counted_by_their_first_cause(atomic_tasks: Tasks) -> None:
    few = {name: atomic_tasks[name] for name in ("0", "1", "2")}
    run = material(silent(few), "end-to-end")
    said = render_report([run])
    assert '<td>format</td><td class="num">3</td><td class="num">100.0 %</td>' in said
    assert '<a href="#run-1-task-0-1">task 0: empty reply</a>' in said
    assert {loss.causes for loss in losses(run)} == {("format",)}
    assert "by first cause" not in render_report([material(gold(few), "end-to-end")])


def test_what_runs_took_is_drawn_and_told(atomic_tasks: Tasks) -> None:
    few = {name: atomic_tasks[name] for name in ("0", "1", "2")}
    cheap = [
        one.model_copy(update={"usage": Usage(cost_usd=0.01, seconds=2, input_tokens=50)})
        for one in gold(few)
    ]
    dear = [one.model_copy(update={"usage": Usage(cost_usd=500, seconds=1)}) for one in silent(few)]
    text = render_report([material(cheap, "end-to-end"), material(dear, "end-to-end", "runs/b")])
    assert text.count('<svg class="chart"') == 2
    assert 'aria-label="AnsAcc, % by US$ a task; on the front: 1."' in text
    assert "<td>cost and time</td>" in text
    assert "$500" in text


def test_a_reference_is_told_in_words(atomic_tasks: Tasks) -> None:
    told = {reference_text(task) for task in atomic_tasks.values()}
    assert "an image" in told
    assert any(" or " in one for one in told)
    assert any("; not " in one for one in told)


def test_units_without_result_say_why(atomic_tasks: Tasks) -> None:
    units = [
        AtomicUnit(task=atomic_tasks["0"], failure="HTTP 500"),
        AtomicUnit(task=atomic_tasks["1"], trace=None, epoch=2),
    ]
    text = render_report([material(units, "end-to-end")])
    assert "No result: HTTP 500" in text
    assert "No prediction." in text
    assert "<b>1, epoch 2</b>" in text
