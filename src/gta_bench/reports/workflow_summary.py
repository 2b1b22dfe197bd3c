"""Workflow runs side by side: a row for each run and judge, and the groups of one run."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gta_bench.records.run import RunManifest
from gta_bench.records.workflow_scores import GroupScores, JudgeScores, WorkflowScores
from gta_bench.reports.summary import system_name, usage_text
from gta_bench.reports.tables import Table, shown

RELEASED_TASKS = 132
HEADING = (
    "run",
    "judge",
    "scoring",
    "n/N",
    "Root",
    "Root SR",
    "Leaf SR",
    "leaves",
    "Tool SR",
    "P-SR",
    "O-SR",
    "L-SR",
    "C-SR",
    "cost",
)


class WorkflowSummary(NamedTuple):
    """What a report says of one Workflow run."""

    name: str
    manifest: RunManifest
    scores: WorkflowScores


def score_table(runs: Sequence[WorkflowSummary]) -> Table:
    """Every judge of every run; a run that no judge saw has a row without scores."""
    return Table(HEADING, tuple(row for run in runs for row in _rows(run)))


def group_table(judge: JudgeScores) -> Table:
    """The scores by category of the task, ending of the deliverables, category of called tools."""
    groups = [("category", group) for group in judge.categories]
    groups += [("delivered", group) for group in judge.kinds]
    groups += [("called", group) for group in judge.tool_categories]
    return Table(
        ("by", "group", "n/N", "Root", "Root SR", "Leaf SR", "leaves"),
        tuple((kind, group.name, *_cells(group)) for kind, group in groups),
    )


def curve_table(judge: JudgeScores) -> Table:
    """Both success rates at every threshold."""
    return Table(
        ("threshold", *(f"{point.threshold:g}" for point in judge.curve)),
        (
            ("Leaf SR", *(_short(point.leaf_sr) for point in judge.curve)),
            ("Root SR", *(_short(point.root_sr) for point in judge.curve)),
        ),
    )


def remarks(run: WorkflowSummary) -> list[str]:
    """The system, what it took, and what one must know before comparing its numbers."""
    scores = run.scores
    said = [f"{system_name(run.manifest)}; {usage_text(scores.usage, run.manifest)}"]
    if run.manifest.feedback is not None:
        back = run.manifest.feedback
        said.append(f"round {back.round}, after feedback of {back.judge} ({back.level}).")
    said += _missing(run)
    said.append(
        f"a leaf succeeds from {scores.leaf_threshold:g}, a task from {scores.root_threshold:g}; "
        "these thresholds, Tool SR and P/O/L/C-SR are our definitions: the published ones are "
        "not known."
    )
    said += run.manifest.notes
    if len(run.manifest.tasks) != RELEASED_TASKS:
        said.append(f"{len(run.manifest.tasks)} tasks; GTA-Workflow has {RELEASED_TASKS}.")
    return said


def _missing(run: WorkflowSummary) -> Iterator[str]:
    scores = run.scores
    if scores.unscored:
        yield (
            f"{len(scores.unscored)} of {scores.n_units} units have no result, so the run is not "
            f"rankable ({scores.unscored[0].cause}); the same `gta run` command completes it."
        )
    if not scores.judges:
        yield f"no judge has seen it: `gta score {run.name} --judge MODEL`."
    for judge in scores.judges:
        if judge.causes:
            lacking = judge.strict.n_leaves - judge.strict.leaves
            yield (
                f"{judge.judge} left {lacking} of {judge.strict.n_leaves} leaves without a score "
                f"({', '.join(judge.causes)}): {judge.strict.n} of {judge.strict.n_units} tasks "
                "have a root, and the run is not rankable by it."
            )


def _rows(run: WorkflowSummary) -> Iterator[tuple[str, ...]]:
    scores = run.scores
    spent = scores.usage.cost_usd
    if not scores.judges:
        n = f"{scores.n}/{scores.n_units}"
        blank = ("-",) * 4
        yield (run.name, "-", "-", n, *blank, shown(scores.tool_sr), *blank, _cost(spent))
    for judge in scores.judges:
        yield (
            run.name,
            judge.judge,
            "strict",
            *_cells(judge.strict),
            shown(scores.tool_sr),
            *(shown(group.root_sr) for group in judge.tool_categories),
            _cost(_sum(spent, judge.usage.cost_usd)),
        )
        n = f"{judge.compat.n}/{judge.strict.n_units}"
        root = shown(judge.compat.root_score)
        yield (run.name, judge.judge, "compat", n, root, *("-",) * 9)


def _cells(group: GroupScores) -> tuple[str, ...]:
    return (
        f"{group.n}/{group.n_units}",
        shown(group.root_score),
        shown(group.root_sr),
        shown(group.leaf_sr),
        f"{group.leaves}/{group.n_leaves}",
    )


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _sum(one: float | None, other: float | None) -> float | None:
    """A cost of which a part is not known is not known."""
    return None if one is None or other is None else one + other


def _cost(value: float | None) -> str:
    return "-" if value is None else f"${value:.2f}"
