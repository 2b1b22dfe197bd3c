"""Counts of the first causes of failures, the most frequent first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gta_bench.errors import counted
from gta_bench.metrics.failures import count_failures
from gta_bench.records.failures import Failure
from gta_bench.records.scores import RunScores
from gta_bench.records.units import StopKind, Usage
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.tables import Table

# From this share on, it is not the model that refuses.
FILTERED: Final = 0.9
# With fewer requests, a share means nothing.
ENOUGH_CALLS: Final = 5
HELP: Final[Mapping[StopKind, str]] = {
    "cut off": "cut off: the reply reached its token limit; raise --max-tokens.",
    "context": (
        "context: the dialogue no longer fit into the model's context window, and the work ended "
        "there; serve the model with a longer one."
    ),
    "call as text": (
        "call as text: the model wrote tool calls that its server did not read as calls. That "
        "measures the server's setup, not the model's choice of tools: use --agent react, or start "
        "the server with its tool-call parser (vLLM: --enable-auto-tool-choice --tool-call-parser "
        "NAME; llama.cpp: --jinja)."
    ),
}


def stop_counts(stops: Mapping[StopKind, int]) -> str:
    """Format counts as `cut off 3, refused 1`."""
    return ", ".join(f"{kind} {count}" for kind, count in stops.items())


def attempt_remarks(scores: RunScores | WorkflowScores) -> Iterator[str]:
    """Yield a line if units were tried more than once."""
    if scores.retried and scores.attempts is not None:
        units = counted(scores.retried, "unit")
        yield (
            f"attempts: {scores.attempts} for {counted(scores.n_units, 'unit')}; {units} had more "
            "than one, and usage includes all of them."
        )


def stop_remarks(stops: Mapping[StopKind, int], usage: Usage) -> Iterator[str]:
    """Yield a line with all counts, and one for each kind that can be fixed."""
    if not stops:
        return
    asked = usage.model_calls
    calls = counted(asked, "model call")
    yield f"replies that did not end normally: {stop_counts(stops)} (of {calls})."
    yield from (HELP[kind] for kind in stops if kind in HELP)
    if asked >= ENOUGH_CALLS and stops.get("refused", 0) >= FILTERED * asked:
        yield (
            "refused: almost every request was refused or filtered. That is a filter in front of "
            "the model or a blocked account, not a measurement of the model."
        )


COLUMNS = ("run", "first cause", "failures", "share", "tasks", "for example")
LONGEST = 80


def failure_table(runs: Sequence[tuple[str, Sequence[Failure]]]) -> Table:
    """Return a row for each cause of each run, the most frequent first."""
    rows = [
        (
            name,
            count.cause,
            str(count.failures),
            f"{100 * count.failures / len(failed):.1f} %",
            str(count.tasks),
            example(next(one for one in failed if one.cause == count.cause)),
        )
        for name, failed in runs
        for count in count_failures(failed)
    ]
    return Table(COLUMNS, tuple(rows))


def example(failure: Failure) -> str:
    """Describe one failure in a line: where it happened, and what was seen."""
    where = f"task {failure.task}"
    if failure.place != "task":
        where += f", {failure.place}"
    text = f"{where}: {failure.detail}" if failure.detail else where
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
