"""A comparison as tables and sentences, for the terminal and as Markdown."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import counted
from gta_bench.metrics.table import COST
from gta_bench.records.comparison import Comparison, Flip, MetricDifference
from gta_bench.reports.tables import Table

# Flips of one direction that a terminal shows.
FLIPS_SHOWN: Final = 20


class FlipTable(NamedTuple):
    """The flips of one direction; columns of `words` are flush left."""

    title: str
    table: Table
    words: tuple[int, ...]
    left: int


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


def flip_tables(comparison: Comparison, most: int | None = None) -> Iterator[FlipTable]:
    """What got worse from A to B, then what got better; at most so many rows of each."""
    for word, wanted in (("worse", True), ("better", False)):
        found = [flip for flip in comparison.flips if flip.worse is wanted]
        # The largest change first; those of the same size stay in the order of their tasks.
        found.sort(key=lambda flip: -abs(round(flip.second - flip.first, 6)))
        if found:
            shown = found[:most]
            table, words = _flip_table(shown)
            title = f"{_what_flipped(found)} {word} in B than in A"
            yield FlipTable(title, table, words, len(found) - len(shown))


def _what_flipped(flips: Sequence[Flip]) -> str:
    tasks = len({flip.task for flip in flips if flip.leaf is None})
    leaves = len({(flip.task, flip.leaf) for flip in flips if flip.leaf is not None})
    parts = [counted(tasks, "task")] if tasks else []
    parts += [counted(leaves, "leaf", "leaves")] if leaves else []
    return " and ".join(parts)


def _flip_table(flips: Sequence[Flip]) -> tuple[Table, tuple[int, ...]]:
    judged = any(flip.judge is not None for flip in flips)
    heading = ("task", *(("leaf", "judge") if judged else ()), "metric", "A", "B", "B - A")
    rows = tuple(
        (
            flip.task,
            *((flip.leaf or "whole task", flip.judge or "-") if judged else ()),
            flip.metric,
            f"{flip.first:.2f}",
            f"{flip.second:.2f}",
            f"{flip.second - flip.first:+.2f}",
        )
        for flip in flips
    )
    return Table(heading, rows), tuple(range(4 if judged else 2))


def comparison_remarks(comparison: Comparison) -> list[str]:
    """What one must know before one believes the table."""
    tasks = counted(comparison.tasks, "task")
    said = [f"A is {comparison.first}, B is {comparison.second}; {tasks} paired."]
    if comparison.left_out:
        said.append(
            f"{_how_many(comparison.left_out)} left out, as not both runs have a score: "
            f"{_some(comparison.left_out)}."
        )
    if comparison.changed:
        said.append(
            f"{_how_many(comparison.changed)} left out, as the two datasets ask or score something "
            f"else: {_some(comparison.changed)}."
        )
    said += [f"not only the systems differ: {caution}." for caution in comparison.cautions]
    one, two = comparison.per_dollar
    if one is not None and two is not None:
        said.append(f"{comparison.headline} for a dollar: A {one:.2f}, B {two:.2f}.")
    else:
        said.append("score for a dollar: the cost of one or both is not known.")
    for shown in comparison.evidence:
        said.append(
            f"evidence before {shown.judge}: the same in {shown.same} of "
            f"{counted(shown.units, 'unit')}; {shown.same_but_scored_otherwise} of those scored "
            "otherwise by the judge itself."
            if shown.units
            else f"evidence before {shown.judge}: not recorded for both."
        )
    return said


def _how_many(tasks: tuple[str, ...]) -> str:
    return f"{counted(len(tasks), 'task')} {'is' if len(tasks) == 1 else 'are'}"


def _some(tasks: tuple[str, ...]) -> str:
    return ", ".join(tasks[:10]) + (" …" if len(tasks) > 10 else "")


def _row(one: MetricDifference) -> tuple[str, ...]:
    digits = 4 if one.metric == COST.label else 2
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
