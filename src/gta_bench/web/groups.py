"""The scores of a run by group, each with its interval."""

from collections.abc import Callable, Container, Mapping, Sequence

from gta_bench.metrics import table
from gta_bench.metrics.categories import CATEGORIES, TOOL_CATEGORY
from gta_bench.metrics.workflow_scores import NO_CATEGORY
from gta_bench.records.scores import UnitScore
from gta_bench.records.workflow_scores import GroupScores, JudgeScores, TaskScore
from gta_bench.reports.estimates import Estimate, atomic_parts, estimates, workflow_parts
from gta_bench.web.boards import COLUMNS
from gta_bench.web.cells import Cell, PageTable, estimated
from gta_bench.web.material import AtomicRun, JudgedRun

Group = tuple[str, str, str, Mapping[str, Estimate]]
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
    groups: list[Group] = []
    for by, found, names in ways:
        for group in found:
            own = [one for one in judge.tasks if group.name in names(one)]
            scores = estimates(workflow_parts(own, run.summary.scores), _tasks(own), epochs=1)
            groups.append((by, group.name, f"{group.n}/{group.n_units}", scores))
    return _group_table(run.name, JUDGED_COLUMNS, groups)


def _group_table(name: str, columns: Sequence[str], groups: Sequence[Group]) -> PageTable:
    first: dict[str, int] = {}
    for place, (by, *_) in enumerate(groups):
        first.setdefault(by, place)
    return PageTable(
        f"Scores of {name} by group",
        ("group", "n", *map(table.label, columns)),
        tuple(
            (Cell(group), Cell(n), *(estimated(found, column) for column in columns))
            for _, group, n, found in groups
        ),
        parts={place: f"By {by}" for by, place in first.items()},
    )


def _tasks(units: Sequence[UnitScore] | Sequence[TaskScore]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(unit.task for unit in units))


def _category(task: TaskScore) -> str:
    return task.category or NO_CATEGORY
