"""A comparison as tables and sentences, for the terminal and as Markdown."""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.metrics.table import COST
from gta_bench.records.comparison import (
    ALPHA,
    Comparison,
    Flip,
    MetricDifference,
    SelfTest,
    SharedTasks,
)
from gta_bench.reports.tables import Table

# How many flips of one direction a terminal shows.
FLIPS_SHOWN: Final = 20
# With fewer common tasks there is no conclusion: even six tasks that only one system passes could
# be chance.
FEW_TASKS: Final = 7


class FlipTable(NamedTuple):
    """The flips of one direction; the columns in `words` are left-aligned."""

    title: str
    table: Table
    words: tuple[int, ...]
    left: int


def state_conclusion(comparison: Comparison) -> str:
    """Say what to conclude, in one or two sentences without statistical terms."""
    every = comparison.primaries
    if not every:
        return "Nothing can be concluded: no task has a score of the main metric in both runs."
    one = every[0]
    if max(own.difference.n for own in every) < FEW_TASKS:
        tasks = format_count(one.difference.n, "task")
        return (
            f"Too few tasks to conclude anything: {tasks} with a score in both runs "
            f"({one.metric} {one.first:.1f} against {one.second:.1f})."
        )
    found = [_sides(own)[0] if own.apart else None for own in every]
    if len(set(found)) > 1:
        texts = (
            f"{own.metric} has {who} ahead" if who else f"{own.metric} cannot tell them apart"
            for own, who in zip(every, found, strict=True)
        )
        return f"Nothing can be concluded, as the judges disagree: {'; '.join(texts)}."
    on = _on(one, comparison)
    if one.apart:
        ahead, behind = _sides(one)
        low, high = sorted((abs(one.difference.low), abs(one.difference.high)))
        agreed = f" All {len(every)} judges agree." if len(every) > 1 else ""
        return (
            f"{ahead} is ahead of {behind} in {one.metric}: {_scores(one)} {on}. The true lead is "
            f"likely {low:.1f} to {high:.1f} points (95 %){_whatever(one)}.{agreed}"
        )
    if one.p_value < ALPHA:
        return _doubt(one, on)
    could_show = (
        f"a true difference of {one.detectable:.1f} points would be found in four of five such "
        "comparisons, a smaller one less often"
    )
    if one.most is not None and one.detectable >= one.most:
        could_show = "so few tasks can hardly show any difference"
    return (
        f"A and B cannot be told apart in {one.metric}: {one.first:.1f} against {one.second:.1f} "
        f"{on}. The true difference is likely between {one.difference.low:+.1f} and "
        f"{one.difference.high:+.1f} points (95 %){_whatever(one)}. "
        f"That does not make them equal: {could_show}."
    )


def _sides(one: MetricDifference) -> tuple[str, str]:
    """Return which run is ahead, and which is behind."""
    return ("A", "B") if one.difference.estimate > 0 else ("B", "A")


def _scores(one: MetricDifference) -> str:
    """Format both scores, the higher one first."""
    return "{:.1f} against {:.1f}".format(*sorted((one.first, one.second), reverse=True))


def _on(one: MetricDifference, comparison: Comparison) -> str:
    """Say on how many tasks, and of how many if one run was given others, too."""
    tasks = f"on {format_count(one.difference.n, 'task')}"
    if not comparison.one_sided:
        return tasks
    given = comparison.tasks + len({*comparison.left_out, *comparison.one_sided})
    return f"{tasks} of the {given} that A or B was given"


def _whatever(one: MetricDifference) -> str:
    """Limit a statement to the tasks with scores, if others are missing."""
    if one.envelope is None:
        return ""
    return (
        f" on these; with all that is missing, A - B is anywhere from {one.envelope.low:+.1f} to "
        f"{one.envelope.high:+.1f}"
    )


def _doubt(one: MetricDifference, on: str) -> str:
    """Describe a lead that only counts if nothing is missing and nothing else is compared."""
    ahead, behind = _sides(one)
    if one.envelope is not None and one.envelope.p_value >= ALPHA:
        return (
            f"Nothing can be concluded: {ahead} looks ahead in {one.metric} ({_scores(one)} {on}), "
            f"but {_lacking(one.envelope.missing)}. {_tipping(one)} Run what is missing, then "
            "compare."
        )
    return (
        f"{ahead} looks ahead of {behind} in {one.metric} ({_scores(one)} {on}), but corrected for "
        "the number of comparisons it could be chance, so it does not count."
    )


def _lacking(tasks: int) -> str:
    return (
        f"{format_count(tasks, 'task')} {'lacks' if tasks == 1 else 'lack'} a score or a part of it"
    )


def _tipping(one: MetricDifference) -> str:
    """Say what would end the lead; empty if there is none."""
    if one.envelope is None or not one.difference.estimate:
        return ""
    ahead, tipping = _sides(one)[0], one.envelope.tipping
    if tipping is None:
        stays = "" if one.apart else ", but it could be chance"
        return f"The lead of {ahead} stays whatever their scores are{stays}."
    if not tipping:
        return f"The lead of {ahead} is gone if they score like the others."
    missing = format_count(one.envelope.missing, "such task")
    go = "goes" if tipping == 1 else "go"
    others = " and the rest score like the others" if tipping < one.envelope.missing else ""
    return f"The lead of {ahead} is gone if {tipping} of the {missing} {go} against it{others}."


def self_test_remark(found: SelfTest) -> str:
    """Describe the result of the self-test."""
    shares = (found.alarms, found.secondary_alarms, found.covered, found.found)
    alarms, others, covered, shown = (f"{100 * share:.1f} %" for share in shares)
    swapped = f"with the two systems swapped task by task, {found.rounds:,} times"
    if found.tasks < FEW_TASKS:
        return (
            f"self-test: {format_count(found.tasks, 'task')} of {found.metric} are too few for it; "
            f"{swapped}, a secondary metric told them apart in {others} of the rounds, where 5 % "
            f"are allowed.{_too_often(found.secondary_alarms, found.rounds)}"
        )
    text = (
        f"self-test on these {format_count(found.tasks, 'task')}: {swapped}, {found.metric} "
        f"told them apart in {alarms} of the rounds, where 5 % are allowed; a secondary metric "
        f"did in {others}.{_too_often(max(found.alarms, found.secondary_alarms), found.rounds)}"
    )
    if not found.planted:
        return f"{text} No lead can be planted, because there is nothing to gain."
    return (
        f"{text} With a planted lead of {found.planted:.1f} points, the interval contained the "
        f"lead in {covered} of the rounds (promised: 95 %), and the lead was found in {shown}."
    )


def _too_often(alarms: float, rounds: int) -> str:
    """Say whether there are more false alarms than allowed, or perhaps only by chance."""
    most = ALPHA + 3.5 * math.sqrt(ALPHA * (1 - ALPHA) / rounds)
    if alarms > most:
        return " That is too often: do not rely on the comparison with these data."
    return f" Up to {100 * most:.1f} % may be chance." if alarms > ALPHA else ""


def comparison_table(comparison: Comparison) -> Table:
    """Return a row for each score and each kind of usage; the primary metric comes first."""
    lacking = any(one.envelope is not None for one in comparison.metrics)
    heading = (
        *("metric", "A", "B", "A - B", "95 % interval"),
        *(("with missing tasks",) if lacking else ()),
        *("p", "p (Holm)", "tasks", "worth", "told apart", "could show"),
    )
    rows = (*comparison.metrics, *comparison.took)
    return Table(heading, tuple(_row(one, lacking=lacking) for one in rows))


def tool_table(comparison: Comparison) -> Table:
    """Return the calls of each tool in both runs."""
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
    """Yield what got worse from A to B, then what got better, with at most `most` rows each."""
    for word, wanted in (("worse", True), ("better", False)):
        found = [flip for flip in comparison.flips if flip.worse is wanted]
        # The largest change first; equal changes stay in the order of their tasks.
        found.sort(key=lambda flip: -abs(round(flip.second - flip.first, 6)))
        if found:
            shown = found[:most]
            table, words = _flip_table(shown)
            title = f"{_what_flipped(found)} {word} in B than in A"
            yield FlipTable(title, table, words, len(found) - len(shown))


def _what_flipped(flips: Sequence[Flip]) -> str:
    tasks = len({flip.task for flip in flips if flip.leaf is None})
    leaves = len({(flip.task, flip.leaf) for flip in flips if flip.leaf is not None})
    parts = [format_count(tasks, "task")] if tasks else []
    parts += [format_count(leaves, "leaf", "leaves")] if leaves else []
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
    """Return what to know before relying on the table."""
    tasks = format_count(comparison.tasks, "task")
    lines = [f"A is {comparison.first}, B is {comparison.second}; {tasks} paired."]
    one = comparison.primary
    if one is not None:
        lines.append(
            f"{' and '.join(own.metric for own in comparison.primaries)} decides; the other rows "
            "are secondary, corrected for their number, and usage is not tested."
        )
    for own in comparison.primaries:
        if own.envelope is not None:
            lines.append(
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
            are = f"{format_count(len(tasks_), 'task')} {'is' if len(tasks_) == 1 else 'are'}"
            lines.append(f"{are} left out ({why}): {_name_some(tasks_)}.")
    if comparison.shared is not None:
        lines.append(shared_remark(comparison.shared))
    lines += [f"not only the systems differ: {caution}." for caution in comparison.cautions]
    first, second = comparison.per_dollar
    if one is not None and first is not None and second is not None:
        lines.append(
            f"per dollar ({one.metric} summed over all units): A {first:.2f}, B {second:.2f}."
        )
    else:
        lines.append("score per dollar: the cost of one or both runs is unknown.")
    if comparison.self_test is not None:
        lines.append(self_test_remark(comparison.self_test))
    for shown in comparison.evidence:
        lines.append(
            f"evidence for {shown.judge}: the same in {shown.same} of "
            f"{format_count(shown.units, 'unit')}; {shown.same_but_scored_otherwise} of those have "
            "different scores by this judge."
            if shown.units
            else f"evidence for {shown.judge}: not recorded for both runs."
        )
    return lines


def shared_remark(shared: SharedTasks) -> str:
    """Say how many tasks two versions of a dataset share, and what the others need."""
    are = "is" if shared.same == 1 else "are"
    parts = [
        f"{shared.same} of {format_count(shared.common, 'common task')} {are} the same in both "
        "versions of the dataset"
    ]
    for tasks, what in (
        (shared.rescore, "rescore"),
        (shared.judge, "judge again"),
        (shared.run, "run again"),
    ):
        if tasks:
            parts.append(f"{len(tasks)} to {what} ({_name_some(tasks)})")
    text = f"{parts[0]}{'; ' if parts[1:] else ''}{', '.join(parts[1:])}."
    if shared.rescore or shared.judge:
        text += " `gta score RUN --data DATASET` brings a run to the other version."
    return text


def _name_some(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:10]) + (" …" if len(tasks) > 10 else "")


def _row(one: MetricDifference, *, lacking: bool) -> tuple[str, ...]:
    digits = 4 if one.metric == COST.label else 2
    low, high = one.difference.low, one.difference.high
    missing = one.envelope
    cases = "-" if missing is None else f"{missing.low:+.2f} to {missing.high:+.2f}"
    apart = "-" if one.p_holm is None else "yes" if one.apart else "no"
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
        apart,
        "-" if one.apart else f"{one.detectable:.{digits}f}",
    )


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
