"""An entry from scored runs; the check makes it once more from the bundle and compares."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, get_args

from gta_bench.errors import UsageError, counted
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
)
from gta_bench.metrics.table import label as label_of
from gta_bench.records.cost import paid_cost, sum_costs
from gta_bench.records.judges import Floors
from gta_bench.records.leaderboard import Board, Costs, Entry, Mark, MetricName, Score
from gta_bench.records.run import OWN_TOOLS, RunManifest
from gta_bench.records.scores import RunScores, StrictEndToEndCounts, StrictStepCounts
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
# The model of systems that ask none, such as those of `gta judge floor`.
NO_MODEL: Final = "none/none"
SOURCE: Final = "submitted bundle"
_Counts = TypeVar("_Counts")


class ScoredRun(NamedTuple):
    """A run with its scores, and what its verdicts tell of its judges."""

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores
    judged: Mapping[str, JudgeRecord] = {}


class EntryLabel(NamedTuple):
    """What a submitter may say of an entry; nothing of it is measured."""

    system: str | None = None
    group: str = ""


def entry_of(
    runs: Sequence[ScoredRun],
    *,
    judge: str | None,
    label: EntryLabel,
    run_digest: str | None = None,
) -> Entry:
    """The entry of one system; a step and an end-to-end run of GTA-Atomic make one together."""
    _check_together(runs)
    manifest = runs[0].manifest
    board: Board = "atomic" if manifest.spec.dataset == "atomic" else "workflow"
    chosen = None
    scores: dict[MetricName, Score] = {}
    for run in runs:
        _check_run(run, board)
        if isinstance(run.scores, WorkflowScores):
            chosen = _judge(run, run.scores, judge)
            scores |= _workflow_scores(run.scores, chosen)
        else:
            scores |= _atomic_scores(run.scores)
    headline = BOARDS[board].headline
    if headline not in scores:
        raise UsageError(
            f"{label_of(headline)}, by which the board is ordered, comes from an end-to-end run: "
            "name that run of the same system too."
        )
    asked = None if chosen is None else chosen.judge
    system = label.system or system_name(manifest)
    release = f"{manifest.created:%Y-%m}"
    return Entry(
        id=f"{release}/{board}/{_slug(system)}",
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
        attempts=_attempts(runs),
        marks=_marks(runs, asked),
        run_digest=run_digest,
        status="self-reported",
        source=SOURCE,
        notes=tuple(dict.fromkeys(note for run in runs for note in _notes(run, asked))),
        scores=scores,
    )


def _check_together(runs: Sequence[ScoredRun]) -> None:
    """Several runs are one entry only where they are one system on one dataset, a mode each."""
    first = runs[0].manifest
    for run in runs[1:]:
        if run.manifest.spec.system != first.spec.system:
            raise UsageError(f"{run.name} and {runs[0].name} are runs of different systems.")
        if run.manifest.dataset_digest != first.dataset_digest:
            raise UsageError(f"{run.name} and {runs[0].name} are runs on different datasets.")
    if len({run.manifest.spec.mode for run in runs}) < len(runs):
        raise UsageError("Two runs of one mode are two entries: submit them apart.")


def _check_run(run: ScoredRun, board: Board) -> None:
    manifest, scores = run.manifest, run.scores
    size = SIZES[board]
    if len(manifest.spec.tasks) != size:
        raise UsageError(
            f"{run.name} has {counted(len(manifest.spec.tasks), 'task')}; the board has {size}. "
            "Run all of them."
        )
    if manifest.spec.epochs != 1:
        raise UsageError(f"{run.name} has {manifest.spec.epochs} epochs; an entry is one of them.")
    system = manifest.spec.system
    if system.agent in SCRIPTED_AGENTS or (system.model == NO_MODEL and system.harness is None):
        raise UsageError(
            f"{run.name} is a run of {system.agent!r}, which proves an installation "
            "and measures no system."
        )
    if manifest.spec.feedback is not None:
        raise UsageError(
            f"{run.name} is round {manifest.spec.feedback.round} of feedback: its system was told "
            "what to fix. Submit the first round."
        )
    if manifest.edited_from is not None:
        raise UsageError(f"{run.name} was judged by edited requirements, not by the dataset's own.")
    if manifest.spec.controls:
        raise UsageError(f"{run.name} ran under controls ({', '.join(manifest.spec.controls)}).")
    if scores.n != scores.n_units:
        raise UsageError(
            f"{run.name}: a score for {scores.n} of {counted(scores.n_units, 'unit')}; "
            "complete it by the same `gta run` command."
        )


def _judge(run: ScoredRun, scores: WorkflowScores, name: str | None) -> JudgeScores:
    names = [judge.judge for judge in scores.judges]
    if name is None and len(names) != 1:
        said = f"judged by {', '.join(names)}: choose by --judge" if names else "not judged yet"
        raise UsageError(f"{run.name} is {said}.")
    chosen = scores.table(name or names[0])
    if chosen is None:
        raise UsageError(f"{run.name} has no judge {name!r}; it has {', '.join(names) or 'none'}.")
    if chosen.strict.n != chosen.strict.n_units:
        raise UsageError(
            f"{run.name}: {chosen.judge} gave a root to {chosen.strict.n} of "
            f"{counted(chosen.strict.n_units, 'task')}; "
            f"`gta score {run.name} --judge MODEL` asks for what is missing."
        )
    return chosen


def _workflow_scores(scores: WorkflowScores, judge: JudgeScores) -> dict[MetricName, Score]:
    counts = count_judged(
        judge.tasks, leaf_threshold=scores.leaf_threshold, root_threshold=scores.root_threshold
    )
    return _stated(JUDGED, counts) | _stated({TOOL_SR.name: TOOL_SR}, scores.tools)


def _atomic_scores(scores: RunScores) -> dict[MetricName, Score]:
    if scores.mode == "step":
        steps = [unit.strict for unit in scores.units if isinstance(unit.strict, StrictStepCounts)]
        return _stated(STRICT_STEP, add_counts(StrictStepCounts, steps))
    ends = [unit.strict for unit in scores.units if isinstance(unit.strict, StrictEndToEndCounts)]
    return _stated(STRICT_END_TO_END, add_counts(StrictEndToEndCounts, ends))


def _stated(metrics: Mapping[str, Metric[_Counts]], counts: _Counts) -> dict[MetricName, Score]:
    """Each metric that a board has, rounded, with the count behind it where it is one."""
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
    """What the system took in all runs; not known where a part is not known."""
    used = [run.scores.usage for run in runs]
    cost = sum_costs(paid_cost(one.cost_usd) for one in used).total
    seconds = total(one.seconds for one in used)
    return Costs(
        usd=None if cost is None else round(cost, 4),
        minutes=round(seconds / 60, 2) if seconds else None,
    )


def _attempts(runs: Sequence[ScoredRun]) -> int | None:
    found = [run.scores.attempts for run in runs]
    return None if None in found else sum(number for number in found if number is not None)


def _marks(runs: Sequence[ScoredRun], judge: str | None) -> tuple[Mark, ...]:
    """The marks of all runs and of their judge, in the order of their list."""
    found = {mark for run in runs for mark, holds in _held(run).items() if holds}
    if judge is not None and is_scripted(judge):
        found.add("scripted judge")
    if any(_other_names(run, judge) for run in runs):
        found.add("name differs")
    return tuple(mark for mark in get_args(Mark) if mark in found)


def _held(run: ScoredRun) -> dict[Mark, bool]:
    spec, imported = run.manifest.spec, run.manifest.imported_from is not None
    system, limits = spec.system, spec.limits
    in_process = ":" in system.agent or (
        system.agent == "harness" and limits is not None and limits.memory_bytes is None
    )
    return {
        "imported": imported,
        "open network": spec.network == "open",
        "unconfined": in_process and not imported,
        "own tools": spec.tools == OWN_TOOLS,
        "taped": spec.tape is not None,
        "scripted model": is_scripted(system.model),
        "attempts unknown": run.scores.attempts is None and not imported,
        "retried": run.scores.retried > 0,
    }


def _other_names(run: ScoredRun, judge: str | None) -> list[str]:
    """Names by which providers answered, where they are not those of the models that were asked.

    A server of one's own may give any name to its model, so this is no fault, but it can be one.
    """
    said = []
    model, judged = run.manifest.spec.system.model, run.judged.get(judge or "")
    if model not in NAMELESS and run.manifest.imported_from is None:
        said = [f"its model answered as {name!r}" for name in _others(run.scores.models, [model])]
    if judged is not None:
        others = _others(judged.answered, judged.models)
        said += [f"its judge's model answered as {name!r}" for name in others]
    return said


def _others(answered: Sequence[str], asked: Sequence[str]) -> list[str]:
    """`gpt-5-2025-08-07` is an answer of openai/gpt-5, `gpt-5-mini` is none."""
    known = [re.escape(_bare(model)) for model in asked]
    same = re.compile(rf"({'|'.join(known)})[0-9]*")
    return [name for name in answered if not same.fullmatch(_bare(name))]


def _bare(model: str) -> str:
    name = model.rpartition("/")[2].lower().removesuffix("-latest")
    return re.sub(r"[^a-z0-9]", "", name)


def _notes(run: ScoredRun, judge: str | None) -> list[str]:
    """What one must know of the run, all of it computed: notes that a run has are anybody's.

    The first remark says what the entry says already.
    """
    bare = run.manifest.model_copy(update={"notes": ()})
    if isinstance(run.scores, WorkflowScores):
        said = workflow_remarks(WorkflowSummary("run", bare, run.scores, Floors()))
    else:
        said = remarks(RunSummary("run", bare, run.scores))
    limits = run.manifest.spec.limits
    if limits is not None:
        said.append(f"The system had {limits.seconds:g} s for each task.")
    judged = run.judged.get(judge or "")
    if judged is not None:
        said += [f"The judge's prompts have the digest {one[:16]}." for one in judged.prompts]
    said += _other_names(run, judge)
    return [one.rstrip(".") for one in said[1:]]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:120] or "system"
