"""`gta compare`: runs on the same tasks, paired."""

from collections.abc import Sequence

import click

from gta_bench.cli.options import RUN, json_option
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.decisions.comparison_tables import (
    FLIPS_SHOWN,
    comparison_remarks,
    comparison_table,
    flip_tables,
    state_conclusion,
    tool_table,
)
from gta_bench.errors import UsageError, format_count
from gta_bench.packages import require_packages
from gta_bench.records.comparison import Comparison, Gap
from gta_bench.reports.tables import markdown
from gta_bench.runs.store import StorePath


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown on stdout.")
@click.option(
    "--self-test",
    "test_itself",
    is_flag=True,
    help="Also swap the systems at random, task by task, 1,000 times, to measure how often equal "
    "systems would be called different.",
)
@click.option(
    "--gap",
    "as_gap",
    is_flag=True,
    help="Two runs of one system on different tasks, such as published and forged ones, not "
    "paired; two runs of a control may follow.",
)
def compare(
    runs: tuple[StorePath, ...],
    as_json: bool,
    as_markdown: bool,
    test_itself: bool,
    as_gap: bool,
) -> None:
    """Compare the first of RUNS with each of the others on their common tasks (strict scoring).

    The first sentence says what to conclude, based on one primary metric: ArgAcc for step mode,
    AnsAcc for end-to-end mode, Root SR for GTA-Workflow. Differences have 95 % intervals over tasks
    and matching p values; secondary metrics are Holm-corrected. Two runs are not called different
    if missing tasks could change that. Runs on two versions of a dataset are compared on the tasks
    that did not change. Runs that differ in benchmark, mode, judge, visibility or scoring cannot be
    compared; other differences are reported. Also lists the tasks whose score differs, and the
    Workflow tasks and leaves that succeed in one run only.
    """
    if len(runs) < 2:
        raise UsageError("A comparison needs at least two runs: gta compare RUN RUN.")
    require_packages("gta compare", "scipy", extra="report")
    # Reading logs needs the evaluation engine, and the statistical tests need scipy.
    from gta_bench.decisions.comparison import compare as compare_runs
    from gta_bench.decisions.gap import find_gap
    from gta_bench.runs.scoring import read_compared

    first, *others = (read_compared(run) for run in runs)
    if as_gap:
        if test_itself:
            raise UsageError("--self-test is for paired runs: leave it out with --gap.")
        _write_gap(find_gap([first, *others]), as_json=as_json, as_markdown=as_markdown)
        return
    found = compare_runs([first, *others])
    if test_itself:
        from gta_bench.decisions.comparison import self_test

        found = tuple(
            one.model_copy(update={"self_test": self_test(first, other)})
            for one, other in zip(found, others, strict=True)
        )
    if as_json:
        write_json(
            [{"conclusion": state_conclusion(one), **one.model_dump(mode="json")} for one in found]
        )
    elif as_markdown:
        click.echo(_format_markdown(found))
    else:
        _write(found)


def _write_gap(gap: Gap, *, as_json: bool, as_markdown: bool) -> None:
    from gta_bench.decisions.gap import gap_table, state_gap

    if as_json:
        write_json({"conclusion": state_gap(gap), **gap.model_dump(mode="json")})
        return
    if as_markdown:
        click.echo(f"# Gap\n\n{state_gap(gap)}\n\n{markdown(gap_table(gap))}")
    else:
        click.echo(f"{state_gap(gap)}\n")
        write_table(gap_table(gap), (0,))
    for caution in gap.cautions:
        say(caution)


def _format_markdown(found: Sequence[Comparison]) -> str:
    """Return the comparisons as a Markdown page."""
    parts = ["# Comparison", ""]
    for one in found:
        parts += [f"## `{one.first}` (A) and `{one.second}` (B)", "", state_conclusion(one), ""]
        parts += [markdown(comparison_table(one)), ""]
        parts += [f"- {remark}" for remark in comparison_remarks(one)] + [""]
        for flips in flip_tables(one):
            parts += [f"### {flips.title}", "", markdown(flips.table), ""]
        if one.tools:
            parts += ["### Tool calls", "", markdown(tool_table(one)), ""]
    return "\n".join(parts).rstrip()


def _write(found: Sequence[Comparison]) -> None:
    for number, one in enumerate(found):
        click.echo(f"{chr(10) if number else ''}A: {one.first}\nB: {one.second}\n")
        click.echo(f"{state_conclusion(one)}\n")
        write_table(comparison_table(one), (0,))
        for flips in flip_tables(one, FLIPS_SHOWN):
            click.echo(f"\n{flips.title}")
            write_table(flips.table, flips.words)
            if flips.left:
                more = format_count(flips.left, "more row")
                say(f"And {more}; use --markdown or --json to see all.")
        if one.tools:
            click.echo("\nTool calls on these tasks")
            write_table(tool_table(one), (0,))
        for remark in comparison_remarks(one):
            say(remark)
