"""Runs of one kind beside each other: scores with intervals, and what they took for it."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.judge_quality.budget import budget_table, budgets
from gta_bench.metrics import table
from gta_bench.metrics.categories import CATEGORIES, TOOL_CATEGORY
from gta_bench.metrics.workflow_scores import NO_CATEGORY
from gta_bench.records.run import RunMode
from gta_bench.records.scores import UnitScore
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import GroupScores, JudgeScores, TaskScore
from gta_bench.reports.certainty import (
    REPEATS,
    broken_remarks,
    measured,
    repeat_remarks,
    repeat_table,
    repeated,
)
from gta_bench.reports.estimates import (
    Estimate,
    atomic_parts,
    estimates,
    workflow_parts,
)
from gta_bench.reports.summary import metrics, system_name
from gta_bench.reports.tables import dollars
from gta_bench.web.cells import DASH, PageCell, PageTable, estimated, number_cell, plain
from gta_bench.web.charts import Chart, Spent, front, spent_chart
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial

TITLES: Final[Mapping[RunMode, str]] = {
    "workflow": "GTA-Workflow",
    "end-to-end": "GTA-Atomic, end to end",
    "step": "GTA-Atomic, step by step",
}
# What the page shows of each mode, the primary metric first.
COLUMNS: Final[Mapping[RunMode, tuple[str, ...]]] = {
    "workflow": ("root_sr", "root_score", "leaf_sr", "tool_sr"),
    "end-to-end": ("ans_acc", "ans_acc_i", "p_f1", "o_f1", "l_f1", "c_f1"),
    "step": ("arg_acc", "inst_acc", "tool_acc", "summ_acc"),
}


class _Row(NamedTuple):
    """One run as one scoring (and judge) sees it; without intervals where there are none.

    `badges` stand beside the headline, which is the strict row of a run and judge.
    """

    number: int
    name: str
    system: str
    about: str
    n: str
    whole: bool
    cells: tuple[PageCell, ...]
    headline: Estimate | None
    badges: tuple[str, ...] = ()


class _Board(NamedTuple):
    """The runs of one mode; `repeats` are there where tasks were run more than once."""

    mode: RunMode
    title: str
    headline: str
    columns: tuple[str, ...]
    rows: tuple[_Row, ...]
    budget: PageTable
    repeats: PageTable | None
    remarks: tuple[str, ...]
    spent: PageTable
    charts: tuple[Chart, ...]
    known: bool


def boards(runs: Sequence[RunMaterial]) -> list[_Board]:
    """A board for every mode that has runs; runs keep their numbers on the page."""
    numbered = list(enumerate(runs, start=1))
    found = []
    for mode in TITLES:
        own = [(number, run) for number, run in numbered if run.mode == mode]
        if own:
            rows = tuple(row for number, run in own for row in _rows(number, run))
            spent, charts = _spent(mode, own, rows)
            headline = table.primary(mode).label
            columns = tuple(map(table.label, COLUMNS[mode]))
            known = any(value is not None for _, run in own for value in _per_task(run))
            parts = budget_table(budgets([run.summary for _, run in own]))
            budget = plain(f"Uncertainty of {TITLES[mode]}", parts, (0, 1, 2))
            repeats, said = _repeats(own)
            found.append(
                _Board(
                    mode=mode,
                    title=TITLES[mode],
                    headline=headline,
                    columns=columns,
                    rows=rows,
                    budget=budget,
                    repeats=repeats,
                    remarks=said,
                    spent=spent,
                    charts=charts,
                    known=known,
                )
            )
    return found


def _repeats(runs: Sequence[tuple[int, RunMaterial]]) -> tuple[PageTable | None, tuple[str, ...]]:
    """What repeats show, and the remarks on them and on work that the system did not break."""
    own = list(measured([run.summary for _, run in runs]))
    again = repeated(own)
    page_table = plain(REPEATS, repeat_table(again)) if again else None
    return page_table, (*broken_remarks(own), *repeat_remarks(again))


def _rows(number: int, run: RunMaterial) -> Iterator[_Row]:
    system = system_name(run.manifest)
    columns, spec = COLUMNS[run.mode], run.manifest.spec
    if isinstance(run, AtomicRun):
        scores = run.summary.scores
        found = estimates(atomic_parts(scores.units, columns), spec.tasks, epochs=spec.epochs)
        of = _of(scores.strict.n, scores.n_units)
        cells = tuple(estimated(found, name) for name in columns)
        badges = run.summary.badges
        yield _Row(number, run.name, system, "strict", *of, cells, found.get(columns[0]), badges)
        compat = metrics(scores, "compat")
        rest = tuple(number_cell(compat.get(name)) for name in columns)
        of = _of(scores.compat.n, scores.n_units)
        yield _Row(number, run.name, system, "compat", *of, rest, None)
        return
    workflow = run.summary.scores
    if not workflow.judges:
        found = estimates(workflow_parts((), workflow, run.units), spec.tasks, epochs=spec.epochs)
        cells = tuple(estimated(found, name) for name in columns)
        of = _of(workflow.n, workflow.n_units)
        badges = run.summary.badges(None)
        yield _Row(number, run.name, system, "no judge yet", *of, cells, None, badges)
    for judge in workflow.judges:
        found = estimates(
            workflow_parts(judge.tasks, workflow, run.units), spec.tasks, epochs=spec.epochs
        )
        cells = tuple(estimated(found, name) for name in columns)
        of = _of(judge.strict.n, judge.strict.n_units)
        about, badges = f"strict, by {judge.judge}", run.summary.badges(judge.judge)
        yield _Row(number, run.name, system, about, *of, cells, found.get(columns[0]), badges)
        of = _of(judge.compat.n, judge.strict.n_units)
        compat = {table.ROOT_SCORE.name: judge.compat.root_score}
        rest = tuple(number_cell(compat.get(name)) for name in columns)
        yield _Row(number, run.name, system, f"compat, by {judge.judge}", *of, rest, None)
        for floor in run.summary.floors.of(judge.judge):
            low = floor.model_dump(include={*table.JUDGED})
            rest = tuple(number_cell(low.get(name)) for name in columns)
            about, of = f"floor, by {judge.judge}", _of(floor.n, floor.n_units)
            yield _Row(number, run.name, floor.system, about, *of, rest, None)


def _of(n: int, units: int) -> tuple[str, bool]:
    """`n/N`, and whether the two are the same."""
    return f"{n}/{units}", n == units


def _spent(
    mode: RunMode, runs: Sequence[tuple[int, RunMaterial]], rows: Sequence[_Row]
) -> tuple[PageTable, tuple[Chart, ...]]:
    """What a task took on average; a chart where two runs or more can be compared."""
    label = table.primary(mode).label
    best = {}
    for row in reversed(rows):
        if row.headline is not None:
            best[row.number] = row.headline
    usages = {number: _per_task(run) for number, run in runs}
    axes = {table.COST.heading: 0, table.SECONDS.heading: 1}
    charts, fronts = [], {}
    for axis, place in axes.items():
        known = [
            Spent(str(number), value, best[number].value)
            for number, _ in runs
            if number in best and (value := usages[number][place]) is not None
        ]
        if len(known) > 1:
            charts.append(spent_chart(known, x_label=axis, y_label=f"{label}, %"))
            fronts[place] = {one.label for one in front(known)}
    page_table = PageTable(
        f"What runs of {TITLES[mode]} took",
        ("", "run", label, *axes, table.TOKENS.heading, "on the front"),
        tuple(
            (
                PageCell(str(number)),
                PageCell(run.name),
                PageCell(best[number].text) if number in best else PageCell(DASH),
                _amount(usages[number][0], dollars),
                _amount(usages[number][1], "{:,.2f}".format),
                _amount(usages[number][2], "{:,.0f}".format),
                PageCell(
                    " and ".join(
                        word
                        for place, word in enumerate(("cost", "time"))
                        if str(number) in fronts.get(place, ())
                    )
                    or DASH
                ),
            )
            for number, run in runs
        ),
        (0, 1, 6),
    )
    return page_table, tuple(charts)


def _per_task(run: RunMaterial) -> tuple[float | None, float | None, float | None]:
    """Cost, seconds and tokens of a unit; None where nothing was recorded."""
    usage: Usage = run.summary.scores.usage
    n = run.summary.scores.n or 1
    tokens = usage.input_tokens + usage.output_tokens
    return (
        None if usage.cost_usd is None else usage.cost_usd / n,
        usage.seconds / n or None,
        tokens / n or None,
    )


def _amount(value: float | None, shown: Callable[[float], str]) -> PageCell:
    return PageCell("unknown" if value is None else shown(value))


_Group = tuple[str, str, str, Mapping[str, Estimate]]
# Without Tool SR, which belongs to units and not to a judge's groups of them.
JUDGED_COLUMNS = tuple(name for name in COLUMNS["workflow"] if name in table.JUDGED)


def atomic_groups(run: AtomicRun) -> PageTable:
    """By the categories of the tools in the reference, and by the kind of the answer."""
    tasks = {unit.task.id: unit.task for unit in run.units}
    # Tools that another package brought; GTA-Atomic has none of these.
    own = {call.tool: call.category for unit in run.units for call in unit.calls if call.category}
    known = {**own, **TOOL_CATEGORY}

    def categories(score: UnitScore) -> set[str]:
        return {known.get(turn.call.name, "") for turn in tasks[score.task].calls}

    def answers(score: UnitScore) -> str:
        answer = tasks[score.task].answer
        return "image" if answer is None else answer.kind.replace("_", " ")

    scored = [score for score in run.summary.scores.units if score.task in tasks]
    groups: list[tuple[str, str, list[UnitScore]]] = [
        (
            "category of the reference's tools",
            name,
            [one for one in scored if name in categories(one)],
        )
        for name in (*CATEGORIES, *sorted({*own.values()} - {*CATEGORIES}))
    ]
    groups += [
        ("kind of answer", name, [one for one in scored if answers(one) == name])
        for name in sorted({answers(one) for one in scored})
    ]
    columns = COLUMNS[run.mode]
    return _group_table(
        run.name,
        columns,
        [
            (by, name, str(len(own)), estimates(atomic_parts(own, columns), _tasks(own), epochs=1))
            for by, name, own in groups
            if own
        ],
    )


def workflow_groups(run: JudgedRun, judge: JudgeScores) -> PageTable:
    """By category of the task, ending of the deliverables, category of called tools."""
    ways: tuple[tuple[str, Sequence[GroupScores], Callable[[TaskScore], Container[str]]], ...] = (
        ("category of the task", judge.categories, lambda one: (_category(one),)),
        ("ending of the deliverables", judge.kinds, lambda one: one.kinds),
        ("category of called tools", judge.tool_categories, lambda one: one.tool_categories),
    )
    groups: list[_Group] = []
    for by, found, names in ways:
        for group in found:
            own = [one for one in judge.tasks if group.name in names(one)]
            scores = estimates(workflow_parts(own, run.summary.scores), _tasks(own), epochs=1)
            groups.append((by, group.name, f"{group.n}/{group.n_units}", scores))
    return _group_table(run.name, JUDGED_COLUMNS, groups)


def _group_table(name: str, columns: Sequence[str], groups: Sequence[_Group]) -> PageTable:
    first: dict[str, int] = {}
    for place, (by, *_) in enumerate(groups):
        first.setdefault(by, place)
    return PageTable(
        f"Scores of {name} by group",
        ("group", "n", *map(table.label, columns)),
        tuple(
            (PageCell(group), PageCell(n), *(estimated(found, column) for column in columns))
            for _, group, n, found in groups
        ),
        parts={place: f"By {by}" for by, place in first.items()},
    )


def _tasks(units: Sequence[UnitScore] | Sequence[TaskScore]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(unit.task for unit in units))


def _category(task: TaskScore) -> str:
    return task.category or NO_CATEGORY
