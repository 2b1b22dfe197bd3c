"""A comparison as tables and sentences, for the terminal and as Markdown."""

from gta_bench.records.comparison import Comparison, MetricDifference
from gta_bench.reports.tables import Table


def comparison_table(comparison: Comparison) -> Table:
    """Scores and what they took, a row each."""
    return Table(
        ("metric", "A", "B", "A - B", "95 % interval", "p", "p (Holm)", "pairs", "told apart"),
        tuple(_row(one) for one in (*comparison.metrics, *comparison.took)),
    )


def tool_table(comparison: Comparison) -> Table:
    """Calls by tool in both runs."""
    return Table(
        ("tool", "A done", "A failed", "B done", "B failed"),
        tuple(
            (
                one.tool,
                *map(str, (one.first_done, one.first_failed, one.second_done, one.second_failed)),
            )
            for one in comparison.tools
        ),
    )


def comparison_remarks(comparison: Comparison) -> list[str]:
    """What one must know before one believes the table."""
    said = [f"A is {comparison.first}, B is {comparison.second}; {comparison.tasks} tasks paired."]
    if comparison.left_out:
        some = ", ".join(comparison.left_out[:10])
        more = " …" if len(comparison.left_out) > 10 else ""
        said.append(
            f"{len(comparison.left_out)} tasks are left out, as not both runs have a score: "
            f"{some}{more}."
        )
    said += [f"not only the systems differ: {caution}." for caution in comparison.cautions]
    one, two = comparison.per_dollar
    if one is not None and two is not None:
        said.append(f"{comparison.headline} for a dollar: A {one:.2f}, B {two:.2f}.")
    else:
        said.append("score for a dollar: the cost of one or both is not known.")
    for shown in comparison.evidence:
        said.append(
            f"evidence before {shown.judge}: the same in {shown.same} of {shown.units} units; "
            f"{shown.same_but_scored_otherwise} of those scored otherwise by the judge itself."
            if shown.units
            else f"evidence before {shown.judge}: not recorded for both."
        )
    return said


def _row(one: MetricDifference) -> tuple[str, ...]:
    digits = 4 if max(abs(one.first), abs(one.second)) < 0.1 else 2
    low, high = one.difference.low, one.difference.high
    return (
        one.metric,
        f"{one.first:.{digits}f}",
        f"{one.second:.{digits}f}",
        f"{one.difference.estimate:+.{digits}f}",
        f"{low:+.{digits}f} to {high:+.{digits}f}",
        _p(one.p_value),
        _p(one.p_holm),
        str(one.difference.n),
        "yes" if one.p_holm < 0.05 else "no",
    )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
