"""One run on a page: its groups, tools, errors and failures, and a section for every unit shown."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gta_bench.errors import counted
from gta_bench.judge_quality.panel import (
    UNSTABLE_WORDS,
    WORDS,
    panel_table,
    says_something,
    unstable_table,
    unstable_title,
)
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.metrics.table import LEAF_SR, ROOT_SR
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure, FailureCount
from gta_bench.records.run import RunManifest
from gta_bench.records.workflow_scores import JudgeScores, TaskScore
from gta_bench.reports.gains import (
    Loss,
    error_kinds,
    gain_text,
    leaf_losses,
    missed,
    unit_losses,
)
from gta_bench.reports.summary import example, tool_table
from gta_bench.reports.tables import line
from gta_bench.web.boards import atomic_groups, workflow_groups
from gta_bench.web.cells import PageCell, PageTable, number_cell, plain
from gta_bench.web.charts import Chart, curve_chart
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial, anchor
from gta_bench.web.sections import (
    AtomicSection,
    WorkflowSection,
    unit_name,
    view_sections,
)
from gta_bench.web.task_view import score_text

FAILURES_SHOWN: Final = 30
ERRORS_SHOWN: Final = 12
TASKS_LISTED: Final = 300


@dataclass(frozen=True)
class _Block:
    """What one judge (or the scoring itself) says of a run."""

    judge: str
    groups: PageTable
    causes: PageTable | None
    losses: PageTable
    losses_left: int
    gain: str
    curve: Chart | None = None
    thresholds: PageTable | None = None


@dataclass(frozen=True)
class RunView:
    """A run as the page shows it; `left_out` units have no section."""

    number: int
    name: str
    held: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    blocks: tuple[_Block, ...]
    tools: PageTable | None
    errors: PageTable | None
    errors_left: int
    tasks: PageTable
    tasks_left: int
    sections: tuple[AtomicSection | WorkflowSection, ...]
    left_out: int
    panel: PageTable | None = None
    unstable: PageTable | None = None


def view_run(number: int, run: RunMaterial, *, most: int, wanted: Collection[str] = ()) -> RunView:
    """The run with sections for `most` units: those that are wanted, then the worst."""
    found = _losses(run)
    keys = [(unit.task.id, unit.epoch) for unit in run.units]
    shown = _chosen(keys, found, most, wanted)
    tools = run.summary.scores.tools
    kinds = error_kinds(run.units).most_common()
    listed = keys[:TASKS_LISTED]
    return RunView(
        number=number,
        name=run.name,
        held=tuple(_held(run)),
        remarks=tuple(run.remarks),
        blocks=tuple(_blocks(number, run, found, shown)),
        tools=plain(f"Tool calls of {run.name}", tool_table(tools), (0, 5)) if tools else None,
        errors=_errors(run.name, kinds[:ERRORS_SHOWN]) if kinds else None,
        errors_left=len(kinds[ERRORS_SHOWN:]),
        tasks=_task_table(number, run, listed, shown),
        tasks_left=len(keys) - len(listed),
        sections=tuple(view_sections(number, run, shown)),
        left_out=len(keys) - len(shown),
        panel=_panel(run),
        unstable=_unstable(run),
    )


def _panel(run: RunMaterial) -> PageTable | None:
    panel = None if isinstance(run, AtomicRun) else run.summary.panel
    if panel is None or not says_something(panel):
        return None
    return plain(f"Agreement of the judges of {run.name}", panel_table(panel), WORDS)


def _unstable(run: RunMaterial) -> PageTable | None:
    panel = None if isinstance(run, AtomicRun) else run.summary.panel
    if panel is None or not panel.unstable:
        return None
    return plain(unstable_title(panel), unstable_table(panel), UNSTABLE_WORDS)


def _held(run: RunMaterial) -> Iterator[tuple[str, str]]:
    """What one must know to repeat the run."""
    held = run.manifest
    yield ("imported" if held.imported_from else "run"), f"{held.created:%Y-%m-%d}"
    yield "dataset", f"{held.spec.dataset} {held.dataset_digest[:12]}"
    yield "scoring version", str(run.summary.scores.scoring_version)
    yield "tools", held.spec.tools
    if held.spec.system.harness_digest is not None:
        yield "harness files", held.spec.system.harness_digest[:12]
    if held.spec.network is not None:
        yield "network", held.spec.network
    if held.spec.epochs > 1:
        yield "epochs", str(held.spec.epochs)
    yield from _growth(held)
    for name in ("gta-bench", "inspect_ai"):
        if name in held.packages:
            yield name, held.packages[name]


def _growth(held: RunManifest) -> Iterator[tuple[str, str]]:
    """When the run was extended, and by what."""
    after = (*(one.epochs for one in held.growth[1:]), held.spec.epochs)
    for one, epochs in zip(held.growth, after, strict=False):
        said = [f"tasks added: {len(one.tasks)}"] if one.tasks else []
        if epochs > one.epochs:
            said.append(f"epochs: {one.epochs} to {epochs}")
        yield "extended", f"{one.when:%Y-%m-%d}, {', '.join(said)}"


def _losses(run: RunMaterial) -> list[tuple[str, list[Loss]]]:
    """What is lost as every judge sees it; GTA-Atomic needs none."""
    if isinstance(run, AtomicRun):
        return [("", unit_losses(run.summary.scores, run.units))]
    threshold = run.summary.scores.leaf_threshold
    return [
        (judge.judge, leaf_losses(judge, run.units, threshold=threshold))
        for judge in run.summary.scores.judges
    ]


def _chosen(
    keys: Sequence[UnitKey],
    found: Sequence[tuple[str, Sequence[Loss]]],
    most: int,
    wanted: Collection[str],
) -> set[UnitKey]:
    first = [key for key in keys if key[0] in wanted]
    worst = [(one.task, one.epoch) for _, losses in found for one in losses]
    order = list(dict.fromkeys((*first, *worst, *keys)))
    return set(order[: max(most, len(first))])


def _blocks(
    number: int,
    run: RunMaterial,
    found: Sequence[tuple[str, Sequence[Loss]]],
    shown: set[UnitKey],
) -> Iterator[_Block]:
    for place, (judge, losses) in enumerate(found):
        table = PageTable(
            f"Failures of {run.name}",
            ("task", "gain", "what is missing, and its first cause"),
            tuple(_loss_row(number, one, shown) for one in losses[:FAILURES_SHOWN]),
            (0, 2),
        )
        left, gain = len(losses[FAILURES_SHOWN:]), gain_text(run.mode)
        if isinstance(run, AtomicRun):
            causes = _causes(number, run.name, run.summary.scores.failures, shown)
            yield _Block(judge, atomic_groups(run), causes, table, left, gain)
        else:
            scores = run.summary.scores.judges[place]
            yield _Block(
                judge,
                workflow_groups(run, scores),
                _causes(number, run.name, scores.failures, shown),
                table,
                left,
                gain,
                curve_chart(scores.curve),
                _thresholds(run.name, scores),
            )


def _thresholds(name: str, judge: JudgeScores) -> PageTable:
    return PageTable(
        f"Success rates of {name} by threshold",
        ("threshold", LEAF_SR.label, ROOT_SR.label),
        tuple(
            (PageCell(f"{one.threshold:g}"), number_cell(one.leaf_sr), number_cell(one.root_sr))
            for one in judge.curve
        ),
        (),
    )


def _loss_row(number: int, loss: Loss, shown: set[UnitKey]) -> tuple[PageCell, ...]:
    return (
        _task_cell(number, (loss.task, loss.epoch), shown),
        PageCell(f"+{loss.gain:.2f}"),
        PageCell(line(loss.what), ", ".join(loss.causes)),
    )


def _task_cell(number: int, key: UnitKey, shown: set[UnitKey]) -> PageCell:
    return PageCell(unit_name(*key), href=_link(number, key, shown))


def _link(number: int, key: UnitKey, shown: set[UnitKey]) -> str:
    return f"#{anchor(number, *key)}" if key in shown else ""


def _errors(name: str, kinds: Sequence[tuple[tuple[str, str], int]]) -> PageTable:
    return PageTable(
        f"Errors of {name}",
        ("where", "what", "times"),
        tuple(
            (PageCell(where), PageCell(what), PageCell(str(count)))
            for (where, what), count in kinds
        ),
        (0, 1),
    )


def _causes(
    number: int, name: str, failures: Sequence[Failure], shown: set[UnitKey]
) -> PageTable | None:
    """How often each first cause came, with an example that has a section if there is one."""
    if not failures:
        return None
    examples: dict[str, Failure] = {}
    for one in sorted(failures, key=lambda one: (one.task, one.epoch) not in shown):
        examples.setdefault(one.cause, one)

    def row(count: FailureCount) -> tuple[PageCell, ...]:
        seen = examples[count.cause]
        return (
            PageCell(count.cause),
            PageCell(f"{count.failures:,}"),
            PageCell(f"{100 * count.failures / len(failures):.1f} %"),
            PageCell(f"{count.tasks:,}"),
            PageCell(example(seen), href=_link(number, (seen.task, seen.epoch), shown)),
        )

    return PageTable(
        f"Failures of {name} by cause",
        ("first cause", "failures", "share", "tasks", "for example"),
        tuple(row(count) for count in count_failures(failures)),
        (0, 4),
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
                PageCell(missed(scores[key], units[key]) if key in scores else "unscored"),
                PageCell(line(units[key].task.request)),
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
                PageCell(str(len(units[key].deliverables))),
                PageCell(line(units[key].task.request)),
            )
            for key in keys
        ),
        (0, 2 + len(names)),
    )


def _root_cell(task: TaskScore, threshold: float) -> PageCell:
    if task.root is None:
        known = sum(leaf.value is not None for leaf in task.leaves)
        leaves = counted(len(task.leaves), "leaf", "leaves")
        return PageCell("unscored", f"{known} of {leaves}", state="unscored")
    state = "passed" if succeeds(task.root, threshold) else "failed"
    return PageCell(score_text(task.root), state=state)
