"""The HTML report of runs: one file that loads nothing and can be read without its script."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from gta_bench.judge_quality.panel import (
    TEXT_COLUMNS,
    UNSTABLE_TEXT_COLUMNS,
    has_repeated_scores,
    panel_table,
    unstable_table,
    unstable_title,
)
from gta_bench.metrics import table
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.table import LEAF_SR, ROOT_SR
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure
from gta_bench.records.leaderboard import CANARY
from gta_bench.records.run import RunMode
from gta_bench.records.workflow_scores import JudgeScores
from gta_bench.reports.findings import NextStep, list_next_steps
from gta_bench.reports.gains import Losses, gain_text, leaf_losses, unit_losses
from gta_bench.reports.summary import example, first_examples, remarks, tool_table
from gta_bench.reports.tables import line
from gta_bench.reports.workflow_summary import (
    CEILING_TEXT_COLUMNS,
    CEILING_TITLE,
    ceiling_table,
)
from gta_bench.reports.workflow_summary import remarks as workflow_remarks
from gta_bench.runs.logs import pick_units
from gta_bench.web.boards import (
    TITLES,
    GroupEstimates,
    atomic_groups,
    group_table,
    view_boards,
    workflow_groups,
)
from gta_bench.web.charts import draw_curve
from gta_bench.web.components import IntervalPlot, PlotPoint, plot_intervals
from gta_bench.web.first_screen import Headline, find_headlines, view_comparison, view_first_screen
from gta_bench.web.material import (
    AtomicRun,
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
    script_values,
    style_values,
)
from gta_bench.web.sections import PictureBudget, unit_name, view_sections
from gta_bench.web.task_list import (
    ROWS_SHOWN,
    STATES,
    ListedUnit,
    TaskList,
    describe_list,
    list_units,
    pack_rows,
    view_row,
)

# The number of cards on a page; the worst units of each run get one.
SECTIONS: Final = 150
FAILURES_SHOWN: Final = 30
# Leaves that are ranked for each unit that may get a card; no task has as many.
LEAVES_RANKED: Final = 50
ERRORS_SHOWN: Final = 12
# The metric of the plots of groups: leaves are more than tasks, so their intervals are narrower.
GROUP_METRIC: Final[Mapping[RunMode, str]] = {
    "workflow": LEAF_SR.name,
    "end-to-end": table.primary("end-to-end").name,
    "step": table.primary("step").name,
}
_Link = Callable[[UnitKey], str]


def render_report(
    runs: Sequence[RunMaterial], *, wanted: Collection[str] = (), most: int = SECTIONS
) -> str:
    """Return the page; `wanted` tasks always get a card."""
    share = most // len(runs)
    headlines = [find_headlines(run) for run in runs]
    budget = PictureBudget()
    return render(
        "report.html",
        **style_values("report.css"),
        **script_values("report.js"),
        canary=CANARY,
        comparisons=list(_compare(runs, headlines)) if len(runs) > 1 else [],
        boards=view_boards(runs),
        runs=[
            _view_run(number, run, found, most=share, wanted=wanted, budget=budget)
            for number, (run, found) in enumerate(zip(runs, headlines, strict=True), start=1)
        ],
    )


def _compare(
    runs: Sequence[RunMaterial], headlines: Sequence[Sequence[Headline]]
) -> Iterator[object]:
    """Yield the comparison of the runs of each mode."""
    for mode, title in TITLES.items():
        own = [
            (number, run, found)
            for number, (run, found) in enumerate(zip(runs, headlines, strict=True), start=1)
            if run_mode(run) == mode
        ]
        if own:
            numbered = [(number, run) for number, run, _ in own]
            yield view_comparison(title, numbered, [found for *_, found in own])


def _view_run(
    number: int,
    run: RunMaterial,
    headlines: Sequence[Headline],
    *,
    most: int,
    wanted: Collection[str],
    budget: PictureBudget,
) -> dict[str, object]:
    """Return a run with cards for `most` units: the wanted ones, then the worst."""
    scan = scan_units(run)
    losses = _losses(run, scan, most)
    found = list_units(run, scan, _gains(run, losses))
    cards = [one for one in found.units if one.key[0] in wanted]
    chosen = {one.key for one in cards}
    cards += [one for one in found.units if one.key not in chosen][: max(0, most - len(cards))]
    cards.sort(key=lambda one: one.rank)
    shown = {one.key for one in cards}

    def link(key: UnitKey) -> str:
        return f"#{anchor(number, *key)}" if key in shown else ""

    first = losses[0][1] if losses else Losses((), 0)
    summary, mode = run.summary, run_mode(run)
    steps = list_next_steps(
        run.path or summary.name,
        summary.manifest,
        headlines[0].finding,
        next(iter(first.worst), None),
        judge=headlines[0].judge,
        gain=gain_text(mode),
    )
    return {
        "number": number,
        "name": summary.name,
        "screen": view_first_screen(number, run, headlines),
        "worst": _find_worst(cards, scan, link),
        "next": [_view_step(step, link) for step in steps],
        "blocks": [_block(run, scan, index, *one, link) for index, one in enumerate(losses)],
        "facts": list(list_facts(summary.manifest, summary.scores.scoring_version)),
        "remarks": _remarks(run),
        **_view_list(number, run, found, cards, scan, budget),
        **_view_tools(run, scan),
        **_view_judging(run),
    }


def _view_step(step: NextStep, link: _Link) -> dict[str, object]:
    href = link((step.task, step.epoch)) if step.task else ""
    return {"step": step, "href": href}


def _find_worst(cards: Sequence[ListedUnit], scan: UnitScan, link: _Link) -> tuple[str, str] | None:
    """Return name and link of the worst unit that delivered a file."""
    for one in cards:
        if one.state == STATES[0] and one.key in scan.work and scan.work[one.key].kinds:
            return unit_name(*one.key), link(one.key)
    return None


def _view_list(
    number: int,
    run: RunMaterial,
    found: TaskList,
    cards: Sequence[ListedUnit],
    scan: UnitScan,
    budget: PictureBudget,
) -> dict[str, object]:
    """Return the list of tasks: cards, rows without one, and rows that the script shows."""
    keys = [one.key for one in cards]
    opened = {*keys}
    rest = [one for one in found.units if one.key not in opened]
    plain = rest[: max(0, ROWS_SHOWN - len(cards))]
    sections = {one["key"]: one for one in view_sections(run, keys, budget=budget)}
    return {
        "cards": [
            (view_row(number, one, found, scan), sections[one.key])
            for one in cards
            if one.key in sections
        ],
        "plain": [view_row(number, one, found, scan) for one in plain],
        "packed": pack_rows(rest[len(plain) :], found, scan),
        "packed_left": len(rest) - len(plain),
        "counts": [(state, found.counts.get(state, 0)) for state in STATES],
        "all": sum(found.counts.values()),
        "cause_names": found.cause_names(),
        "kinds": sorted({small for _, small in scan.about.values()}),
        "list_note": describe_list(found, len(cards)),
    }


def _view_tools(run: RunMaterial, scan: UnitScan) -> dict[str, object]:
    name, tools = run.summary.name, run.summary.scores.tools
    errors = [
        (PageCell(where), PageCell(what), PageCell(str(count)))
        for (where, what), count in scan.errors.most_common()
    ]
    heading = ("where", "what", "times")
    return {
        "tools": page_table(f"Tool calls of {name}", tool_table(tools), (0, 5)) if tools else None,
        "errors": PageTable(f"Errors of {name}", heading, tuple(errors[:ERRORS_SHOWN]), (0, 1)),
        "errors_left": len(errors[ERRORS_SHOWN:]),
    }


def _view_judging(run: RunMaterial) -> dict[str, object]:
    """Return what is known about the judges themselves."""
    name = run.summary.name
    panel = None if isinstance(run, AtomicRun) else run.summary.panel
    ceilings = [] if isinstance(run, AtomicRun) else [run.summary]
    return {
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


def _gains(run: RunMaterial, losses: Sequence[tuple[str, Losses]]) -> dict[UnitKey, float]:
    """Return the gains by which the units of a step run are ordered; others have a value."""
    if run_mode(run) != "step":
        return {}
    return {(one.task, one.epoch): one.gain for _, found in losses for one in found.worst}


def _block(
    run: RunMaterial, scan: UnitScan, index: int, judge: str, losses: Losses, link: _Link
) -> dict[str, object]:
    """Return groups, success rates and failures of a run according to one judge."""
    name, mode = run.summary.name, run_mode(run)
    rows = tuple(
        (
            _task_cell((one.task, one.epoch), link),
            PageCell(f"+{one.gain:.2f}"),
            PageCell(line(one.what), ", ".join(one.causes)),
        )
        for one in losses.worst[:FAILURES_SHOWN]
    )
    heading = ("task", "gain", "what is missing, and its first cause")
    groups = (
        atomic_groups(run, scan)
        if isinstance(run, AtomicRun)
        else workflow_groups(run, run.summary.scores.judges[index])
    )
    block: dict[str, object] = {
        "judge": judge,
        "losses": PageTable(f"Failures of {name}", heading, rows, (0, 2)),
        "losses_left": max(0, losses.number - FAILURES_SHOWN),
        "gain": gain_text(mode),
        "groups": group_table(name, mode, groups),
        "plots": list(_plot_groups(groups, GROUP_METRIC[mode])),
        "about": _describe_groups(mode),
    }
    if isinstance(run, AtomicRun):
        causes = _cause_table(name, run.summary.scores.failures, link)
        return block | {"causes": causes, "curve": None}
    scores = run.summary.scores.judges[index]
    return block | {
        "causes": _cause_table(name, scores.failures, link),
        "curve": draw_curve(scores.curve, threshold=run.summary.scores.leaf_threshold),
        "thresholds": _threshold_table(name, scores),
    }


def _describe_groups(mode: RunMode) -> str:
    label = table.label(GROUP_METRIC[mode])
    small = "scored leaves of all leaves" if mode == "workflow" else "tasks that have this metric"
    return f"{label} with its 95 % interval; small figures are {small}."


def _plot_groups(
    groups: Sequence[GroupEstimates], metric: str
) -> Iterator[tuple[str, IntervalPlot]]:
    """Yield a plot for each way to group units; all have the same axis."""
    for by in dict.fromkeys(one.by for one in groups):
        points = [
            PlotPoint(
                one.name,
                found.value,
                found.low,
                found.high,
                f"{found.value:.1f}",
                one.parts or f"n {found.n}",
                mark="own",
            )
            for one in groups
            if one.by == by and (found := one.scores.get(metric)) is not None
        ]
        if points:
            yield f"By {by}", plot_intervals(points, end=100.0)


def _threshold_table(name: str, judge: JudgeScores) -> PageTable:
    rows = tuple(
        (PageCell(f"{one.threshold:g}"), number_cell(one.leaf_sr), number_cell(one.root_sr))
        for one in judge.curve
    )
    heading = ("threshold", LEAF_SR.label, ROOT_SR.label)
    return PageTable(f"Success rates of {name} by threshold", heading, rows, ())


def _cause_table(name: str, failures: Sequence[Failure], link: _Link) -> PageTable:
    """Count the first causes, each with an example that has a card if possible."""
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


def _task_cell(key: UnitKey, link: _Link) -> PageCell:
    return PageCell(unit_name(*key), href=link(key))
