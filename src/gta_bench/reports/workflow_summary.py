"""Summaries of Workflow runs: a row for each run and judge, and the groups of one run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.metrics.labels import People
from gta_bench.metrics.panel import LeafTable
from gta_bench.metrics.table import CATEGORY_SRS, JUDGED, LEAF_SR, ROOT_SR, TOOL_SR
from gta_bench.records.agreement import PanelReport
from gta_bench.records.ceiling import LEAST_TASKS, CeilingScore, CorrectionProblem
from gta_bench.records.cost import make_cost, sum_costs
from gta_bench.records.judges import Floor, Floors
from gta_bench.records.run import RunManifest
from gta_bench.records.workflow_scores import GroupScores, JudgeScores, WorkflowScores
from gta_bench.reports.summary import (
    attempt_remarks,
    completion_hint,
    imported_remarks,
    judge_badges,
    run_badges,
    stop_remarks,
    system_name,
    usage_text,
)
from gta_bench.reports.tables import Table, dollars, format_number, with_interval

# The columns with one judge's scores of a set of units.
GROUP_HEADING = ("n/N", *(row.heading for row in JUDGED.values()), "leaves")
HEADING = (
    "run",
    "judge",
    "scoring",
    *GROUP_HEADING,
    TOOL_SR.heading,
    *(row.heading for row in CATEGORY_SRS),
    "cost",
    "note",
)
CEILING_TITLE: Final = "Ceiling of the judges, and Leaf SR corrected for their errors (95 %)"
CEILING_HEADING: Final = (
    *("run", "judge", LEAF_SR.heading, "right work gets", "broken found %", "intact passed %"),
    *("corrected", "note"),
)
CEILING_TEXT_COLUMNS: Final = (0, 1, 7)
PROBLEMS: Final[Mapping[CorrectionProblem, str]] = {
    "few": f"not corrected: the ceiling has wrong or right works of fewer than {LEAST_TASKS} tasks",
    "blind": "not corrected: the judge is not clearly better than chance",
    "apart": "not corrected: no true score explains these verdicts, so the judge errs otherwise on "
    "these tasks than on those of the ceiling",
}


class WorkflowSummary(NamedTuple):
    """What a report shows of one Workflow run; `leaves` are needed for the judges' noise only."""

    name: str
    manifest: RunManifest
    scores: WorkflowScores
    floors: Floors = Floors()
    panel: PanelReport | None = None
    leaves: LeafTable | None = None
    people: People = People()
    ceilings: tuple[CeilingScore, ...] = ()

    def badges(self, judge: str | None) -> tuple[str, ...]:
        """Return the notes next to a judge's score, or next to no score."""
        return (*run_badges(self.manifest), *(() if judge is None else judge_badges(judge)))


def score_table(runs: Sequence[WorkflowSummary]) -> Table:
    """Return a row for every judge of every run; a run without a judge has no scores."""
    return Table(HEADING, tuple(row for run in runs for row in _rows(run)))


def group_table(judge: JudgeScores) -> Table:
    """Return scores by task category, by kind of deliverable, and by category of called tools."""
    groups = [("category", group) for group in judge.categories]
    groups += [("delivered", group) for group in judge.kinds]
    groups += [("called", group) for group in judge.tool_categories]
    return Table(
        ("by", "group", *GROUP_HEADING),
        tuple((kind, group.name, *_cells(group)) for kind, group in groups),
    )


def curve_table(judge: JudgeScores) -> Table:
    """Return both success rates at every threshold."""
    return Table(
        ("threshold", *(f"{point.threshold:g}" for point in judge.curve)),
        (
            (LEAF_SR.heading, *(format_number(point.leaf_sr) for point in judge.curve)),
            (ROOT_SR.heading, *(format_number(point.root_sr) for point in judge.curve)),
        ),
    )


def ceiling_table(runs: Sequence[WorkflowSummary]) -> Table:
    """Return a row for every judge with a ceiling."""
    return Table(
        CEILING_HEADING,
        tuple(
            (
                run.name,
                one.judge,
                format_number(one.leaf_sr),
                with_interval(one.gold.leaf_sr),
                with_interval(one.sensitivity, factor=100),
                with_interval(one.specificity, factor=100),
                with_interval(one.corrected),
                "; ".join(_ceiling_notes(one)),
            )
            for run in runs
            for one in run.ceilings
        ),
    )


def _ceiling_notes(one: CeilingScore) -> Iterator[str]:
    if one.other:
        yield f"not corrected: run and ceiling differ in {', '.join(one.other)}"
    elif one.problem is not None:
        yield PROBLEMS[one.problem]
    elif one.corrected is None:
        yield "not corrected: the judge decided no leaf, or the ceiling lacks right or wrong work"
    if one.judged < one.leaves:
        yield f"the judge decided {one.judged} of {format_count(one.leaves, 'leaf', 'leaves')}"
    if one.untested:
        yield f"not in the ceiling: {', '.join(one.untested)}"


def ceiling_remark(one: CeilingScore) -> str:
    """Describe what the judge gives to right work, and the corrected score."""
    said = (
        f"ceiling of {one.judge}, Leaf SR of right work: {with_interval(one.gold.leaf_sr)}; it "
        f"finds {with_interval(one.sensitivity, factor=100)} % of broken leaves and passes "
        f"{with_interval(one.specificity, factor=100)} % of intact ones"
    )
    if one.corrected is not None:
        said += (
            f"; Leaf SR corrected for both errors: {with_interval(one.corrected)}, if it errs as "
            "often on this run"
        )
    return "; ".join((said, *_ceiling_notes(one))) + "."


def remarks(run: WorkflowSummary) -> list[str]:
    """Return the system, what it took, and what to know before comparing its scores."""
    scores = run.scores
    lines = [f"{system_name(run.manifest)}; {usage_text(scores.usage, run.manifest)}"]
    if run.manifest.spec.feedback is not None:
        back = run.manifest.spec.feedback
        lines.append(f"round {back.round}, after feedback of {back.judge} ({back.level}).")
    lines += _missing(run)
    lines += attempt_remarks(scores)
    lines += stop_remarks(scores.stops, scores.usage)
    lines.append(
        f"a leaf succeeds from {scores.leaf_threshold:g}, a task from {scores.root_threshold:g}; "
        "these thresholds, Tool SR and P/O/L/C-SR are our definitions: the published ones are "
        "not known."
    )
    own = [run.floors.of(judge.judge) for judge in scores.judges]
    lines += [floor_remark(floors) for floors in own if floors]
    lines += map(ceiling_remark, run.ceilings)
    lines += imported_remarks(run.manifest)
    lines += run.manifest.notes
    return lines


def floor_remark(floors: Sequence[Floor]) -> str:
    """Describe the scores that the judge gave to systems that do nothing."""
    scores = ", ".join(f"{floor.system} {format_number(floor.root_score)}" for floor in floors)
    return f"floor of {floors[0].judge}, Root Score of systems that do nothing: {scores}."


def _missing(run: WorkflowSummary) -> Iterator[str]:
    scores = run.scores
    if scores.unscored:
        cause = scores.unscored[0].cause
        yield (
            f"no result: {len(scores.unscored)} of {format_count(scores.n_units, 'unit')}, so the "
            f"run is not rankable ({cause}); {completion_hint(cause)}."
        )
    if not scores.judges:
        yield f"no judge has scored it: run `gta score {run.name} --judge MODEL`."
    for judge in scores.judges:
        if judge.checked:
            leaves = format_count(judge.strict.n_leaves, "leaf", "leaves")
            yield f"{judge.judge}: checks decided {judge.checked} of {leaves}, without a model."
        if judge.causes:
            lacking = judge.strict.n_leaves - judge.strict.leaves
            leaves = format_count(judge.strict.n_leaves, "leaf", "leaves")
            tasks = format_count(judge.strict.n_units, "task")
            yield (
                f"{judge.judge} left {lacking} of {leaves} without a score "
                f"({', '.join(judge.causes)}): a root for {judge.strict.n} of {tasks}, "
                "and the run is not rankable by it."
            )


def _rows(run: WorkflowSummary) -> Iterator[tuple[str, ...]]:
    scores = run.scores
    spent = scores.usage.cost_usd
    if not scores.judges:
        n = f"{scores.n}/{scores.n_units}"
        blank = ("-",) * 4
        took = (format_number(scores.tool_sr), *blank, dollars(spent))
        yield (run.name, "-", "-", n, *blank, *took, "; ".join(run.badges(None)))
    for judge in scores.judges:
        yield (
            run.name,
            judge.judge,
            "strict",
            *_cells(judge.strict),
            format_number(scores.tool_sr),
            *(format_number(group.root_sr) for group in judge.tool_categories[: len(CATEGORY_SRS)]),
            dollars(sum_costs(map(make_cost, (spent, judge.usage.cost_usd))).total),
            "; ".join(run.badges(judge.judge)),
        )
        n = f"{judge.compat.n}/{judge.strict.n_units}"
        root = format_number(judge.compat.root_score)
        yield (run.name, judge.judge, "compat", n, root, *("-",) * 9, "")
        for floor in run.floors.of(judge.judge):
            n = f"{floor.n}/{floor.n_units}"
            cells = (n, *format_judged(floor), *("-",) * 7, "")
            yield (run.name, judge.judge, f"floor: {floor.system}", *cells)


def format_judged(scores: GroupScores | Floor) -> tuple[str, ...]:
    """Return the values of the judged metrics, in the order of the table."""
    return tuple(format_number(getattr(scores, name)) for name in JUDGED)


def _cells(group: GroupScores) -> tuple[str, ...]:
    return (
        f"{group.n}/{group.n_units}",
        *format_judged(group),
        f"{group.leaves}/{group.n_leaves}",
    )
