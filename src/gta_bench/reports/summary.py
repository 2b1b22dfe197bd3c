"""Summaries of Atomic runs, with badges, remarks and counts of failures for all runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from gta_bench.errors import format_count, is_stop_note
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.run_scores import NOT_RUN
from gta_bench.metrics.table import score_metrics
from gta_bench.records.failures import Failure, FailureCause, GroupedFailures
from gta_bench.records.judges import OWN_JUDGE
from gta_bench.records.run import DatasetName, Mode, RunManifest, System
from gta_bench.records.scores import EndToEndScores, Measured, RunScores, StepScores, ToolUse
from gta_bench.records.units import StopKind, Usage
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.tables import Table, dollars, format_number

Scoring = Literal["strict", "compat"]
SCORINGS: tuple[Scoring, ...] = ("strict", "compat")
# The model in the manifest of a system that used none of ours, or does not state its own.
NAMELESS = ("none/none", "unknown")
# The agent in the manifest of a system that did not run here.
FOREIGN = ("imported", "product")


class RunSummary(NamedTuple):
    """What a report shows of one run."""

    name: str
    manifest: RunManifest
    scores: RunScores

    @property
    def badges(self) -> tuple[str, ...]:
        """The notes next to its score."""
        return (*run_badges(self.manifest), *score_badges(self.scores))


def score_table(runs: Sequence[RunSummary], mode: Mode) -> Table:
    """Return both scorings of every run of that mode, with badges in the last column."""
    columns = score_metrics(mode)
    return Table(
        ("run", "n/N", "scoring", *(column.heading for column in columns), "note"),
        tuple(
            (
                run.name,
                f"{select_scores(run.scores, scoring).n}/{run.scores.n_units}",
                scoring,
                *(
                    format_number(metrics(run.scores, scoring).get(column.name))
                    for column in columns
                ),
                "; ".join(run.badges) if scoring == "strict" else "",
            )
            for run in runs
            if run.scores.mode == mode
            for scoring in SCORINGS
        ),
    )


def tool_table(tools: Sequence[ToolUse]) -> Table:
    """Return the outcomes of a run's tool calls; imported ones have neither time nor backend."""
    recorded = any(use.seconds or use.backends for use in tools)
    return Table(
        ("tool", "done", "error", "unavailable", *(("s in all", "backend") if recorded else ())),
        tuple(
            (
                use.tool,
                str(use.done),
                str(use.error),
                str(use.unavailable),
                *((f"{use.seconds:.1f}", _backends(use.backends)) if recorded else ()),
            )
            for use in tools
        ),
    )


def custom_metric_table(found: Sequence[Measured]) -> Table:
    """Return the values of custom metrics."""
    return Table(
        ("metric", "n/N", "mean"),
        tuple((one.name, f"{one.n}/{one.n_units}", format_number(one.value)) for one in found),
    )


def _backends(names: Sequence[str]) -> str:
    more = f", and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}" if names else "-"


def metrics(scores: RunScores, scoring: Scoring) -> dict[str, float | int | None]:
    """Return the unrounded values of one scoring by name."""
    return select_scores(scores, scoring).model_dump(exclude={"n", "n_tasks"})


def select_scores(scores: RunScores, scoring: Scoring) -> StepScores | EndToEndScores:
    """Return one of the two scorings; its `n` is how many units had a prediction."""
    return scores.strict if scoring == "strict" else scores.compat


def missing_remark(scores: RunScores) -> str:
    """Describe units without a prediction."""
    return (
        f"a prediction for {scores.n - scores.missing} of {format_count(scores.n, 'task')}: "
        "`strict` counts the others as failed, `compat` leaves them out, as published."
    )


def system_name(manifest: RunManifest) -> str:
    """Return a short name of the system."""
    system = manifest.spec.system
    seen = " (images attached)" if system.images == "attached" else ""
    if system.harness is not None:
        name = " ".join(filter(None, (system.harness, system.harness_version)))
        name += " (imported)" if manifest.imported_from is not None else ""
        return name if system.model in NAMELESS else f"{name} · {system.model}"
    if system.model == "none/none":
        return system.agent
    return f"{system.model} · {system.agent}{seen}"


def completion_hint(cause: str) -> str:
    """Say how to complete units without a result."""
    if cause == NOT_RUN or is_stop_note(cause):
        return "complete it with `gta run` for all its tasks and epochs, within its limits"
    return "complete it with the same `gta run` command"


def remarks(run: RunSummary) -> list[str]:
    """Return the system, what it took, and what to know before comparing its scores."""
    scores = run.scores
    lines = [f"{system_name(run.manifest)}; {usage_text(scores.usage, run.manifest)}"]
    if scores.n < scores.n_units:
        missing = scores.n_units - scores.n
        cause = scores.unscored[0].cause
        lines.append(
            f"unscored: {missing} of {format_count(scores.n_units, 'unit')}, so the run is not "
            f"rankable ({cause}); {completion_hint(cause)}."
        )
    lines += attempt_remarks(scores)
    lines += stop_remarks(scores.stops, scores.usage)
    if scores.missing:
        lines.append(missing_remark(scores))
    if scores.comparable:
        lines.append(f"free-text similarity by {scores.similarity}, as published.")
    else:
        lines.append(
            f"free-text similarity by {scores.similarity}: SummAcc, AnsAcc, AnsAcc+I and "
            "typed args are not comparable with published ones (all-mpnet-base-v2)."
        )
    lines += _tape_remarks(run)
    if run.manifest.spec.controls:
        lines.append(
            f"under controls ({', '.join(run.manifest.spec.controls)}; seed "
            f"{run.manifest.spec.control_seed}): not a measurement of the unmodified system."
        )
    lines += imported_remarks(run.manifest)
    lines += run.manifest.notes
    if run.manifest.spec.system.images == "attached":
        lines.append("the model saw the images; published runs show paths only: not comparable.")
    return lines


def imported_remarks(manifest: RunManifest) -> list[str]:
    """Warn about tool calls that a system only states; in step mode none are made."""
    if manifest.imported_from is None or manifest.spec.mode == "step":
        return []
    counted_in = "Tool SR, P/O/L/C-SR" if manifest.spec.mode == "workflow" else "P/O/L/C-F1"
    return [f"imported: its tool calls are as stated, not observed ({counted_in})."]


def _tape_remarks(run: RunSummary) -> list[str]:
    tape = run.manifest.spec.tape
    if tape is None:
        return []
    digest = "" if tape.digest is None else f" {tape.digest[:16]}"
    lines = [f"tape{digest}, {tape.mode}."]
    if tape.origin == "reference":
        lines = [
            f"tool replies come from the reference dialogues (tape{digest}, {tape.mode}); "
            "not comparable with runs on real tools."
        ]
    if missing := run.scores.not_on_tape:
        lines.append(
            f"{format_count(len(missing), 'call')} had no recorded reply and failed. "
            f"The first: {missing[0]}"
        )
    return lines


def is_foreign(system: System) -> bool:
    """Whether a system made its own model calls, so that usage is only what it states."""
    return system.agent in FOREIGN or (system.agent == "harness" and system.model in NAMELESS)


def usage_text(usage: Usage, manifest: RunManifest) -> str:
    """Describe what a run took; usage that a harness did not state is unknown."""
    foreign = is_foreign(manifest.spec.system)
    tokens = usage.input_tokens + usage.output_tokens
    lines = [
        f"{format_count(usage.model_calls, 'model call')} "
        f"({format_count(usage.retries, 'retry', 'retries')})"
        if usage.model_calls or not foreign
        else "model calls unknown",
        f"{usage.input_tokens:,} input and {usage.output_tokens:,} output tokens"
        if tokens or not foreign
        else "tokens unknown",
        "cost unknown" if usage.cost_usd is None else dollars(usage.cost_usd),
        f"{usage.seconds:.1f} s of tasks" if usage.seconds or not foreign else "time unknown",
    ]
    return f"{', '.join(lines)}."


# Tasks of the datasets as released.
RELEASED_TASKS: Final[Mapping[DatasetName, int]] = {"atomic": 229, "workflow": 132}
# Providers that answer from a script, as in the demo and in tests.
SCRIPTED: Final = ("mockllm", "scripted")
# Our agents that ask no model.
SCRIPTED_AGENTS: Final = ("gold", "silent")
# The agent with the published protocol.
UPSTREAM_AGENT: Final = "react-upstream"


def run_badges(manifest: RunManifest) -> tuple[str, ...]:
    """Return why a run's score is not one of the whole dataset, of a real model, or like others."""
    spec = manifest.spec
    chosen, released = len(spec.tasks), RELEASED_TASKS[spec.dataset]
    every = released if manifest.dataset_tasks is None else manifest.dataset_tasks
    badges = []
    if chosen < every:
        badges.append(f"subset: {chosen:,} of {format_count(every, 'task')}")
    if every != released:
        badges.append(f"dataset of {format_count(every, 'task')}, not the released {released}")
    if manifest.edited_from is not None:
        badges.append("edited requirements")
    if spec.system.has_own_agent:
        badges.append(f"own agent ({spec.system.agent})")
    if spec.system.agent in SCRIPTED_AGENTS:
        badges.append(f"scripted agent ({spec.system.agent})")
    elif is_scripted(spec.system.model):
        badges.append("scripted model")
    if spec.system.agent == UPSTREAM_AGENT:
        # The first manifests do not say whose prompts were used: they were ours.
        own = "published prompts" if spec.wording == "published" else "prompts in our own words"
        badges.append(own)
    return (*badges, *_condition_badges(manifest))


def _condition_badges(manifest: RunManifest) -> Iterator[str]:
    """Yield the conditions under which a run is not like others of the same system."""
    spec = manifest.spec
    if manifest.imported_from is not None:
        yield "imported"
    if spec.network == "open":
        yield "open network"
    if spec.controls:
        yield f"under controls ({', '.join(spec.controls)})"
    if spec.tape is not None and spec.tape.origin == "reference":
        yield "tool replies from the reference"
    if spec.system.images == "attached":
        yield "images attached"


def score_badges(scores: RunScores) -> tuple[str, ...]:
    """Return how many tasks have a prediction, if not all, and which model compared free text."""
    found = f"predictions for {scores.n - scores.missing} of {format_count(scores.n, 'task')}"
    return (*((found,) if scores.missing else ()), f"similarity {scores.similarity}")


def judge_badges(judge: str) -> tuple[str, ...]:
    """Return whether a judge is not a real model."""
    if is_own_judge(judge):
        return ("own judge",)
    return ("scripted judge",) if is_scripted(judge) else ()


def is_own_judge(judge: str) -> bool:
    """Whether a judge is a user's function."""
    return judge.startswith(f"{OWN_JUDGE}/")


def is_scripted(model: str) -> bool:
    """Whether a model's answers come from a script."""
    return model.partition("/")[0] in SCRIPTED


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
        units = format_count(scores.retried, "unit")
        yield (
            f"attempts: {scores.attempts} for {format_count(scores.n_units, 'unit')}; {units} had "
            "more than one, and usage includes all of them."
        )


def stop_remarks(stops: Mapping[StopKind, int], usage: Usage) -> Iterator[str]:
    """Yield a line with all counts, and one for each kind that can be fixed."""
    if not stops:
        return
    asked = usage.model_calls
    calls = format_count(asked, "model call")
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
    rows = []
    for name, failed in runs:
        counts = count_failures(failed)
        examples = first_examples(failed)
        whole = sum(count.failures for count in counts)
        rows += [
            (
                name,
                count.cause,
                str(count.failures),
                f"{100 * count.failures / whole:.1f} %",
                str(count.tasks),
                example(examples[count.cause]),
            )
            for count in counts
        ]
    return Table(COLUMNS, tuple(rows))


def first_examples(failures: Iterable[Failure]) -> dict[FailureCause, Failure]:
    """Return the first failure of each cause."""
    if isinstance(failures, GroupedFailures):
        return {cause: group.first for cause, group in failures.group_causes().items()}
    found: dict[FailureCause, Failure] = {}
    for one in failures:
        found.setdefault(one.cause, one)
    return found


def example(failure: Failure) -> str:
    """Describe one failure in a line: where it happened, and what was seen."""
    where = f"task {failure.task}"
    if failure.place != "task":
        where += f", {failure.place}"
    text = f"{where}: {failure.detail}" if failure.detail else where
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
