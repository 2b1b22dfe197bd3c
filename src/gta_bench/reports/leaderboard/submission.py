"""An entry from scored runs; the check makes it once more from the bundle and compares."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import UsageError
from gta_bench.metrics.consistency import LABELS, TASKS
from gta_bench.metrics.pooling import total
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.floor import Floors
from gta_bench.records.leaderboard import Board, Costs, Entry, MetricName, Score
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores, StrictEndToEndScores, StrictStepCounts
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.reports.leaderboard.tables import BOARDS
from gta_bench.reports.summary import RunSummary, remarks, system_name
from gta_bench.reports.workflow_summary import RELEASED_TASKS, WorkflowSummary
from gta_bench.reports.workflow_summary import remarks as workflow_remarks

SIZES: Final[Mapping[Board, int]] = {"atomic": TASKS, "workflow": RELEASED_TASKS}
SOURCE: Final = "submitted bundle"


class ScoredRun(NamedTuple):
    """A run with its scores."""

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores
    floors: Floors = Floors()


class Label(NamedTuple):
    """What a submitter may say of an entry; nothing of it is measured."""

    system: str | None = None
    group: str = ""


def entry_of(
    runs: Sequence[ScoredRun], *, judge: str | None, label: Label, run_digest: str | None = None
) -> Entry:
    """The entry of one system; a step and an end-to-end run of GTA-Atomic make one together."""
    _check_together(runs)
    manifest = runs[0].manifest
    board: Board = "atomic" if manifest.dataset == "atomic" else "workflow"
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
            f"{LABELS[headline]}, by which the board is ordered, comes from an end-to-end run: "
            "name that run of the same system too."
        )
    system = label.system or system_name(manifest)
    release = f"{manifest.created:%Y-%m}"
    return Entry(
        id=f"{release}/{board}/{_slug(system)}",
        board=board,
        release=release,
        group=label.group,
        system=system,
        model=manifest.system.model,
        harness=manifest.system.harness or manifest.system.agent,
        dataset_digest=manifest.dataset_digest,
        scoring="strict",
        scoring_version=runs[0].scores.scoring_version,
        judge=None if chosen is None else chosen.judge,
        costs=_costs(runs),
        run_digest=run_digest,
        status="self-reported",
        source=SOURCE,
        notes=tuple(dict.fromkeys(note for run in runs for note in _notes(run))),
        scores=scores,
    )


def _check_together(runs: Sequence[ScoredRun]) -> None:
    """Several runs are one entry only where they are one system on one dataset, a mode each."""
    first = runs[0].manifest
    for run in runs[1:]:
        if run.manifest.system != first.system:
            raise UsageError(f"{run.name} and {runs[0].name} are runs of different systems.")
        if run.manifest.dataset_digest != first.dataset_digest:
            raise UsageError(f"{run.name} and {runs[0].name} are runs on different datasets.")
    if len({run.manifest.mode for run in runs}) < len(runs):
        raise UsageError("Two runs of one mode are two entries: submit them apart.")


def _check_run(run: ScoredRun, board: Board) -> None:
    manifest, scores = run.manifest, run.scores
    size = SIZES[board]
    if len(manifest.tasks) != size:
        raise UsageError(
            f"{run.name} has {len(manifest.tasks)} tasks; the board has {size}. Run all of them."
        )
    if manifest.epochs != 1:
        raise UsageError(f"{run.name} has {manifest.epochs} epochs; an entry is one of them.")
    if manifest.controls:
        raise UsageError(f"{run.name} ran under controls ({', '.join(manifest.controls)}).")
    if scores.n != scores.n_units:
        raise UsageError(
            f"{run.name}: {scores.n} of {scores.n_units} units have a score; complete it by the "
            "same `gta run` command."
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
            f"{run.name}: {chosen.judge} gave {chosen.strict.n} of {chosen.strict.n_units} tasks "
            f"a root; `gta score {run.name} --judge MODEL` asks for what is missing."
        )
    return chosen


def _workflow_scores(scores: WorkflowScores, judge: JudgeScores) -> dict[MetricName, Score]:
    roots = [task.root for task in judge.tasks if task.root is not None]
    leaves = [leaf.value for task in judge.tasks for leaf in task.leaves if leaf.value is not None]
    passed = sum(succeeds(root, scores.root_threshold) for root in roots)
    good = sum(succeeds(leaf, scores.leaf_threshold) for leaf in leaves)
    made: dict[MetricName, Score] = {
        "root_score": Score(value=round(total(roots) / len(roots), 2)),
        "root_sr": _share(passed, len(roots)),
        "leaf_sr": _share(good, len(leaves)),
    }
    if scores.tool_sr is not None:
        made["tool_sr"] = Score(value=round(scores.tool_sr, 2))
    return made


def _atomic_scores(scores: RunScores) -> dict[MetricName, Score]:
    pooled = scores.strict
    if isinstance(pooled, StrictEndToEndScores):
        names: tuple[MetricName, ...] = ("ans_acc", "ans_acc_i", "p_f1", "o_f1", "l_f1", "c_f1")
        values = {name: getattr(pooled, name) for name in names}
        return {
            name: Score(value=round(value, 2))
            for name, value in values.items()
            if value is not None
        }
    counts = [unit.strict for unit in scores.units if isinstance(unit.strict, StrictStepCounts)]
    calls = sum(one.call_total for one in counts)
    return {
        "inst_acc": _share(
            sum(one.inst_hits for one in counts), sum(one.inst_total for one in counts)
        ),
        "tool_acc": _share(sum(one.tool_hits for one in counts), calls),
        "arg_acc": _share(sum(one.arg_hits for one in counts), calls),
        "summ_acc": Score(value=round(pooled.summ_acc or 0.0, 2)),
    }


def _share(k: int, n: int) -> Score:
    return Score(value=round(100 * k / n, 2), k=k, n=n)


def _costs(runs: Sequence[ScoredRun]) -> Costs:
    """What the system took in all runs; not known where a part is not known."""
    used = [run.scores.usage for run in runs]
    known = [one.cost_usd for one in used if one.cost_usd is not None]
    seconds = total(one.seconds for one in used)
    return Costs(
        usd=round(total(known), 4) if len(known) == len(used) else None,
        minutes=round(seconds / 60, 2) if seconds else None,
    )


def _notes(run: ScoredRun) -> list[str]:
    """What one must know of the run; its first remark says what the entry says already."""
    if isinstance(run.scores, WorkflowScores):
        said = workflow_remarks(WorkflowSummary(run.name, run.manifest, run.scores, run.floors))
    else:
        said = remarks(RunSummary(run.name, run.manifest, run.scores))
    return [one.rstrip(".") for one in said[1:]]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:120] or "system"
