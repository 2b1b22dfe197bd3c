"""A comparison as tables and sentences, for the terminal and as Markdown."""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import counted
from gta_bench.metrics.table import COST
from gta_bench.records.comparison import ALPHA, Comparison, Flip, MetricDifference, SelfTest
from gta_bench.reports.tables import Table

# Flips of one direction that a terminal shows.
FLIPS_SHOWN: Final = 20
# With fewer common tasks nothing is said of a difference but that they are too few: six that one
# system passes and the other fails could still be chance.
FEW_TASKS: Final = 7


class FlipTable(NamedTuple):
    """The flips of one direction; columns of `words` are flush left."""

    title: str
    table: Table
    words: tuple[int, ...]
    left: int


def conclusion(comparison: Comparison) -> str:
    """What to conclude, in one sentence or two, for somebody who is no statistician."""
    every = comparison.primaries
    if not every:
        return "Nothing can be concluded: no task has a score of the main metric in both runs."
    one = every[0]
    if max(own.difference.n for own in every) < FEW_TASKS:
        tasks = counted(one.difference.n, "task")
        return (
            f"Too few tasks to conclude anything: {tasks} with a score in both runs "
            f"({one.metric} {one.first:.1f} against {one.second:.1f})."
        )
    found = [_ahead(own) if own.apart else None for own in every]
    if len(set(found)) > 1:
        said = (
            f"{own.metric} has {who} ahead" if who else f"{own.metric} cannot tell them apart"
            for own, who in zip(every, found, strict=True)
        )
        return f"Nothing can be concluded, as the judges disagree: {'; '.join(said)}."
    on = _on(one, comparison)
    if one.apart:
        return _lead(one, on) + _agreed(every)
    if one.p_value < ALPHA:
        return _doubt(one, on)
    return (
        f"A and B cannot be told apart in {one.metric}: {one.first:.1f} against {one.second:.1f} "
        f"{on}. The true difference is likely between {one.difference.low:+.1f} and "
        f"{one.difference.high:+.1f} points (95 %){_whatever(one)}. "
        f"That does not make them equal: {_could_show(one)}."
    )


def _ahead(one: MetricDifference) -> str:
    return "A" if one.difference.estimate > 0 else "B"


def _scores(one: MetricDifference) -> str:
    """Both scores, the higher one first."""
    return "{:.1f} against {:.1f}".format(*sorted((one.first, one.second), reverse=True))


def _on(one: MetricDifference, comparison: Comparison) -> str:
    """On how many tasks, and of how many, if one run was given others too."""
    tasks = f"on {counted(one.difference.n, 'task')}"
    if not comparison.one_sided:
        return tasks
    given = comparison.tasks + len({*comparison.left_out, *comparison.one_sided})
    return f"{tasks} of the {given} that A or B was given"


def _lead(one: MetricDifference, on: str) -> str:
    ahead, behind = ("A", "B") if _ahead(one) == "A" else ("B", "A")
    low, high = sorted((abs(one.difference.low), abs(one.difference.high)))
    return (
        f"{ahead} is ahead of {behind} in {one.metric}: {_scores(one)} {on}. The true lead is "
        f"likely {low:.1f} to {high:.1f} points (95 %){_whatever(one)}."
    )


def _agreed(every: Sequence[MetricDifference]) -> str:
    return f" All {len(every)} judges agree." if len(every) > 1 else ""


def _whatever(one: MetricDifference) -> str:
    """What is said of the tasks that were seen does not hold of all."""
    if one.envelope is None:
        return ""
    return (
        f" on these; with all that is missing, A - B lies anywhere from {one.envelope.low:+.1f} to "
        f"{one.envelope.high:+.1f}"
    )


def _doubt(one: MetricDifference, on: str) -> str:
    """A lead that would be one if nothing were missing and nothing else compared."""
    ahead, behind = ("A", "B") if _ahead(one) == "A" else ("B", "A")
    if one.envelope is not None and one.envelope.p_value >= ALPHA:
        return (
            f"Nothing can be concluded: {ahead} looks ahead in {one.metric} ({_scores(one)} {on}), "
            f"but {_lacking(one.envelope.missing)}. {_tipping(one)} Run what is missing, then "
            "compare."
        )
    return (
        f"{ahead} looks ahead of {behind} in {one.metric} ({_scores(one)} {on}), but corrected for "
        "the number of comparisons it could be chance: it does not count."
    )


def _could_show(one: MetricDifference) -> str:
    if one.most is not None and one.detectable >= one.most:
        return "so few tasks can hardly show any difference"
    return (
        f"a true difference of {one.detectable:.1f} points would be found in four of five such "
        "comparisons, a smaller one less often"
    )


def _lacking(tasks: int) -> str:
    return f"{counted(tasks, 'task')} {'lacks' if tasks == 1 else 'lack'} a score or a part of it"


def _tipping(one: MetricDifference) -> str:
    """What takes the lead away; empty where there is none."""
    if one.envelope is None or not one.difference.estimate:
        return ""
    ahead, tipping = _ahead(one), one.envelope.tipping
    if tipping is None:
        stays = "" if one.apart else ", but it could be chance"
        return f"The lead of {ahead} stays whatever they bring{stays}."
    if not tipping:
        return f"The lead of {ahead} is gone if they go as those that were seen."
    missing = counted(one.envelope.missing, "such task")
    go = "goes" if tipping == 1 else "go"
    others = " and the others as those that were seen" if tipping < one.envelope.missing else ""
    return f"The lead of {ahead} is gone if {tipping} of the {missing} {go} against it{others}."


def self_test_remark(found: SelfTest) -> str:
    """What the null check showed, in a few sentences."""
    shares = (found.alarms, found.secondary_alarms, found.covered, found.found)
    alarms, others, covered, shown = (f"{100 * share:.1f} %" for share in shares)
    swapped = f"with the two systems swapped task by task, {found.rounds:,} times"
    if found.tasks < FEW_TASKS:
        return (
            f"self-test: {counted(found.tasks, 'task')} of {found.metric} are too few for it; "
            f"{swapped}, a secondary metric told them apart in {others} of the rounds, where 5 % "
            f"are allowed.{_too_often(found.secondary_alarms, found.rounds)}"
        )
    said = (
        f"self-test on these {counted(found.tasks, 'task')}: {swapped}, {found.metric} told them "
        f"apart in {alarms} of the rounds, where 5 % are allowed; a secondary metric did in "
        f"{others}.{_too_often(max(found.alarms, found.secondary_alarms), found.rounds)}"
    )
    if not found.planted:
        return f"{said} No lead can be planted, as there is nothing to gain."
    return (
        f"{said} With a planted lead of {found.planted:.1f} points the interval held the lead in "
        f"{covered}, where 95 % are promised, and it was found in {shown}."
    )


def _too_often(alarms: float, rounds: int) -> str:
    """Whether false alarms are more than allowed, or could be so by the luck of the rounds."""
    most = ALPHA + 3.5 * math.sqrt(ALPHA * (1 - ALPHA) / rounds)
    if alarms > most:
        return " That is too often: do not rely on it with these data."
    return f" Up to {100 * most:.1f} % may be chance." if alarms > ALPHA else ""


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
            f"{' and '.join(own.metric for own in comparison.primaries)} decides; the other rows "
            "are secondary, corrected for their number, and what a task took is not tested."
        )
    for own in comparison.primaries:
        if own.envelope is not None:
            said.append(
                f"{_lacking(own.envelope.missing)} in one run or both: if all of it went against A "
                f"or for A, {own.metric} would differ by {own.envelope.low:+.2f} or "
                f"{own.envelope.high:+.2f}. {_tipping(own)}".rstrip()
            )
    unscored = tuple(task for task in comparison.left_out if task not in comparison.one_sided)
    for tasks_, why in (
        (unscored, "not both runs have a score"),
        (comparison.one_sided, "part of one run only"),
    ):
        if tasks_:
            said.append(f"{_how_many(tasks_)} left out, as {why}: {_some(tasks_)}.")
    if comparison.changed:
        said.append(
            f"{_how_many(comparison.changed)} left out, as the two datasets ask or score something "
            f"else: {_some(comparison.changed)}."
        )
    said += [f"not only the systems differ: {caution}." for caution in comparison.cautions]
    first, second = comparison.per_dollar
    if one is not None and first is not None and second is not None:
        said.append(
            f"for a dollar ({one.metric} summed over the work): A {first:.2f}, B {second:.2f}."
        )
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
        "-" if one.role == "amount" else _p(one.p_value),
        "-" if one.p_holm is None else _p(one.p_holm),
        str(one.difference.n),
        f"{one.effective:.0f}",
        told,
        "-" if one.apart else f"{one.detectable:.{digits}f}",
    )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
