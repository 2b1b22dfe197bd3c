"""Boards compare runs of the same mode: scores with intervals, cost and time, and groups."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.judge_quality.budget import budget_table, budgets
from gta_bench.metrics import table
from gta_bench.metrics.categories import CATEGORIES, TOOL_CATEGORY
from gta_bench.metrics.workflow_scores import NO_CATEGORY
from gta_bench.records.run import RunMode
from gta_bench.records.workflow_scores import GroupScores, JudgeScores, TaskScore
from gta_bench.reports.certainty import (
    REPEATS,
    collect_metrics,
    collect_repeats,
    describe_broken,
    repeat_remarks,
    repeat_table,
)
from gta_bench.reports.estimates import (
    Estimate,
    add_atomic_parts,
    add_judged_parts,
    estimates,
    make_atomic_parts,
    make_judged_parts,
    make_workflow_parts,
)
from gta_bench.reports.summary import metrics, system_name
from gta_bench.reports.tables import dollars
from gta_bench.web.charts import Chart, Spent, draw_front, find_front
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial, UnitScan, run_mode
from gta_bench.web.pages import DASH, PageCell, PageTable, estimate_cell, number_cell, page_table

TITLES: Final[Mapping[RunMode, str]] = {
    "workflow": "GTA-Workflow",
    "end-to-end": "GTA-Atomic, end to end",
    "step": "GTA-Atomic, step by step",
}
# The metrics of each mode on the page, with the primary one first.
COLUMNS: Final[Mapping[RunMode, tuple[str, ...]]] = {
    "workflow": ("root_sr", "root_score", "leaf_sr", "tool_sr"),
    "end-to-end": ("ans_acc", "ans_acc_i", "p_f1", "o_f1", "l_f1", "c_f1"),
    "step": ("arg_acc", "inst_acc", "tool_acc", "summ_acc"),
}
_Numbered = Sequence[tuple[int, RunMaterial]]


class _Row(NamedTuple):
    """One run under one scoring and judge; only strict rows have a headline and badges."""

    number: int
    name: str
    system: str
    about: str
    n: int
    n_units: int
    cells: tuple[PageCell, ...]
    headline: Estimate | None = None
    badges: tuple[str, ...] = ()


def view_boards(runs: Sequence[RunMaterial]) -> list[dict[str, object]]:
    """Return a board for each mode that has runs, which keep their numbers on the page."""
    found: list[dict[str, object]] = []
    for mode, title in TITLES.items():
        own = [(number, run) for number, run in enumerate(runs, start=1) if run_mode(run) == mode]
        if own:
            rows = [row for number, run in own for row in _rows(number, run)]
            spent, charts = _cost_table(mode, own, rows)
            summaries = [run.summary for _, run in own]
            units = list(collect_metrics(summaries))
            again = collect_repeats(units)
            parts = budget_table(budgets(summaries, units))
            found.append(
                {
                    "mode": mode,
                    "title": title,
                    "columns": tuple(map(table.label, COLUMNS[mode])),
                    "rows": rows,
                    "budget": page_table(f"Uncertainty of {title}", parts, (0, 1, 2)),
                    "repeats": page_table(REPEATS, repeat_table(again)) if again else None,
                    "remarks": (*describe_broken(units), *repeat_remarks(again)),
                    "spent": spent,
                    "charts": charts,
                    "known": any(value is not None for _, run in own for value in per_task(run)),
                }
            )
    return found


def _rows(number: int, run: RunMaterial) -> Iterator[_Row]:
    name, manifest = run.summary.name, run.summary.manifest
    columns, spec, system = COLUMNS[run_mode(run)], manifest.spec, system_name(manifest)

    def row(about: str, n: int, n_units: int, found: Mapping[str, Estimate]) -> _Row:
        cells = tuple(estimate_cell(found, column) for column in columns)
        return _Row(number, name, system, about, n, n_units, cells, found.get(columns[0]))

    def bare_row(about: str, n: int, n_units: int, values: Mapping[str, float | None]) -> _Row:
        cells = tuple(number_cell(values.get(column)) for column in columns)
        return _Row(number, name, system, about, n, n_units, cells)

    if isinstance(run, AtomicRun):
        scores = run.summary.scores
        found = estimates(make_atomic_parts(scores.units, columns), spec.tasks, epochs=spec.epochs)
        strict = row("strict", scores.strict.n, scores.n_units, found)
        yield strict._replace(badges=run.summary.badges)
        yield bare_row("compat", scores.compat.n, scores.n_units, metrics(scores, "compat"))
        return
    workflow = run.summary.scores
    if not workflow.judges:
        found = estimates(
            make_workflow_parts((), workflow, run.units), spec.tasks, epochs=spec.epochs
        )
        unjudged = row("no judge yet", workflow.n, workflow.n_units, found)
        yield unjudged._replace(headline=None, badges=run.summary.badges(None))
    for judge in workflow.judges:
        parts = make_workflow_parts(judge.tasks, workflow, run.units)
        found = estimates(parts, spec.tasks, epochs=spec.epochs)
        by, n_units = f"by {judge.judge}", judge.strict.n_units
        strict = row(f"strict, {by}", judge.strict.n, n_units, found)
        yield strict._replace(badges=run.summary.badges(judge.judge))
        roots = {table.ROOT_SCORE.name: judge.compat.root_score}
        yield bare_row(f"compat, {by}", judge.compat.n, n_units, roots)
        for floor in run.summary.floors.of(judge.judge):
            values = floor.model_dump(include={*table.JUDGED})
            lowest = bare_row(f"floor, {by}", floor.n, floor.n_units, values)
            yield lowest._replace(system=floor.system)


def _cost_table(
    mode: RunMode, runs: _Numbered, rows: Sequence[_Row]
) -> tuple[PageTable, list[Chart]]:
    """Return the mean cost and time of a task, with charts if two runs can be compared."""
    label = table.primary(mode).label
    # The first strict row of each run.
    best = {row.number: row.headline for row in reversed(rows) if row.headline is not None}
    usages = {number: per_task(run) for number, run in runs}
    axes = {table.COST.heading: "cost", table.SECONDS.heading: "time"}
    fronts: dict[int, list[str]] = {number: [] for number in usages}
    charts = []
    for index, (axis, word) in enumerate(axes.items()):
        known = [
            Spent(str(number), value, best[number].value)
            for number, usage in usages.items()
            if number in best and (value := usage[index]) is not None
        ]
        if len(known) > 1:
            charts.append(draw_front(known, x_label=axis, y_label=f"{label}, %"))
            for one in find_front(known):
                fronts[int(one.label)].append(word)
    shown = (dollars, "{:,.2f}".format, "{:,.0f}".format)
    cells = []
    for number, run in runs:
        amounts = zip(shown, usages[number], strict=True)
        cells.append(
            (
                PageCell(str(number)),
                PageCell(run.summary.name),
                PageCell(best[number].text if number in best else DASH),
                *(PageCell("unknown" if one is None else show(one)) for show, one in amounts),
                PageCell(" and ".join(fronts[number]) or DASH),
            )
        )
    heading = ("no.", "run", label, *axes, table.TOKENS.heading, "on the front")
    return PageTable(f"Cost of runs of {TITLES[mode]}", heading, tuple(cells), (0, 1, 6)), charts


def per_task(run: RunMaterial) -> tuple[float | None, float | None, float | None]:
    """Return cost, seconds and tokens of a unit; None if not recorded."""
    usage, n = run.summary.scores.usage, run.summary.scores.n or 1
    tokens = usage.input_tokens + usage.output_tokens
    cost = None if usage.cost_usd is None else usage.cost_usd / n
    return cost, usage.seconds / n or None, tokens / n or None


class GroupEstimates(NamedTuple):
    """The scores of one group of units; `by` is what they are grouped by.

    `n` counts its units, and `parts` its leaves if they have any.
    """

    by: str
    name: str
    n: str
    scores: Mapping[str, Estimate]
    parts: str = ""


# Without Tool SR, which belongs to units and not to the groups of a judge.
JUDGED_COLUMNS = tuple(name for name in COLUMNS["workflow"] if name in table.JUDGED)


def atomic_groups(run: AtomicRun, scan: UnitScan) -> list[GroupEstimates]:
    """Return scores by category of the reference's tools and by kind of answer."""
    # Tools of other packages; GTA-Atomic itself has none.
    own = scan.categories
    known = {**own, **TOOL_CATEGORY}
    columns = COLUMNS[run_mode(run)]
    by_tool, by_answer = "category of the reference's tools", "kind of answer"
    names = (*CATEGORIES, *sorted({*own.values()} - {*CATEGORIES}))
    kinds = sorted({one.answer for one in scan.references.values()})
    members = {
        group: make_atomic_parts((), columns)
        for group in (*((by_tool, name) for name in names), *((by_answer, one) for one in kinds))
    }
    for score in run.summary.scores.units:
        if score.task in scan.references:
            reference = scan.references[score.task]
            for name in {known.get(tool, "") for tool in reference.tools}:
                if (by_tool, name) in members:
                    add_atomic_parts(members[by_tool, name], score)
            add_atomic_parts(members[by_answer, reference.answer], score)
    groups = []
    for (by, name), parts in members.items():
        keys = parts[columns[0]]
        if keys:
            tasks = tuple(dict.fromkeys(task for task, _ in keys))
            found = estimates(parts, tasks, epochs=1)
            groups.append(GroupEstimates(by, name, str(len(keys)), found))
    return groups


def workflow_groups(run: JudgedRun, judge: JudgeScores) -> list[GroupEstimates]:
    """Return scores by category of the task, file type and category of called tools."""
    ways: tuple[tuple[str, Sequence[GroupScores], Callable[[TaskScore], Container[str]]], ...] = (
        ("category of the task", judge.categories, lambda one: (one.category or NO_CATEGORY,)),
        ("file extension of the deliverables", judge.kinds, lambda one: one.kinds),
        ("category of called tools", judge.tool_categories, lambda one: one.tool_categories),
    )
    members = {
        (by, group.name): make_judged_parts((), run.summary.scores)
        for by, found, _ in ways
        for group in found
    }
    for task in judge.tasks:
        for by, found, names in ways:
            for group in found:
                if group.name in names(task):
                    add_judged_parts(members[by, group.name], task, run.summary.scores)
    groups: list[GroupEstimates] = []
    for by, found, _ in ways:
        for group in found:
            parts = members[by, group.name]
            tasks = tuple(dict.fromkeys(name for name, _ in parts[table.ROOT_SCORE.name]))
            scores = estimates(parts, tasks, epochs=1)
            n, leaves = f"{group.n}/{group.n_units}", f"{group.leaves}/{group.n_leaves}"
            groups.append(GroupEstimates(by, group.name, n, scores, leaves))
    return groups


def group_table(name: str, mode: RunMode, groups: Sequence[GroupEstimates]) -> PageTable:
    """Return all scores of the groups."""
    columns = JUDGED_COLUMNS if mode == "workflow" else COLUMNS[mode]
    first: dict[str, int] = {}
    for index, one in enumerate(groups):
        first.setdefault(one.by, index)
    return PageTable(
        f"Scores of {name} by group",
        ("group", "n", *map(table.label, columns)),
        tuple(
            (
                PageCell(one.name),
                PageCell(one.n),
                *(estimate_cell(one.scores, column) for column in columns),
            )
            for one in groups
        ),
        parts={index: f"By {by}" for by, index in first.items()},
    )
