"""Whether stated scores can be scores of GTA at all: counts, ranges, and what binds two metrics.

Only what a reader can check without the predictions. docs/leaderboard.md derives each rule.
"""

from collections.abc import Iterator
from typing import Final

from gta_bench.metrics import table
from gta_bench.records.leaderboard import Entry, EntryCheck, EntryFinding, MetricName, Score

# For floating point only; the tolerance of a rounded value comes from its decimals.
EPSILON: Final = 1e-9


def check_entry(entry: Entry) -> tuple[EntryFinding, ...]:
    """Everything in the entry that cannot be."""
    return (*_counts(entry), *_ranges(entry), *_calls(entry), *_answers(entry))


def denominator(entry: Entry, metric: MetricName) -> int | None:
    """What the metric is a share of in this entry; None where it is not a share."""
    row = table.metric(metric)
    return released_size(entry, metric) if row.is_count else None


def released_size(entry: Entry, metric: MetricName) -> int | None:
    """The denominator of the metric on the released data; None where it is not known."""
    row = table.metric(metric)
    strict = row.released_strict.get(entry.board) if entry.scoring == "strict" else None
    return row.released.get(entry.board) if strict is None else strict


def count_behind(score: Score, n: int) -> int | None:
    """The whole number of `n` that the rounded value stands for; None where there is none."""
    k = round(score.value * n / 100)
    return k if abs(100 * k / n - score.value) <= _slack(score) else None


def _counts(entry: Entry) -> Iterator[EntryFinding]:
    for metric, score in entry.scores.items():
        n = denominator(entry, metric)
        if score.k is not None and score.n is not None:
            if n is not None and score.n != n:
                yield _finding(
                    entry, "other-count", metric, f"is given of {score.n}, and is a share of {n}"
                )
            elif abs(100 * score.k / score.n - score.value) > _slack(score):
                yield _finding(
                    entry, "other-count", metric, f"is not {score.k}/{score.n}, as the entry says"
                )
        elif n is not None and count_behind(score, n) is None:
            k = int(score.value * n / 100)
            near = " and ".join(
                f"{100 * one / n:.{score.decimals}f} ({one}/{n})" for one in (k, k + 1)
            )
            yield _finding(entry, "no-count", metric, f"is no k/{n}; the nearest are {near}")


def _ranges(entry: Entry) -> Iterator[EntryFinding]:
    for metric, score in entry.scores.items():
        row = table.metric(metric)
        top = row.top * row.factor
        if entry.scoring == "compat" and row.compat_top is not None:
            top = row.compat_top
        if not -EPSILON <= score.value <= top + _slack(score):
            yield _finding(entry, "out-of-range", metric, f"does not lie between 0 and {top:g}")


def _calls(entry: Entry) -> Iterator[EntryFinding]:
    """Right arguments count only in a call of the right tool."""
    tool, arg = entry.scores.get("tool_acc"), entry.scores.get("arg_acc")
    if tool and arg and arg.value > tool.value + _slack(tool) + _slack(arg):
        yield _finding(
            entry, "arg-above-tool", "arg_acc", f"exceeds {table.TOOL_ACC.label} {_shown(tool)}"
        )


def _answers(entry: Entry) -> Iterator[EntryFinding]:
    """AnsAcc+I sums the same 172 answers and 57 image tasks worth 0 to 1 each, over 229."""
    answer, both = entry.scores.get("ans_acc"), entry.scores.get("ans_acc_i")
    if answer is None or both is None:
        return
    answers, tasks = table.ANS_ACC.released["atomic"], table.ANS_ACC_I.released["atomic"]
    low = answer.value * answers / tasks
    high = low + 100 * (tasks - answers) / tasks
    slack = _slack(answer) * answers / tasks + _slack(both)
    if not low - slack <= both.value <= high + slack:
        yield _finding(
            entry,
            "ans-acc-i-bound",
            "ans_acc_i",
            f"does not lie between {low:.2f} and {high:.2f}, as {table.ANS_ACC.label} "
            f"{_shown(answer)} demands",
        )


def _finding(entry: Entry, check: EntryCheck, metric: MetricName, fact: str) -> EntryFinding:
    message = f"{table.label(metric)} {_shown(entry.scores[metric])} {fact}"
    return EntryFinding(entry=entry.id, check=check, metric=metric, message=message)


def _shown(score: Score) -> str:
    return f"{score.value:.{score.decimals}f}"


def _slack(score: Score) -> float:
    """How far the rounded value may lie from the true one."""
    return 0.5 * 10.0**-score.decimals + EPSILON
