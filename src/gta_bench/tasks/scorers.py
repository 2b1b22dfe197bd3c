"""The scorers of GTA-Atomic: both scorings, counted per task and pooled over all tasks.

Their explanations show what was expected, what the system did, and why it counts.
"""

import json
from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from gta_bench.metrics import table
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.run_scores import SCORING_VERSION, pool_compat, pool_strict, score_unit
from gta_bench.metrics.strict.arguments import same_arguments
from gta_bench.metrics.strict.outcome import classify_step
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.run import Mode
from gta_bench.records.scores import StrictEndToEndCounts, StrictStepCounts, UnitScore
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    Trace,
)
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.samples import read_task, read_unit_data, read_upstream
from gta_bench.similarity.catalog import load_similarity

UNIT = "unit"
LONGEST = 300


@metric
def pooled_steps() -> Metric:
    """Return percentages over all steps of all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        return _pool("step", table.STRICT_STEP, table.STEP, scores)

    return pool


@metric
def pooled_answers() -> Metric:
    """Return percentages over all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        return _pool("end-to-end", table.STRICT_END_TO_END, table.END_TO_END, scores)

    return pool


@scorer(metrics=[pooled_steps()])
def atomic_steps(similarity: str) -> Scorer:
    """Compare every predicted turn with the reference; the value is the share of correct steps."""

    async def score(state: TaskState, target: Target) -> Score:
        unit, counts, metadata = _count(state, "step", similarity)
        assert isinstance(counts, StrictStepCounts)
        hits, turns = table.INST_ACC.part(counts)
        explanation = explain_steps(unit.task, unit.trace, counts.answer_sum)
        return Score(value=round(hits / turns, 4), explanation=explanation, metadata=metadata)

    return score


@scorer(metrics=[pooled_answers()])
def atomic_answers(similarity: str) -> Scorer:
    """Compare the answer, or the calls that make an image, with the reference."""

    async def score(state: TaskState, target: Target) -> Score:
        unit, counts, metadata = _count(state, "end-to-end", similarity)
        assert isinstance(counts, StrictEndToEndCounts)
        value = round(table.ANS_ACC_I.numerator(counts), 4)
        return Score(
            value=value, explanation=compare_trace(unit.task, unit.trace), metadata=metadata
        )

    return score


def _count(
    state: TaskState, mode: Mode, similarity: str
) -> tuple[AtomicUnit, StrictStepCounts | StrictEndToEndCounts, dict[str, Any]]:
    """Return the sample's unit, its strict counts, and the metadata of its score."""
    data, loaded = read_unit_data(state.store.items()), load_similarity(similarity)
    unit = AtomicUnit(
        task=read_task(state.metadata, AtomicTask),
        trace=data.steps,
        upstream=read_upstream(state.metadata),
        calls=data.calls,
    )
    counts = score_unit(unit, mode, similarity=loaded.measure)
    metadata = {
        UNIT: counts.model_dump(mode="json"),
        "similarity": loaded.name,
        "scoring_version": SCORING_VERSION,
    }
    return unit, counts.strict, metadata


def _pool(
    mode: Mode,
    strict: Mapping[str, table.Metric[Any]],
    compat: Mapping[str, table.Metric[Any]],
    scores: list[SampleScore],
) -> Value:
    """Return the percentages of both scorings; the report has the counts of calls and errors."""
    units = [UnitScore.model_validate((one.score.metadata or {})[UNIT]) for one in scores]
    sound = pool_strict(mode, (unit.strict for unit in units))
    upstream = pool_compat(mode, (unit.compat for unit in units if unit.compat is not None))
    # Metrics of Inspect are numbers, so a missing value is NaN.
    return {
        f"{prefix}_{name}": float("nan") if (rate := getattr(pooled, name)) is None else rate
        for prefix, pooled, metrics in (("strict", sound, strict), ("compat", upstream, compat))
        for name, row in metrics.items()
        if row.scale == "percent"
    }


def format_step(step: PredictedStep | None) -> str:
    """Return one step as one line."""
    match step:
        case CallStep():
            failed = "" if step.error is None else f" [{step.error.type}: {step.error.message}]"
            given = step.arguments
            if isinstance(given, dict):
                pairs = given.items()
                given = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in pairs)
            return f"{step.name}({given}){failed}"
        case AnswerStep():
            return f"answer: {step.content}"
        case MalformedStep():
            return f"malformed ({step.reason}): {step.content}"
        case ReplyStep():
            parts = (f"{part.type}: {part.content}" for part in step.parts)
            return f"reply {'; '.join(parts) or 'none'}"
        case None:
            return "nothing"
        case _:
            return step.step


def explain_step(predicted: PredictedStep | None, expected: CallStep | AnswerStep) -> str:
    """Say why a predicted step counts under the strict scoring, or why not."""
    kind = "nothing" if predicted is None else classify_step(predicted)
    if kind != expected.step:
        return f"no hit: {kind.replace('_', ' ')} instead of {expected.step}"
    if isinstance(predicted, CallStep) and isinstance(expected, CallStep):
        if predicted.name != expected.name:
            return "correct type, wrong tool"
        if not same_arguments(predicted.arguments, expected.arguments):
            return "correct type and tool, wrong arguments"
        return "correct type, tool and arguments"
    return "correct type"


def explain_steps(task: AtomicTask, trace: Trace | None, answer_score: float) -> str:
    """Return all turns of a task as a Markdown table, with the score of the last answer."""
    expected_steps, steps = reference_steps(task), trace or ()
    answers = [n for n, expected in enumerate(expected_steps) if expected.step == "answer"]
    rows = ["| # | expected | actual | counts (strict) |", "|---|---|---|---|"]
    for index, expected in enumerate(expected_steps):
        came = steps[index] if index < len(steps) else None
        said = explain_step(came, expected)
        if task.answer is not None and [index] == answers[-1:]:
            said = f"{said}; the answer scores {answer_score:.2f} of 1"
        cells = (str(index + 1), format_step(expected), format_step(came), said)
        rows.append(f"| {' | '.join(_shorten(cell) for cell in cells)} |")
    return "\n".join(rows)


def compare_trace(task: AtomicTask, trace: Trace | None) -> str:
    """Return the steps of a system, then those of the reference, as Markdown."""
    came = [format_step(step) for step in trace or () if step.step != "thought"]
    wanted = [format_step(step) for step in reference_steps(task)]
    lines = ["**Actual**", "", *(f"1. {_shorten(text)}" for text in came), ""]
    lines += ["**Reference**", "", *(f"1. {_shorten(text)}" for text in wanted), ""]
    return "\n".join([*lines, f"**Accepted**: {_shorten(_list_accepted(task))}"])


def _list_accepted(task: AtomicTask) -> str:
    if task.answer is None:
        return "the reference's calls that make an image"
    if isinstance(task.answer, WhitelistAnswer):
        return " and ".join(" or ".join(group) for group in task.answer.whitelist)
    return " / ".join(task.answer.references)


def _shorten(text: str) -> str:
    """Return the text as one short line, with Markdown characters escaped."""
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
