"""`gta report`: runs side by side, in the terminal, as Markdown, JSON or one HTML page."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
from pydantic import JsonValue

from gta_bench.cli.options import FILE, NEW_FOLDER, RUN, STORE_PATH
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.decisions.controls import (
    Compared,
    compare_controls,
    effect_remarks,
    effect_table,
    measure_change,
    measure_noise,
    task_table,
)
from gta_bench.errors import UsageError
from gta_bench.judge_quality.panel import (
    TEXT_COLUMNS,
    UNSTABLE_TEXT_COLUMNS,
    has_repeated_scores,
    panel_report,
    panel_table,
    unstable_table,
    unstable_title,
)
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.labels import combine_labels
from gta_bench.metrics.panel import pack_leaves
from gta_bench.packages import install_command, missing_packages, require_packages
from gta_bench.records.ceiling import Ceiling, CeilingScore
from gta_bench.records.failures import Failure
from gta_bench.records.run import Mode, RunSpec
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports import workflow_summary
from gta_bench.reports.summary import (
    SCORINGS,
    RunSummary,
    failure_table,
    metrics,
    remarks,
    score_table,
    select_scores,
    tool_table,
)
from gta_bench.reports.tables import Table, markdown
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.runs.directory import (
    MANIFEST,
    log_folder,
    read_floors,
    read_manifest,
    read_record,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.labels import read_adjudication, read_labels
from gta_bench.runs.status import require_scores
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_judges, read_unit_rows

if TYPE_CHECKING:
    # Intervals need scipy, which is an extra.
    from gta_bench.reports.certainty import RunMetrics

# The folder of the table of runs in an export.
RUNS = "runs"
CONTROLS = "Solved without a control and with it (strict)"
INTERVALS = "How sure the scores are (strict, over tasks)"
BUDGET = "Where the uncertainty comes from (parts of the variance)"
FAILURES = "What failed, by its first cause (strict)"
TITLES: dict[Mode, str] = {
    "step": "GTA-Atomic, step by step",
    "end-to-end": "GTA-Atomic, end to end",
}

Summary = RunSummary | WorkflowSummary


class Titled(NamedTuple):
    """A table with its title; columns in `words` are left-aligned, the others right-aligned."""

    title: str
    table: Table
    words: tuple[int, ...]


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    help="Output format on stdout.",
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    help="Print the tree of this Workflow task instead, with scores, reasons and evidence; `all` "
    "for every task; repeatable.",
)
@click.option(
    "--html",
    type=STORE_PATH,
    help="Write one HTML page instead: intervals, groups, costs, failures, traces, evidence.",
)
@click.option(
    "--figures",
    type=NEW_FOLDER,
    help="Write figures for a paper into this folder instead: SVG, PDF, and their numbers as CSV.",
)
@click.option(
    "--ceiling",
    "ceilings",
    multiple=True,
    type=FILE,
    help="A ceiling.json of `gta judge ceiling`: show it beside the scores of its judge, with Leaf "
    "SR corrected for the judge's errors; repeatable.",
)
def report(
    runs: tuple[StorePath, ...],
    shape: Literal["table", "markdown", "json"],
    tasks: tuple[str, ...],
    html: StorePath | None,
    figures: Path | None,
    ceilings: tuple[Path, ...],
) -> None:
    """Show the scores of RUNS: both scorings, how many units have a score, usage and cost.

    RUNS are run folders, or folders of tables that `gta results export` wrote.
    """
    if html is not None or figures is not None or tasks:
        # Units are read from the logs, which needs the evaluation engine.
        from gta_bench.cli.view import write_trees
        from gta_bench.web.reading import write_paper_figures, write_report_page

        if html is not None:
            write_report_page(runs, html, ceilings=read_ceilings(ceilings))
            say(f"Open {html}")
        if figures is not None:
            for file in write_paper_figures(runs, figures):
                click.echo(file)
        if tasks:
            write_trees(runs, tasks)
    elif shape == "json":
        summaries = _read_summaries(runs, ceilings)
        effects = {one.run.name: one for one in compare_controls(_select_atomic(summaries))}
        write_json([_as_json(one, effects.get(one.name)) for one in summaries])
    elif shape == "markdown":
        click.echo(report_markdown(runs, ceilings))
    else:
        write_reports(runs, ceilings)


def read_ceilings(files: Sequence[Path]) -> list[Ceiling]:
    """Read the ceilings of judges."""
    if files:
        require_packages("A report with ceilings", "scipy", extra="report")
    return [read_record(file, Ceiling, "Run `gta judge ceiling` again.") for file in files]


def write_reports(folders: Sequence[StorePath], ceilings: Sequence[Path] = ()) -> None:
    """Print the runs as tables, and the remarks on them."""
    summaries = _read_summaries(folders, ceilings)
    runs = _collect_metrics(summaries)
    for number, titled in enumerate(_tables(summaries, runs)):
        click.echo(f"\n{titled.title}" if number else titled.title)
        write_table(titled.table, titled.words)
    for name, remark in _all_remarks(summaries, runs):
        say(f"{name}: {remark}" if name else remark)


def report_markdown(folders: Sequence[StorePath], ceilings: Sequence[Path] = ()) -> str:
    """Return the runs as a Markdown page."""
    summaries = _read_summaries(folders, ceilings)
    runs = _collect_metrics(summaries)
    parts = ["# Report", ""]
    for titled in _tables(summaries, runs):
        parts += [f"## {titled.title}", "", markdown(titled.table), ""]
    for one in compare_controls(_select_atomic(summaries)):
        if one.effect is not None:
            heading = f"### `{one.run.name}` ({one.control}), task by task"
            parts += [heading, "", markdown(task_table(one.effect)), ""]
    parts += ["## What it took, and what to know", ""]
    for name, remark in _all_remarks(summaries, runs):
        parts.append(f"- `{name}`: {remark}" if name else f"- {remark}")
    return "\n".join(parts)


def _all_remarks(
    summaries: Sequence[Summary], runs: Sequence["RunMetrics"] | None
) -> Iterator[tuple[str, str]]:
    """Yield the remarks on each run with its name, and those on all runs without a name."""
    for summary in summaries:
        yield from ((summary.name, remark) for remark in _remarks(summary))
    yield from (("", remark) for remark in _certainty_remarks(runs))
    for one in compare_controls(_select_atomic(summaries)):
        yield from ((one.run.name, remark) for remark in effect_remarks(one))


def _read_summaries(folders: Sequence[StorePath], files: Sequence[Path] = ()) -> list[Summary]:
    ceilings = read_ceilings(files)
    found = [summary for folder in folders for summary in _read_folder(folder, ceilings)]
    for file, one in zip(files, ceilings, strict=True):
        judges = {judge.judge for own in found if isinstance(own, WorkflowSummary)
                  for judge in own.scores.judges}  # fmt: skip
        if one.judge not in judges:
            known = ", ".join(sorted(judges)) or "none"
            raise UsageError(f"{file} is of {one.judge}, which judged no run. Judges: {known}.")
    return found


def _read_folder(folder: StorePath, ceilings: Sequence[Ceiling]) -> list[Summary]:
    """Read one run, or all runs of an export."""
    if any((folder / RUNS).glob("*.parquet")) and not (folder / MANIFEST).is_file():
        require_packages("A report of exported runs", "duckdb", extra="report")
        from gta_bench.runs.aggregation import read_export

        return [
            WorkflowSummary(run.name, run.manifest, run.scores)
            if isinstance(run.scores, WorkflowScores)
            else RunSummary(run.name, run.manifest, run.scores)
            for run in read_export(folder)
        ]
    manifest = read_manifest(folder)
    require_scores(folder)
    if manifest.spec.dataset != "workflow":
        return [RunSummary(str(folder), manifest, read_scores(folder))]
    scores = read_workflow_scores(folder)
    rows = read_unit_rows(folder)
    panel = leaves = None
    if not missing_packages("scipy"):
        leaves = pack_leaves(rows.values(), _read_units(folder, manifest.spec))
        panel = panel_report(leaves, threshold=scores.leaf_threshold)
    people = combine_labels(read_labels(folder), read_adjudication(folder), scores.leaf_threshold)
    floors = read_floors(folder)
    beside = _read_beside(folder, scores, ceilings)
    return [WorkflowSummary(str(folder), manifest, scores, floors, panel, leaves, people, beside)]


def _read_beside(
    folder: StorePath, scores: WorkflowScores, ceilings: Sequence[Ceiling]
) -> tuple[CeilingScore, ...]:
    """Return the scores of a run beside the ceilings of its judges."""
    if not ceilings:
        return ()
    from gta_bench.reports.ceilings import compare_with_ceilings

    return compare_with_ceilings(scores, ceilings, read_judges(folder))


def _read_units(folder: StorePath, spec: RunSpec) -> Iterator[WorkflowUnit]:
    # Imports Inspect, which takes longer than most reports.
    from gta_bench.runs.logs import UnitStream

    yield from UnitStream(log_folder(folder), spec.tasks, spec.epochs, WorkflowUnit)


def _tables(summaries: Sequence[Summary], runs: Sequence["RunMetrics"] | None) -> Iterator[Titled]:
    atomic = _select_atomic(summaries)
    for mode, title in TITLES.items():
        table = score_table(atomic, mode)
        if table.rows:
            yield Titled(title, table, (0, 1, 2, len(table.heading) - 1))
    yield from _workflow_tables([one for one in summaries if isinstance(one, WorkflowSummary)])
    if runs is not None:
        yield from _certainty_tables(summaries, runs)
    for summary in summaries:
        if summary.scores.tools:
            table = tool_table(summary.scores.tools)
            yield Titled(f"Tool calls of {summary.name}", table, (0, 5))
    failures = [pair for summary in summaries for pair in _failures(summary)]
    if any(failed for _, failed in failures):
        yield Titled(FAILURES, failure_table(failures), (0, 1, 5))
    compared = compare_controls(atomic)
    if any(one.effect is not None for one in compared):
        yield Titled(CONTROLS, effect_table(compared), (0, 1))


def _collect_metrics(summaries: Sequence[Summary]) -> "list[RunMetrics] | None":
    """Read the metrics of all runs, unit by unit; None if scipy is missing."""
    if missing_packages("scipy"):
        return None
    from gta_bench.reports.certainty import collect_metrics

    return list(collect_metrics(summaries))


def _certainty_tables(
    summaries: Sequence[Summary], runs: Sequence["RunMetrics"]
) -> Iterator[Titled]:
    from gta_bench.judge_quality.budget import budget_table, budgets
    from gta_bench.reports.certainty import REPEATS, collect_repeats, interval_table, repeat_table

    table = interval_table(runs)
    if table.rows:  # an export has no units to compute intervals from
        yield Titled(INTERVALS, table, (0, 1, 2))
        yield Titled(BUDGET, budget_table(budgets(summaries, runs)), (0, 1, 2))
    if again := collect_repeats(runs):
        yield Titled(REPEATS, repeat_table(again), (0,))


def _certainty_remarks(runs: Sequence["RunMetrics"] | None) -> list[str]:
    if runs is None:
        return [f"for intervals of these scores: {install_command('report')}"]
    from gta_bench.reports.certainty import collect_repeats, describe_broken, repeat_remarks

    return [*describe_broken(runs), *repeat_remarks(collect_repeats(runs))]


def _select_atomic(summaries: Sequence[Summary]) -> list[RunSummary]:
    return [summary for summary in summaries if isinstance(summary, RunSummary)]


def _workflow_tables(summaries: Sequence[WorkflowSummary]) -> Iterator[Titled]:
    if summaries:
        table = workflow_summary.score_table(summaries)
        yield Titled("GTA-Workflow", table, (0, 1, 2, len(table.heading) - 1))
    if any(summary.ceilings for summary in summaries):
        table = workflow_summary.ceiling_table(summaries)
        title, words = workflow_summary.CEILING_TITLE, workflow_summary.CEILING_TEXT_COLUMNS
        yield Titled(title, table, words)
    for summary in summaries:
        for judge in summary.scores.judges:
            of = f"{summary.name}, judged by {judge.judge}"
            yield Titled(f"Groups of {of}", workflow_summary.group_table(judge), (0, 1))
            yield Titled(f"Thresholds of {of}", workflow_summary.curve_table(judge), (0,))
        panel = summary.panel
        if panel is not None and has_repeated_scores(panel):
            yield Titled(f"Judges of {summary.name}", panel_table(panel), TEXT_COLUMNS)
            if panel.unstable:
                title = f"{summary.name}: {unstable_title(panel)}"
                yield Titled(title, unstable_table(panel), UNSTABLE_TEXT_COLUMNS)


def _failures(summary: Summary) -> list[tuple[str, Sequence[Failure]]]:
    """Return what failed in a run, by name; a Workflow run has one name for each judge."""
    if isinstance(summary, RunSummary):
        return [(summary.name, summary.scores.failures)]
    return [
        (f"{summary.name}, judged by {judge.judge}", judge.failures)
        for judge in summary.scores.judges
    ]


def _remarks(summary: Summary) -> list[str]:
    if isinstance(summary, RunSummary):
        return remarks(summary)
    return workflow_summary.remarks(summary)


def _badges(summary: Summary) -> Iterable[str]:
    """Return the badges of a run, over all judges."""
    if isinstance(summary, RunSummary):
        return summary.badges
    names = [None, *(judge.judge for judge in summary.scores.judges)]
    return dict.fromkeys(badge for name in names for badge in summary.badges(name))


def _as_json(summary: Summary, compared: Compared | None) -> dict[str, JsonValue]:
    runs = _collect_metrics([summary])
    common: dict[str, JsonValue] = {
        "run": summary.name,
        "manifest": summary.manifest.model_dump(mode="json"),
        "badges": list(_badges(summary)),
        "remarks": [*_remarks(summary), *_certainty_remarks(runs)],
        **_certainty_json(runs),
        "failure_counts": [
            {
                "of": name,
                "causes": [one.model_dump(mode="json") for one in count_failures(failures)],
            }
            for name, failures in _failures(summary)
        ],
    }
    if isinstance(summary, WorkflowSummary):
        floors = [floor.model_dump(mode="json") for floor in summary.floors.rows]
        panel = summary.panel.model_dump(mode="json") if summary.panel else None
        scored = summary.scores.model_dump(mode="json")
        ceilings = [one.model_dump(mode="json") for one in summary.ceilings]
        return {**common, **scored, "floors": floors, "ceilings": ceilings, "panel": panel}
    scores = summary.scores
    return {
        **common,
        **scores.model_dump(mode="json", exclude={"units", "strict", "compat"}),
        **{
            scoring: {**metrics(scores, scoring), "n": select_scores(scores, scoring).n}
            for scoring in SCORINGS
        },
        "control_effect": None if compared is None else _effect_json(compared),
    }


def _certainty_json(runs: Sequence["RunMetrics"] | None) -> dict[str, JsonValue]:
    """Return the data of the interval and repeat tables; None if scipy is missing."""
    if runs is None:
        return {"intervals": None, "repeats": None}
    from gta_bench.reports.certainty import collect_repeats, intervals_json, repeats_json

    return {"intervals": intervals_json(runs), "repeats": repeats_json(collect_repeats(runs))}


def _effect_json(compared: Compared) -> dict[str, JsonValue] | None:
    effect = compared.effect
    if effect is None:
        return None
    figures = {"change": measure_change(effect), "noise_floor": measure_noise(effect)}
    return {
        **effect.model_dump(mode="json"),
        **{name: one and one.model_dump(mode="json") for name, one in figures.items()},
    }
