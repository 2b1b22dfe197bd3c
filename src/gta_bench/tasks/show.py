"""A task's turns in words: what was expected, what came, and why it counts."""

import json
from collections.abc import Iterator

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.strict.arguments import same_arguments
from gta_bench.metrics.strict.outcome import outcome
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    Trace,
)

LONGEST = 300


def step_text(step: PredictedStep | None) -> str:
    """One step on one line."""
    match step:
        case CallStep():
            failed = "" if step.error is None else f" [{step.error.type}: {step.error.message}]"
            return f"{step.name}({_arguments(step)}){failed}"
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


def verdict(predicted: PredictedStep | None, expected: CallStep | AnswerStep) -> str:
    """Why a predicted step counts under the strict scoring, or why not."""
    kind = "nothing" if predicted is None else outcome(predicted)
    if kind != expected.step:
        return f"no hit: {kind.replace('_', ' ')} instead of {expected.step}"
    if isinstance(predicted, CallStep) and isinstance(expected, CallStep):
        if predicted.name != expected.name:
            return "type right, other tool"
        if not same_arguments(predicted.arguments, expected.arguments):
            return "type and tool right, other arguments"
        return "type, tool and arguments right"
    return "type right"


def explanation(task: AtomicTask, trace: Trace | None, answer_score: float) -> str:
    """All turns of a task as a Markdown table; the last answer with what it is worth."""
    pairs = list(_paired(task, trace))
    answers = [index for index, (expected, _) in enumerate(pairs) if expected.step == "answer"]
    last = answers[-1] if answers else None
    rows = ["| # | expected | came | counts (strict) |", "|---|---|---|---|"]
    for index, (expected, came) in enumerate(pairs):
        said = verdict(came, expected)
        if task.answer is not None and index == last:
            said = f"{said}; the answer is worth {answer_score:.2f} of 1"
        cells = (str(index + 1), step_text(expected), step_text(came), said)
        rows.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(rows)


def trace_text(task: AtomicTask, trace: Trace | None) -> str:
    """What a system did beside what the reference does, as Markdown."""
    came = [step_text(step) for step in trace or () if step.step != "thought"]
    wanted = [step_text(step) for step in reference_steps(task)]
    lines = ["**Came**", "", *(f"1. {_cell(text)}" for text in came), ""]
    lines += ["**Reference**", "", *(f"1. {_cell(text)}" for text in wanted), ""]
    return "\n".join([*lines, f"**Accepted**: {_cell(_accepted(task))}"])


def _accepted(task: AtomicTask) -> str:
    if task.answer is None:
        return "the reference's calls that make an image"
    if isinstance(task.answer, WhitelistAnswer):
        return " and ".join(" or ".join(group) for group in task.answer.whitelist)
    return " / ".join(task.answer.references)


def _paired(
    task: AtomicTask, trace: Trace | None
) -> Iterator[tuple[CallStep | AnswerStep, PredictedStep | None]]:
    steps = trace or ()
    for index, expected in enumerate(reference_steps(task)):
        yield expected, steps[index] if index < len(steps) else None


def _arguments(step: CallStep) -> str:
    if not isinstance(step.arguments, dict):
        return str(step.arguments)
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in step.arguments.items()
    )


def _cell(text: str) -> str:
    """Short, on one line, and without what Markdown would read as markup."""
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
