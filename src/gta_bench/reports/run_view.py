"""One run on a page: its groups, tools, errors and failures, and a section for every unit shown."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.workflow_scores import JudgeScores, TaskScore
from gta_bench.reports.cells import Cell, PageTable, number_cell, plain
from gta_bench.reports.charts import Chart, curve_chart
from gta_bench.reports.gains import (
    Failure,
    error_kinds,
    gain_text,
    leaf_failures,
    missed,
    unit_failures,
)
from gta_bench.reports.groups import atomic_groups, workflow_groups
from gta_bench.reports.material import AtomicRun, JudgedRun, RunMaterial, UnitKey, anchor
from gta_bench.reports.sections import (
    AtomicSection,
    WorkflowSection,
    unit_name,
    view_sections,
)
from gta_bench.reports.summary import tool_table
from gta_bench.reports.task_view import score_text
from gta_bench.reports.words import line

FAILURES_SHOWN: Final = 30
ERRORS_SHOWN: Final = 12
TASKS_LISTED: Final = 300


@dataclass(frozen=True)
class Block:
    """What one judge (or the scoring itself) says of a run."""

    judge: str
    groups: PageTable
    failures: PageTable
    failures_left: int
    gain: str
    curve: Chart | None = None
    thresholds: PageTable | None = None


@dataclass(frozen=True)
class RunView:
    """A run as the page shows it; `left_out` units have no section."""

    number: int
    name: str
    remarks: tuple[str, ...]
    blocks: tuple[Block, ...]
    tools: PageTable | None
    errors: PageTable | None
    errors_left: int
    causes: PageTable | None
    tasks: PageTable
    tasks_left: int
    sections: tuple[AtomicSection | WorkflowSection, ...]
    left_out: int


def view_run(number: int, run: RunMaterial, *, most: int, wanted: Collection[str] = ()) -> RunView:
    """The run with sections for `most` units: those that are wanted, then the worst."""
    found = _failures(run)
    keys = [(unit.task.id, unit.epoch) for unit in run.units]
    shown = _chosen(keys, found, most, wanted)
    tools = run.summary.scores.tools
    kinds = error_kinds(run.units).most_common()
    listed = keys[:TASKS_LISTED]
    return RunView(
        number=number,
        name=run.name,
        remarks=tuple(run.remarks),
        blocks=tuple(_blocks(number, run, found, shown)),
        tools=plain(f"Tool calls of {run.name}", tool_table(tools), (0, 5)) if tools else None,
        errors=_errors(run.name, kinds[:ERRORS_SHOWN]) if kinds else None,
        errors_left=len(kinds[ERRORS_SHOWN:]),
        causes=_causes(run) if run.causes else None,
        tasks=_task_table(number, run, listed, shown),
        tasks_left=len(keys) - len(listed),
        sections=tuple(view_sections(number, run, shown)),
        left_out=len(keys) - len(shown),
    )


def _failures(run: RunMaterial) -> list[tuple[str, list[Failure]]]:
    """The failures as every judge sees them; GTA-Atomic needs none."""
    if isinstance(run, AtomicRun):
        return [("", unit_failures(run.summary.scores, run.units))]
    threshold = run.summary.scores.leaf_threshold
    return [
        (judge.judge, leaf_failures(judge, run.units, threshold=threshold))
        for judge in run.summary.scores.judges
    ]


def _chosen(
    keys: Sequence[UnitKey],
    found: Sequence[tuple[str, Sequence[Failure]]],
    most: int,
    wanted: Collection[str],
) -> set[UnitKey]:
    first = [key for key in keys if key[0] in wanted]
    failed = [(one.task, one.epoch) for _, failures in found for one in failures]
    order = list(dict.fromkeys((*first, *failed, *keys)))
    return set(order[: max(most, len(first))])


def _blocks(
    number: int,
    run: RunMaterial,
    found: Sequence[tuple[str, Sequence[Failure]]],
    shown: set[UnitKey],
) -> Iterator[Block]:
    for place, (judge, failures) in enumerate(found):
        table = PageTable(
            f"Failures of {run.name}",
            ("task", "gain", "what is missing"),
            tuple(_failure_row(number, one, shown) for one in failures[:FAILURES_SHOWN]),
            (0, 2),
        )
        left, gain = len(failures[FAILURES_SHOWN:]), gain_text(run.mode)
        if isinstance(run, AtomicRun):
            yield Block(judge, atomic_groups(run), table, left, gain)
        else:
            scores = run.summary.scores.judges[place]
            thresholds = _thresholds(run.name, scores)
            groups = workflow_groups(run, scores)
            yield Block(judge, groups, table, left, gain, curve_chart(scores.curve), thresholds)


def _thresholds(name: str, judge: JudgeScores) -> PageTable:
    return PageTable(
        f"Success rates of {name} by threshold",
        ("threshold", "Leaf SR", "Root SR"),
        tuple(
            (Cell(f"{one.threshold:g}"), number_cell(one.leaf_sr), number_cell(one.root_sr))
            for one in judge.curve
        ),
        (),
    )


def _failure_row(number: int, failure: Failure, shown: set[UnitKey]) -> tuple[Cell, ...]:
    return (
        _task_cell(number, (failure.task, failure.epoch), shown),
        Cell(f"+{failure.gain:.3f}"),
        Cell(line(failure.what)),
    )


def _task_cell(number: int, key: UnitKey, shown: set[UnitKey]) -> Cell:
    return Cell(unit_name(*key), href=f"#{anchor(number, *key)}" if key in shown else "")


def _errors(name: str, kinds: Sequence[tuple[tuple[str, str], int]]) -> PageTable:
    return PageTable(
        f"Errors of {name}",
        ("where", "what", "times"),
        tuple((Cell(where), Cell(what), Cell(str(count))) for (where, what), count in kinds),
        (0, 1),
    )


def _causes(run: RunMaterial) -> PageTable:
    ordered = sorted(run.causes.items(), key=lambda item: (-item[1], item[0]))
    return PageTable(
        f"Failures of {run.name} by cause",
        ("first cause", "failures"),
        tuple((Cell(cause), Cell(f"{count:,}")) for cause, count in ordered),
    )


def _task_table(
    number: int, run: RunMaterial, keys: Sequence[UnitKey], shown: set[UnitKey]
) -> PageTable:
    if isinstance(run, AtomicRun):
        return _atomic_tasks(number, run, keys, shown)
    return _workflow_tasks(number, run, keys, shown)


def _atomic_tasks(
    number: int, run: AtomicRun, keys: Sequence[UnitKey], shown: set[UnitKey]
) -> PageTable:
    scores = {(one.task, one.epoch): one for one in run.summary.scores.units}
    units = {(unit.task.id, unit.epoch): unit for unit in run.units}
    return PageTable(
        f"Tasks of {run.name}",
        ("task", "what came of it", "request"),
        tuple(
            (
                _task_cell(number, key, shown),
                Cell(missed(scores[key], units[key]) if key in scores else "unscored"),
                Cell(line(units[key].task.request)),
            )
            for key in keys
        ),
        (0, 1, 2),
    )


def _workflow_tasks(
    number: int, run: JudgedRun, keys: Sequence[UnitKey], shown: set[UnitKey]
) -> PageTable:
    scores = run.summary.scores
    judged = {
        (judge.judge, one.task, one.epoch): one for judge in scores.judges for one in judge.tasks
    }
    units = {(unit.task.id, unit.epoch): unit for unit in run.units}
    names = tuple(judge.judge for judge in scores.judges)
    return PageTable(
        f"Tasks of {run.name}",
        ("task", *names, "delivered", "request"),
        tuple(
            (
                _task_cell(number, key, shown),
                *(_root_cell(judged[name, *key], scores.root_threshold) for name in names),
                Cell(str(len(units[key].deliverables))),
                Cell(line(units[key].task.request)),
            )
            for key in keys
        ),
        (0, 2 + len(names)),
    )


def _root_cell(task: TaskScore, threshold: float) -> Cell:
    if task.root is None:
        known = sum(leaf.value is not None for leaf in task.leaves)
        return Cell("unscored", f"{known} of {len(task.leaves)} leaves", state="unscored")
    state = "passed" if succeeds(task.root, threshold) else "failed"
    return Cell(score_text(task.root), state=state)
