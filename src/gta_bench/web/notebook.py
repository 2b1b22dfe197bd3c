"""Datasets, runs, scores and comparisons in a notebook, made of the components of the report."""

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from markupsafe import Markup

from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.decisions.comparison_tables import (
    FLIPS_SHOWN,
    comparison_remarks,
    comparison_table,
    flip_tables,
    state_conclusion,
)
from gta_bench.metrics.table import JUDGED, TOOL_SR, label
from gta_bench.packages import missing_packages
from gta_bench.records.comparison import Comparison, Comparisons
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.summary import (
    judge_badges,
    metrics,
    run_badges,
    score_badges,
    select_scores,
    system_name,
)
from gta_bench.reports.tables import line
from gta_bench.web.material import list_facts
from gta_bench.web.pages import (
    PageCell,
    PageTable,
    estimate_cell,
    number_cell,
    page_table,
    read_asset,
    render,
)

# The tasks of a dataset that are listed.
TASKS_SHOWN: Final = 8
INTERVALS: Final = "The small line is the 95 % interval over tasks."


class _View(NamedTuple):
    """What the template shows; the tables in `more` and the remarks are folded."""

    title: str
    badges: Sequence[str] = ()
    texts: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = ()
    more: Sequence[PageTable] = ()
    remarks: Sequence[str] = ()


def render_html(one: object) -> str | None:
    """Return the HTML of a result; None if it is only shown as text.

    Scores have intervals, which need the extra `report`.
    """
    match one:
        case AtomicDataset() | WorkflowDataset():
            views = [_view_dataset(one)]
        case RunManifest():
            views = [_view_manifest(one)]
        case RunScores() if not missing_packages("scipy"):
            views = [_view_scores(one)]
        case WorkflowScores() if not missing_packages("scipy"):
            views = [_view_workflow_scores(one)]
        case Comparison():
            views = [_view_comparison(one)]
        case Comparisons():
            views = [_view_comparison(each) for each in one]
        case _:
            return None
    return "\n".join(render("notebook.html", view=view, style=_style()) for view in views)


@cache
def _style() -> Markup:
    # From this package, without any data of a run. The rules apply only inside of our output.
    return Markup(read_asset("notebook.css") + read_asset("basics.css") + "}\n")


def _view_dataset(dataset: Dataset) -> _View:
    rows = dataset.rows()
    last = "answer" if isinstance(dataset, AtomicDataset) else "leaves"
    shown = tuple(
        (
            PageCell(row["task"]),
            PageCell(line(row["request"])),
            PageCell(", ".join(row["tools"])),
            PageCell(str(len(row["files"]))),
            PageCell(str(row[last]).replace("_", " ")),
        )
        for row in rows[:TASKS_SHOWN]
    )
    texts = (0, 1, 2, 4) if last == "answer" else (0, 1, 2)
    name = dataset.root.name
    left = len(rows) - len(shown)
    return _View(
        title=name,
        facts=[
            ("tasks", f"{len(rows):,}"),
            ("tools", f"{len(dataset.tools):,}"),
            ("findings", f"{len(dataset.findings):,}"),
        ],
        tables=[
            PageTable(f"Tasks of {name}", ("task", "request", "tools", "files", last), shown, texts)
        ],
        notes=[f"And {left:,} more."] if left else [],
    )


def _view_manifest(manifest: RunManifest) -> _View:
    spec = manifest.spec
    mode = [] if spec.mode == spec.dataset else [("mode", spec.mode)]
    return _View(
        title=system_name(manifest),
        badges=run_badges(manifest),
        facts=[*mode, ("tasks", f"{len(spec.tasks):,}"), *list_facts(manifest)],
        remarks=manifest.notes,
    )


def _view_scores(scores: RunScores) -> _View:
    from gta_bench.reports.estimates import estimates, make_atomic_parts
    from gta_bench.web.boards import COLUMNS, TITLES

    columns = COLUMNS[scores.mode]
    keys = [(row["task"], row["epoch"]) for row in scores.rows()]
    found = estimates(
        make_atomic_parts(scores.units, columns),
        list(dict.fromkeys(task for task, _ in keys)),
        epochs=max((epoch for _, epoch in keys), default=1),
    )
    upstream = metrics(scores, "compat")
    rows = (
        (
            *_first_cells("strict", scores.strict.n, scores.n_units),
            *(estimate_cell(found, column) for column in columns),
        ),
        (
            *_first_cells("compat", select_scores(scores, "compat").n, scores.n_units),
            *(number_cell(upstream.get(column)) for column in columns),
        ),
    )
    title = TITLES[scores.mode]
    heading = ("scoring", "n/N", *map(label, columns))
    return _View(
        title=title,
        badges=score_badges(scores),
        tables=[PageTable(f"Scores of {title}", heading, rows)],
        notes=[INTERVALS],
    )


def _view_workflow_scores(scores: WorkflowScores) -> _View:
    from gta_bench.reports.estimates import estimates, make_workflow_parts
    from gta_bench.web.boards import TITLES

    title = TITLES["workflow"]
    rows: list[tuple[PageCell, ...]] = []
    for judge in scores.judges:
        tasks = list(dict.fromkeys(one.task for one in judge.tasks))
        epochs = max((one.epoch for one in judge.tasks), default=1)
        found = estimates(make_workflow_parts(judge.tasks, scores), tasks, epochs=epochs)
        n_units = judge.strict.n_units
        strict = (estimate_cell(found, name) for name in JUDGED)
        root = {"root_score": judge.compat.root_score}
        compat = (number_cell(root.get(name)) for name in JUDGED)
        rows += [
            (PageCell(judge.judge), *_first_cells("strict", judge.strict.n, n_units), *strict),
            (PageCell(judge.judge), *_first_cells("compat", judge.compat.n, n_units), *compat),
        ]
    heading = ("judge", "scoring", "n/N", *(row.label for row in JUDGED.values()))
    return _View(
        title=title,
        badges=sorted({text for one in scores.judges for text in judge_badges(one.judge)}),
        facts=[
            ("units run", f"{scores.n} of {scores.n_units}"),
            (TOOL_SR.label, number_cell(scores.tool_sr).text),
        ],
        tables=[PageTable(f"Scores of {title}", heading, tuple(rows), (0, 1))] if rows else [],
        notes=[INTERVALS] if rows else ["No judge was asked yet: gta_bench.judge(RUN, JUDGE)."],
    )


def _first_cells(scoring: str, n: int, n_units: int) -> tuple[PageCell, PageCell]:
    small = "" if n == n_units else "not rankable"
    return PageCell(scoring), PageCell(f"{n}/{n_units}", small)


def _view_comparison(comparison: Comparison) -> _View:
    return _View(
        title=f"A: {comparison.first}, B: {comparison.second}",
        texts=[state_conclusion(comparison)],
        tables=[page_table("Differences", comparison_table(comparison))],
        more=[
            page_table(found.title, found.table, found.words)
            for found in flip_tables(comparison, FLIPS_SHOWN)
        ],
        remarks=comparison_remarks(comparison),
    )
