"""The HTML report of runs, which is one file without scripts, other files or network access."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final

from gta_bench.errors import format_count
from gta_bench.judge_quality.panel import (
    TEXT_COLUMNS,
    UNSTABLE_TEXT_COLUMNS,
    has_repeated_scores,
    panel_table,
    unstable_table,
    unstable_title,
)
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.table import LEAF_SR, ROOT_SR
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure
from gta_bench.records.leaderboard import CANARY
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import JudgeScores, TaskScore
from gta_bench.reports.gains import (
    Losses,
    describe_missed,
    gain_text,
    leaf_losses,
    unit_losses,
)
from gta_bench.reports.summary import example, first_examples, remarks, tool_table
from gta_bench.reports.tables import line
from gta_bench.reports.workflow_summary import (
    CEILING_TEXT_COLUMNS,
    CEILING_TITLE,
    ceiling_table,
)
from gta_bench.reports.workflow_summary import remarks as workflow_remarks
from gta_bench.runs.logs import pick_units
from gta_bench.web.boards import atomic_groups, view_boards, workflow_groups
from gta_bench.web.charts import draw_curve
from gta_bench.web.material import (
    AtomicRun,
    JudgedRun,
    RunMaterial,
    UnitScan,
    anchor,
    list_facts,
    run_mode,
    scan_units,
)
from gta_bench.web.pages import (
    PageCell,
    PageTable,
    number_cell,
    page_table,
    render,
    style_values,
)
from gta_bench.web.sections import unit_name, view_sections
from gta_bench.web.task_view import score_state, score_text

# The number of sections on a page; the units that lost most in each run get one.
SECTIONS: Final = 150
FAILURES_SHOWN: Final = 30
# Leaves that are ranked for each unit that may get a section; no task has as many.
LEAVES_RANKED: Final = 50
ERRORS_SHOWN: Final = 12
TASKS_LISTED: Final = 300
_Link = Callable[[UnitKey], str]


def render_report(
    runs: Sequence[RunMaterial], *, wanted: Collection[str] = (), most: int = SECTIONS
) -> str:
    """Return the page; `wanted` tasks always get a section."""
    share = most // len(runs)
    return render(
        "report.html",
        **style_values(),
        canary=CANARY,
        boards=view_boards(runs),
        runs=[
            _view_run(number, run, most=share, wanted=wanted)
            for number, run in enumerate(runs, start=1)
        ],
    )


def _view_run(
    number: int, run: RunMaterial, *, most: int, wanted: Collection[str]
) -> dict[str, object]:
    """Return a run with sections for `most` units: the wanted ones, then those that lost most."""
    name, tools = run.summary.name, run.summary.scores.tools
    scan = scan_units(run)
    losses = _losses(run, scan, most)
    keys = scan.keys
    first = [key for key in keys if key[0] in wanted]
    worst = ((one.task, one.epoch) for _, lost in losses for one in lost.worst)
    ranked = dict.fromkeys(chain(first, worst, islice(keys, most)))
    shown = set(islice(ranked, max(most, len(first))))
    ordered = dict.fromkeys(key for key in keys if key in shown)

    def link(key: UnitKey) -> str:
        return f"#{anchor(number, *key)}" if key in shown else ""

    errors = [
        (PageCell(where), PageCell(what), PageCell(str(count)))
        for (where, what), count in scan.errors.most_common()
    ]
    heading = ("where", "what", "times")
    panel = None if isinstance(run, AtomicRun) else run.summary.panel
    ceilings = [] if isinstance(run, AtomicRun) else [run.summary]
    return {
        "number": number,
        "name": name,
        "facts": list(list_facts(run.summary.manifest, run.summary.scores.scoring_version)),
        "remarks": _remarks(run),
        "blocks": [_block(run, scan, index, *found, link) for index, found in enumerate(losses)],
        "tools": page_table(f"Tool calls of {name}", tool_table(tools), (0, 5)) if tools else None,
        "errors": PageTable(f"Errors of {name}", heading, tuple(errors[:ERRORS_SHOWN]), (0, 1)),
        "errors_left": len(errors[ERRORS_SHOWN:]),
        "tasks": _task_table(run, keys[:TASKS_LISTED], link),
        "tasks_left": len(keys[TASKS_LISTED:]),
        "sections": list(view_sections(number, run, ordered)),
        "left_out": len(keys) - len(shown),
        "ceiling": page_table(CEILING_TITLE, ceiling_table(ceilings), CEILING_TEXT_COLUMNS)
        if any(one.ceilings for one in ceilings)
        else None,
        "panel": page_table(f"Agreement of the judges of {name}", panel_table(panel), TEXT_COLUMNS)
        if panel is not None and has_repeated_scores(panel)
        else None,
        "unstable": page_table(unstable_title(panel), unstable_table(panel), UNSTABLE_TEXT_COLUMNS)
        if panel is not None and panel.unstable
        else None,
    }


def _remarks(run: RunMaterial) -> list[str]:
    return remarks(run.summary) if isinstance(run, AtomicRun) else workflow_remarks(run.summary)


def _losses(run: RunMaterial, scan: UnitScan, most: int) -> list[tuple[str, Losses]]:
    """Return the losses according to each judge; GTA-Atomic needs no judge."""
    shown = max(most, FAILURES_SHOWN)
    if isinstance(run, AtomicRun):
        pick = partial(pick_units, run.units)
        return [("", unit_losses(run.summary.scores, pick, most=shown))]
    threshold = run.summary.scores.leaf_threshold
    ranked = shown * LEAVES_RANKED
    return [
        (judge.judge, leaf_losses(judge, scan.trees, threshold=threshold, most=ranked))
        for judge in run.summary.scores.judges
    ]


def _block(
    run: RunMaterial, scan: UnitScan, index: int, judge: str, losses: Losses, link: _Link
) -> dict[str, object]:
    """Return groups, success rates and failures of a run according to one judge."""
    name = run.summary.name
    rows = tuple(
        (
            _task_cell((one.task, one.epoch), link),
            PageCell(f"+{one.gain:.2f}"),
            PageCell(line(one.what), ", ".join(one.causes)),
        )
        for one in losses.worst[:FAILURES_SHOWN]
    )
    heading = ("task", "gain", "what is missing, and its first cause")
    block: dict[str, object] = {
        "judge": judge,
        "losses": PageTable(f"Failures of {name}", heading, rows, (0, 2)),
        "losses_left": max(0, losses.number - FAILURES_SHOWN),
        "gain": gain_text(run_mode(run)),
    }
    if isinstance(run, AtomicRun):
        causes = _cause_table(name, run.summary.scores.failures, link)
        return block | {"groups": atomic_groups(run, scan), "causes": causes, "curve": None}
    scores = run.summary.scores.judges[index]
    return block | {
        "groups": workflow_groups(run, scores),
        "causes": _cause_table(name, scores.failures, link),
        "curve": draw_curve(scores.curve),
        "thresholds": _threshold_table(name, scores),
    }


def _threshold_table(name: str, judge: JudgeScores) -> PageTable:
    rows = tuple(
        (PageCell(f"{one.threshold:g}"), number_cell(one.leaf_sr), number_cell(one.root_sr))
        for one in judge.curve
    )
    heading = ("threshold", LEAF_SR.label, ROOT_SR.label)
    return PageTable(f"Success rates of {name} by threshold", heading, rows, ())


def _cause_table(name: str, failures: Sequence[Failure], link: _Link) -> PageTable:
    """Count the first causes, each with an example that has a section if possible."""
    linked = (one for one in failures if link((one.task, one.epoch)))
    examples = first_examples(failures) | first_examples(linked)
    counts = count_failures(failures)
    whole = sum(count.failures for count in counts)
    rows = []
    for count in counts:
        seen = examples[count.cause]
        rows.append(
            (
                PageCell(count.cause),
                PageCell(f"{count.failures:,}"),
                PageCell(f"{100 * count.failures / whole:.1f} %"),
                PageCell(f"{count.tasks:,}"),
                PageCell(example(seen), href=link((seen.task, seen.epoch))),
            )
        )
    heading = ("first cause", "failures", "share", "tasks", "for example")
    return PageTable(f"Failures of {name} by cause", heading, tuple(rows), (0, 4))


def _task_table(run: RunMaterial, keys: Sequence[UnitKey], link: _Link) -> PageTable:
    heading: tuple[str, ...] = ("outcome",)
    texts: tuple[int, ...] = (0, 1, 2)
    if isinstance(run, AtomicRun):
        done = pick_units(run.units, keys)
        cells = _atomic_cells(run, done)
        requests = {key: unit.task.request for key, unit in done.items()}
    else:
        heading = (*(judge.judge for judge in run.summary.scores.judges), "files")
        texts = (0, 1 + len(heading))
        work = pick_units(run.units, keys)
        cells = _workflow_cells(run, work)
        requests = {key: unit.task.request for key, unit in work.items()}
    rows = tuple(
        (_task_cell(key, link), *cells[key], PageCell(line(requests[key]))) for key in keys
    )
    return PageTable(f"Tasks of {run.summary.name}", ("task", *heading, "request"), rows, texts)


def _task_cell(key: UnitKey, link: _Link) -> PageCell:
    return PageCell(unit_name(*key), href=link(key))


def _atomic_cells(
    run: AtomicRun, units: Mapping[UnitKey, AtomicUnit]
) -> dict[UnitKey, tuple[PageCell, ...]]:
    scores = {
        (one.task, one.epoch): one
        for one in run.summary.scores.units
        if (one.task, one.epoch) in units
    }
    return {
        key: (PageCell(describe_missed(scores[key], unit) if key in scores else "unscored"),)
        for key, unit in units.items()
    }


def _workflow_cells(
    run: JudgedRun, units: Mapping[UnitKey, WorkflowUnit]
) -> dict[UnitKey, tuple[PageCell, ...]]:
    """Return the root score by each judge, and the number of deliverables."""
    scores = run.summary.scores
    cells: dict[UnitKey, list[PageCell]] = {}
    for judge in scores.judges:
        for task in judge.tasks:
            if (task.task, task.epoch) in units:
                cell = _root_cell(task, scores.root_threshold)
                cells.setdefault((task.task, task.epoch), []).append(cell)
    return {
        key: (*cells.get(key, ()), PageCell(str(len(unit.deliverables))))
        for key, unit in units.items()
    }


def _root_cell(task: TaskScore, threshold: float) -> PageCell:
    if task.root is None:
        known = sum(leaf.value is not None for leaf in task.leaves)
        leaves = format_count(len(task.leaves), "leaf", "leaves")
        return PageCell("unscored", f"{known} of {leaves}", state="unscored")
    return PageCell(score_text(task.root), state=score_state(task.root, threshold))
