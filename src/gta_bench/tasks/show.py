"""A task's turns in words: what was expected, what came, and why it counts."""

import json
from collections.abc import Iterator

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.strict.arguments import same_arguments
from gta_bench.metrics.strict.outcome import outcome
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, PredictedStep, Trace

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


def explanation(task: AtomicTask, trace: Trace | None) -> str:
    """All turns of a task as a Markdown table."""
    rows = ["| turn | expected | came | counts (strict) |", "|---|---|---|---|"]
    for number, (expected, came) in enumerate(_paired(task, trace), start=1):
        cells = (str(number), step_text(expected), step_text(came), verdict(came, expected))
        rows.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(rows)


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
