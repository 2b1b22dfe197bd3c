"""`gta report`: runs side by side, for the terminal, as Markdown or as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
from pydantic import JsonValue

from gta_bench.cli.output import say, write_json
from gta_bench.records.run import Mode
from gta_bench.reports.controls import (
    Compared,
    compare_controls,
    effect_remarks,
    effect_table,
    task_table,
)
from gta_bench.reports.summary import (
    SCORINGS,
    RunSummary,
    Table,
    markdown,
    metrics,
    remarks,
    score_table,
    tool_table,
)
from gta_bench.runs.directory import read_manifest, read_scores

CONTROLS = "What tools are worth: solved without a control and with it (strict)"
MODES: tuple[Mode, ...] = ("step", "end-to-end")
TITLES = {"step": "GTA-Atomic, step by step", "end-to-end": "GTA-Atomic, end to end"}


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--format",
    "shape",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
)
def report(runs: tuple[str, ...], shape: Literal["table", "markdown", "json"]) -> None:
    """Show the scores of runs: both scorings, n of N, and what it took."""
    folders = [Path(run) for run in runs]
    if shape == "json":
        summaries = _summaries(folders)
        effects = {one.run.name: one for one in compare_controls(summaries)}
        write_json([_as_json(one, effects.get(one.name)) for one in summaries])
    elif shape == "markdown":
        click.echo(report_markdown(folders))
    else:
        write_reports(folders)


def write_reports(folders: Sequence[Path]) -> None:
    """The runs as tables for the terminal."""
    summaries = _summaries(folders)
    for mode in MODES:
        table = score_table(summaries, mode)
        if table.rows:
            _write_table(TITLES[mode], table, words=(0, 1, 2))
    for summary in summaries:
        if summary.scores.tools:
            _write_table(f"\nTool calls of {summary.name}", tool_table(summary), words=(0, 5))
    compared = compare_controls(summaries)
    if any(one.effect is not None for one in compared):
        _write_table(f"\n{CONTROLS}", effect_table(compared), words=(0, 1))
    for summary in summaries:
        for remark in remarks(summary):
            say(f"{summary.name}: {remark}")
    for one in compared:
        for remark in effect_remarks(one):
            say(f"{one.run.name}: {remark}")


def report_markdown(folders: Sequence[Path]) -> str:
    """The runs as a Markdown page."""
    return _as_markdown(_summaries(folders))


def _summaries(folders: Sequence[Path]) -> list[RunSummary]:
    return [RunSummary(str(run), read_manifest(run), read_scores(run)) for run in folders]


def _write_table(title: str, table: Table, *, words: tuple[int, ...]) -> None:
    """Columns of words are flush left, those of numbers flush right."""
    click.echo(title)
    widths = [max(map(len, column)) for column in zip(table.heading, *table.rows, strict=True)]
    for row in (table.heading, *table.rows):
        cells = [
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def _as_markdown(summaries: Sequence[RunSummary]) -> str:
    parts = ["# Report", ""]
    for mode in MODES:
        table = score_table(summaries, mode)
        if table.rows:
            parts += [f"## {TITLES[mode]}", "", markdown(table), ""]
    for summary in summaries:
        if summary.scores.tools:
            parts += [f"## Tool calls of {summary.name}", "", markdown(tool_table(summary)), ""]
    compared = compare_controls(summaries)
    parts += _controls_markdown(compared)
    parts += ["## What it took, and what to know", ""]
    for summary in summaries:
        parts += [f"- `{summary.name}`: {remark}" for remark in remarks(summary)]
    for one in compared:
        parts += [f"- `{one.run.name}`: {remark}" for remark in effect_remarks(one)]
    return "\n".join(parts)


def _controls_markdown(compared: Sequence[Compared]) -> list[str]:
    """What each control showed, overall and task by task."""
    if all(one.effect is None for one in compared):
        return []
    parts = [f"## {CONTROLS}", "", markdown(effect_table(compared)), ""]
    for one in compared:
        if one.effect is not None:
            heading = f"### `{one.run.name}` ({one.control}), task by task"
            parts += [heading, "", markdown(task_table(one.effect)), ""]
    return parts


def _as_json(summary: RunSummary, compared: Compared | None) -> dict[str, JsonValue]:
    scores = summary.scores
    effect = None if compared is None else compared.effect
    return {
        "run": summary.name,
        "manifest": summary.manifest.model_dump(mode="json"),
        **scores.model_dump(mode="json", exclude={"units", "strict", "compat"}),
        **{scoring: dict(metrics(scores, scoring)) for scoring in SCORINGS},
        "control_effect": None if effect is None else effect.model_dump(mode="json"),
        "remarks": list(remarks(summary)),
    }
