"""A comparison as tables and sentences, for the terminal and as Markdown."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import counted
from gta_bench.metrics.table import COST
from gta_bench.records.comparison import ALPHA, Comparison, Flip, MetricDifference, SelfTest
from gta_bench.reports.tables import Table

# Flips of one direction that a terminal shows.
FLIPS_SHOWN: Final = 20
# With fewer common tasks nothing is said of a difference but that they are too few.
FEW_TASKS: Final = 6


class FlipTable(NamedTuple):
    """The flips of one direction; columns of `words` are flush left."""

    title: str
    table: Table
    words: tuple[int, ...]
    left: int


def conclusion(comparison: Comparison) -> str:
    """What to conclude, in one sentence or two, for somebody who is no statistician."""
    one = comparison.primary
    if one is None:
        return "Nothing can be concluded: no task has a score of the main metric in both runs."
    name, seen = one.metric, f"{one.first:.1f} against {one.second:.1f}"
    tasks = counted(one.difference.n, "task")
    gap = one.difference.estimate
    ahead, behind = ("A", "B") if gap > 0 else ("B", "A")
    if one.apart:
        low, high = sorted((abs(one.difference.low), abs(one.difference.high)))
        return (
            f"{ahead} is ahead of {behind} in {name}: {seen} on {tasks}. The true lead is likely "
            f"{low:.1f} to {high:.1f} points (95 %)."
        )
    if comparison.tasks < FEW_TASKS:
        return (
            f"Too few tasks to conclude anything: {tasks} with a score in both runs "
            f"({name} {seen})."
        )
    if one.p_value < ALPHA and one.envelope is not None:
        return f"{_looks(one, ahead)} {_tipping(one, ahead)} Run what is missing, then compare."
    if one.p_value < ALPHA:
        return (
            f"{ahead} looks ahead of {behind} in {name} ({seen} on {tasks}), but among as many "
            "comparisons as these one such lead is to be expected by chance: it does not count."
        )
    return (
        f"A and B cannot be told apart in {name}: {seen} on {tasks}. The true difference is likely "
        f"between {one.difference.low:+.1f} and {one.difference.high:+.1f} points (95 %). "
        f"That does not make them equal: these tasks show a difference of "
        f"{one.detectable:.1f} or more in four of five cases, and smaller ones seldom."
    )


def self_test_remark(found: SelfTest) -> str:
    """What the null check showed, in two sentences."""
    shares = (found.alarms, found.secondary_alarms, found.covered, found.found)
    alarms, others, covered, shown = (f"{100 * share:.1f} %" for share in shares)
    return (
        f"self-test on these {counted(found.tasks, 'task')}: with the two systems swapped task by "
        f"task, {found.rounds:,} times, {found.metric} told them apart in {alarms} of the rounds, "
        f"where 5 % are allowed; a secondary metric did in {others}. With a planted lead of "
        f"{found.planted:.1f} points the interval held the lead in {covered}, and it was found in "
        f"{shown}."
    )


def _looks(one: MetricDifference, ahead: str) -> str:
    assert one.envelope is not None
    missing = counted(one.envelope.missing, "task")
    are = "is" if one.envelope.missing == 1 else "are"
    return (
        f"Nothing can be concluded: {ahead} looks ahead in {one.metric} on the tasks that both "
        f"have, but {missing} {are} missing, and these decide."
    )


def _tipping(one: MetricDifference, ahead: str) -> str:
    assert one.envelope is not None
    found = one.envelope
    if found.tipping is None:
        return f"The lead of {ahead} stays, but it could be chance."
    of = counted(found.missing, "missing task")
    return f"The sign turns if {found.tipping} of the {of} go against {ahead}."


def comparison_table(comparison: Comparison) -> Table:
    """Scores and what they took, a row each; the metric that decides on top."""
    lacking = any(one.envelope is not None for one in comparison.metrics)
    heading = (
        *("metric", "A", "B", "A - B", "95 % interval"),
        *(("with missing tasks",) if lacking else ()),
        *("p", "p (Holm)", "tasks", "worth", "told apart", "could show"),
    )
    rows = (*comparison.metrics, *comparison.took)
    return Table(heading, tuple(_row(one, lacking=lacking) for one in rows))


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
    one = comparison.primary
    if one is not None:
        said.append(
            f"{one.metric} decides; the other rows are secondary, corrected for their number, and "
            "what a task took is not tested."
        )
        if one.envelope is not None:
            said.append(
                f"{counted(one.envelope.missing, 'task')} without a score in one run or both: if "
                f"all of them went against A or for A, {one.metric} would differ by "
                f"{one.envelope.low:+.2f} or {one.envelope.high:+.2f}. "
                + _tipping(one, "A" if one.difference.estimate > 0 else "B")
            )
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
    first, second = comparison.per_dollar
    if one is not None and first is not None and second is not None:
        said.append(f"{one.metric} for a dollar: A {first:.2f}, B {second:.2f}.")
    else:
        said.append("score for a dollar: the cost of one or both is not known.")
    if comparison.self_test is not None:
        said.append(self_test_remark(comparison.self_test))
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


def _row(one: MetricDifference, *, lacking: bool) -> tuple[str, ...]:
    digits = 4 if one.metric == COST.label else 2
    low, high = one.difference.low, one.difference.high
    missing = one.envelope
    cases = "-" if missing is None else f"{missing.low:+.2f} to {missing.high:+.2f}"
    told = "-" if one.p_holm is None else "yes" if one.apart else "no"
    return (
        one.metric,
        f"{one.first:.{digits}f}",
        f"{one.second:.{digits}f}",
        f"{one.difference.estimate:+.{digits}f}",
        f"{low:+.{digits}f} to {high:+.{digits}f}",
        *((cases,) if lacking else ()),
        _p(one.p_value),
        "-" if one.p_holm is None else _p(one.p_holm),
        str(one.difference.n),
        f"{one.effective:.0f}",
        told,
        "-" if one.apart else f"{one.detectable:.{digits}f}",
    )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
