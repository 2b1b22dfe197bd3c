"""Build an entry from scored runs; the check of a bundle builds it again and compares."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, get_args

from gta_bench.errors import UsageError, format_count
from gta_bench.leaderboard.checks import JudgeRecord
from gta_bench.leaderboard.tables import BOARD_METRICS, BOARDS
from gta_bench.metrics.counts import add_counts, total
from gta_bench.metrics.strict.workflow import count_judged
from gta_bench.metrics.table import (
    JUDGED,
    STRICT_END_TO_END,
    STRICT_STEP,
    TOOL_SR,
    Metric,
    primary,
)
from gta_bench.metrics.table import label as label_of
from gta_bench.records.cost import make_cost, sum_costs
from gta_bench.records.judges import Floors
from gta_bench.records.leaderboard import Board, Costs, Entry, Mark, MetricName, Score
from gta_bench.records.run import OWN_TOOLS, RunManifest
from gta_bench.records.scores import RunScores, StrictEndToEndCounts, StrictStepCounts
from gta_bench.records.visible import require_one_script, require_visible, show_hidden
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.reports.summary import (
    NAMELESS,
    RELEASED_TASKS,
    SCRIPTED_AGENTS,
    RunSummary,
    is_scripted,
    remarks,
    system_name,
)
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.reports.workflow_summary import remarks as workflow_remarks

SIZES: Final[Mapping[Board, int]] = {
    "atomic": RELEASED_TASKS["atomic"],
    "workflow": RELEASED_TASKS["workflow"],
}
# The model of systems that use none, such as those of `gta judge floor`.
NO_MODEL: Final = "none/none"
SOURCE: Final = "submitted bundle"
_Counts = TypeVar("_Counts")


class ScoredRun(NamedTuple):
    """A run with its scores, and the records of its judges."""

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores
    judged: Mapping[str, JudgeRecord] = {}


class EntryLabel(NamedTuple):
    """The parts of an entry that the submitter chooses."""

    system: str | None = None
    group: str = ""


def build_entry(
    runs: Sequence[ScoredRun],
    *,
    judge: str | None,
    label: EntryLabel,
    run_digest: str | None = None,
) -> Entry:
    """Build the entry of one system; for GTA-Atomic, a step and an end-to-end run share one."""
    manifest = runs[0].manifest
    board: Board = "atomic" if manifest.spec.dataset == "atomic" else "workflow"
    for problem in _problems(runs, board):
        raise UsageError(problem)
    scores, by_task, chosen = _collect_scores(runs, judge)
    headline = BOARDS[board].headline
    if headline not in scores:
        raise UsageError(
            f"The board is sorted by {label_of(headline)}, which needs an end-to-end run. Name "
            "that run of the same system as well."
        )
    asked = None if chosen is None else chosen.judge
    attempts = [run.scores.attempts for run in runs if run.scores.attempts is not None]
    system = label.system or system_name(manifest)
    _check_names(system, label.group, manifest.spec.system.model, asked or "")
    release = f"{manifest.created:%Y-%m}"
    slug = re.sub(r"[^a-z0-9.]+", "-", system.lower()).strip("-.")[:120] or "system"
    return Entry(
        id=f"{release}/{board}/{slug}",
        board=board,
        release=release,
        group=label.group,
        system=system,
        model=manifest.spec.system.model,
        harness=manifest.spec.system.harness or manifest.spec.system.agent,
        dataset_digest=manifest.dataset_digest,
        scoring="strict",
        scoring_version=runs[0].scores.scoring_version,
        judge=asked,
        costs=_costs(runs),
        attempts=sum(attempts) if len(attempts) == len(runs) else None,
        marks=_marks(runs, asked),
        run_digest=run_digest,
        status="self-reported",
        source=SOURCE,
        notes=tuple(dict.fromkeys(note for run in runs for note in _notes(run, asked))),
        scores=scores,
        by_task=by_task,
    )


def _collect_scores(
    runs: Sequence[ScoredRun], judge: str | None
) -> tuple[dict[MetricName, Score], dict[str, float], JudgeScores | None]:
    """Return the scores of the board, the primary metric by task, and those of the judge."""
    chosen: JudgeScores | None = None
    scores: dict[MetricName, Score] = {}
    by_task: dict[str, float] = {}
    for run in runs:
        if isinstance(run.scores, WorkflowScores):
            chosen = _judge(run, run.scores, judge)
            thresholds = run.scores.leaf_threshold, run.scores.root_threshold
            counts = count_judged(
                chosen.tasks, leaf_threshold=thresholds[0], root_threshold=thresholds[1]
            )
            scores |= _board_scores(JUDGED, counts)
            scores |= _board_scores({TOOL_SR.name: TOOL_SR}, run.scores.tools)
            by_task = _judged_tasks(chosen, run.scores)
        else:
            scores |= _atomic_scores(run.scores)
            by_task |= _answered_tasks(run.scores)
    return scores, by_task, chosen


def _check_names(*names: str) -> None:
    for name in names:
        try:
            require_one_script(require_visible(name))
        except ValueError as exc:
            raise UsageError(
                f"{show_hidden(name)!r} cannot be on a board: {exc}. Choose another name."
            ) from exc


def _problems(runs: Sequence[ScoredRun], board: Board) -> Iterator[str]:
    """Yield why the runs are not one entry: one system on the full dataset, one run per mode."""
    first = runs[0].manifest
    for run in runs[1:]:
        if run.manifest.spec.system != first.spec.system:
            yield f"{run.name} and {runs[0].name} are runs of different systems."
        if run.manifest.dataset_digest != first.dataset_digest:
            yield f"{run.name} and {runs[0].name} are runs on different datasets."
    if len({run.manifest.spec.mode for run in runs}) < len(runs):
        yield "Two runs of the same mode are two entries. Submit them separately."
    for run in runs:
        yield from _run_problems(run, SIZES[board])


def _run_problems(run: ScoredRun, size: int) -> Iterator[str]:
    spec, scores = run.manifest.spec, run.scores
    if len(spec.tasks) != size:
        tasks = format_count(len(spec.tasks), "task")
        yield f"{run.name} has {tasks}; the board has {size}. Run all of them."
    if spec.epochs != 1:
        yield f"{run.name} has {spec.epochs} epochs; an entry has one."
    agent, no_model = spec.system.agent, spec.system.model == NO_MODEL
    if agent in SCRIPTED_AGENTS or (no_model and spec.system.harness is None):
        yield f"{run.name} is a run of {agent!r}, which tests an installation and is no system."
    if spec.feedback is not None:
        yield (
            f"{run.name} is round {spec.feedback.round} of feedback, in which the system knows "
            "what to fix. Submit the first round."
        )
    if run.manifest.edited_from is not None:
        yield f"{run.name} was judged with edited requirements instead of the dataset's own."
    if spec.controls:
        yield f"{run.name} ran under controls ({', '.join(spec.controls)})."
    if scores.n != scores.n_units:
        units = format_count(scores.n_units, "unit")
        yield (
            f"{run.name} has a score for {scores.n} of {units}. Complete it with the same "
            "`gta run` command."
        )


def _judge(run: ScoredRun, scores: WorkflowScores, name: str | None) -> JudgeScores:
    names = [judge.judge for judge in scores.judges]
    if name is None and len(names) != 1:
        state = f"judged by {', '.join(names)}; choose with --judge" if names else "not judged yet"
        raise UsageError(f"{run.name} is {state}.")
    chosen = scores.table(name or names[0])
    if chosen is None:
        raise UsageError(f"{run.name} has no judge {name!r}; it has {', '.join(names) or 'none'}.")
    if chosen.strict.n != chosen.strict.n_units:
        raise UsageError(
            f"{run.name}: {chosen.judge} scored {chosen.strict.n} of "
            f"{format_count(chosen.strict.n_units, 'task')}. "
            f"Run `gta score {run.name} --judge MODEL` for the others."
        )
    return chosen


def _atomic_scores(scores: RunScores) -> dict[MetricName, Score]:
    counts = [unit.strict for unit in scores.units]
    if scores.mode == "step":
        steps = [one for one in counts if isinstance(one, StrictStepCounts)]
        return _board_scores(STRICT_STEP, add_counts(StrictStepCounts, steps))
    ends = [one for one in counts if isinstance(one, StrictEndToEndCounts)]
    return _board_scores(STRICT_END_TO_END, add_counts(StrictEndToEndCounts, ends))


def _answered_tasks(scores: RunScores) -> dict[str, float]:
    """Return the primary metric of each task; tasks without a reference answer have none."""
    row = primary(scores.mode)
    parts = {
        unit.task: row.part(unit.strict)
        for unit in scores.units
        if isinstance(unit.strict, StrictEndToEndCounts)
    }
    return {task: round(part / whole, 4) for task, (part, whole) in parts.items() if whole}


def _judged_tasks(judge: JudgeScores, scores: WorkflowScores) -> dict[str, float]:
    """Return 1 for each task that passes, else 0."""
    leaf, root = scores.leaf_threshold, scores.root_threshold
    counts = {
        task.task: count_judged([task], leaf_threshold=leaf, root_threshold=root)
        for task in judge.tasks
    }
    return {task: float(one.roots_passed) for task, one in counts.items()}


def _board_scores(
    metrics: Mapping[str, Metric[_Counts]], counts: _Counts
) -> dict[MetricName, Score]:
    """Return the rounded metrics of a board, with k and n if a metric is a proportion."""
    found: dict[MetricName, Score] = {}
    for name, row in metrics.items():
        value = row.value(counts)
        if name not in BOARD_METRICS or value is None:
            continue
        score = Score(value=round(value, 2))
        if row.is_count:
            k, n = map(int, row.part(counts))
            score = Score(value=round(100 * k / n, 2), k=k, n=n)
        found[name] = score
    return found


def _costs(runs: Sequence[ScoredRun]) -> Costs:
    """Return the cost and time of all runs; None if a part is unknown."""
    used = [run.scores.usage for run in runs]
    cost = sum_costs(make_cost(one.cost_usd) for one in used).total
    seconds = total(one.seconds for one in used)
    return Costs(
        usd=None if cost is None else round(cost, 4),
        minutes=round(seconds / 60, 2) if seconds else None,
    )


def _marks(runs: Sequence[ScoredRun], judge: str | None) -> tuple[Mark, ...]:
    """Return the marks of all runs and of their judge, in the order of their list."""
    found = {mark for run in runs for mark, applies in _run_marks(run).items() if applies}
    if judge is not None and is_scripted(judge):
        found.add("scripted judge")
    if any(_other_names(run, judge) for run in runs):
        found.add("name differs")
    return tuple(mark for mark in get_args(Mark) if mark in found)


def _run_marks(run: ScoredRun) -> dict[Mark, bool]:
    spec, imported = run.manifest.spec, run.manifest.imported_from is not None
    system, limits = spec.system, spec.limits
    in_process = system.has_own_agent or (
        system.agent == "harness" and limits is not None and limits.memory_bytes is None
    )
    return {
        "imported": imported,
        "open network": spec.network == "open",
        "unconfined": in_process and not imported,
        "own agent": system.has_own_agent,
        "own tools": spec.tools == OWN_TOOLS,
        "taped": spec.tape is not None,
        "scripted model": is_scripted(system.model),
        "other similarity": isinstance(run.scores, RunScores) and not run.scores.comparable,
        "attempts unknown": run.scores.attempts is None and not imported,
        "retried": run.scores.retried > 0,
    }


def _other_names(run: ScoredRun, judge: str | None) -> list[str]:
    """Return remarks on model names in replies that differ from the requested model.

    A self-hosted server may give its model any name, so this is not necessarily a problem.
    """
    found = []
    model, judged = run.manifest.spec.system.model, run.judged.get(judge or "")
    if model not in NAMELESS and run.manifest.imported_from is None:
        found = [f"its model answered as {name!r}" for name in _others(run.scores.models, [model])]
    if judged is not None:
        others = _others(judged.answered, judged.models)
        found += [f"its judge's model answered as {name!r}" for name in others]
    return found


def _others(answered: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return the names of other models; `gpt-5-2025-08-07` is openai/gpt-5, `gpt-5-mini` is not."""
    known = [re.escape(_bare(model)) for model in asked]
    same = re.compile(rf"({'|'.join(known)})[0-9]*")
    return [name for name in answered if not same.fullmatch(_bare(name))]


def _bare(model: str) -> str:
    name = model.rpartition("/")[2].lower().removesuffix("-latest")
    return re.sub(r"[^a-z0-9]", "", name)


def _notes(run: ScoredRun, judge: str | None) -> list[str]:
    """Return computed notes on the run; notes in the manifest are not trusted.

    The first remark is left out because the entry already has its content.
    """
    bare = run.manifest.model_copy(update={"notes": ()})
    if isinstance(run.scores, WorkflowScores):
        notes = workflow_remarks(WorkflowSummary("run", bare, run.scores, Floors()))
    else:
        notes = remarks(RunSummary("run", bare, run.scores))
    limits = run.manifest.spec.limits
    if limits is not None:
        notes.append(f"The system had {limits.seconds:g} s for each task.")
    judged = run.judged.get(judge or "")
    if judged is not None:
        notes += [f"The judge's prompts have the digest {one[:16]}." for one in judged.prompts]
    notes += _other_names(run, judge)
    return [" ".join(show_hidden(one).split()).rstrip(".") for one in notes[1:]]
