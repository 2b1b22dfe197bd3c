"""Whether stated scores can be scores of GTA at all: counts, ranges, and what binds two metrics.

Only what a reader can check without the predictions. docs/leaderboard.md derives each rule.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from gta_bench.records.leaderboard import Board, Entry, EntryCheck, EntryFinding, MetricName, Score

# What each share is a share of; metrics that sum up similarities are shares of nothing.
DENOMINATORS: Final[Mapping[Board, Mapping[MetricName, int]]] = {
    "atomic": {"inst_acc": 729, "tool_acc": 557, "arg_acc": 557},
    "workflow": {
        "root_sr": 132,
        "leaf_sr": 1156,
        "p_sr": 38,
        "o_sr": 84,
        "l_sr": 122,
        "c_sr": 24,
    },
    "workflow-30": {"root_sr": 30, "leaf_sr": 276},
}
# Strict scoring counts every turn of the reference; compat's denominator has 41 fewer.
TURNS: Final = 770
ANSWERS: Final = 172
TASKS: Final = 229
# What compat's formulas reach at most: the reference itself, and every needed tool called once.
COMPAT_TOPS: Final[Mapping[MetricName, float]] = {
    "inst_acc": 100 * TURNS / 729,
    "p_f1": 104.6328,
    "o_f1": 104.5747,
    "l_f1": 104.9685,
}
LABELS: Final[Mapping[MetricName, str]] = {
    "inst_acc": "InstAcc",
    "tool_acc": "ToolAcc",
    "arg_acc": "ArgAcc",
    "summ_acc": "SummAcc",
    "p_f1": "P-F1",
    "o_f1": "O-F1",
    "l_f1": "L-F1",
    "c_f1": "C-F1",
    "ans_acc": "AnsAcc",
    "ans_acc_i": "AnsAcc+I",
    "tool_sr": "Tool SR",
    "p_sr": "P-SR",
    "o_sr": "O-SR",
    "l_sr": "L-SR",
    "c_sr": "C-SR",
    "root_score": "Root score",
    "leaf_sr": "Leaf SR",
    "root_sr": "Root SR",
}
# For floating point only; the tolerance of a rounded value comes from its decimals.
EPSILON: Final = 1e-9


def check_entry(entry: Entry) -> tuple[EntryFinding, ...]:
    """Everything in the entry that cannot be."""
    return (*_counts(entry), *_ranges(entry), *_calls(entry), *_answers(entry))


def denominator(entry: Entry, metric: MetricName) -> int | None:
    """What the metric is a share of in this entry; None where it is not a share."""
    if metric == "inst_acc" and entry.scoring == "strict":
        return TURNS
    return DENOMINATORS[entry.board].get(metric)


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
        top = 10.0 if metric == "root_score" else 100.0
        if entry.scoring == "compat":
            top = COMPAT_TOPS.get(metric, top)
        if not -EPSILON <= score.value <= top + _slack(score):
            yield _finding(entry, "out-of-range", metric, f"does not lie between 0 and {top:g}")


def _calls(entry: Entry) -> Iterator[EntryFinding]:
    """Right arguments count only in a call of the right tool."""
    tool, arg = entry.scores.get("tool_acc"), entry.scores.get("arg_acc")
    if tool and arg and arg.value > tool.value + _slack(tool) + _slack(arg):
        yield _finding(entry, "arg-above-tool", "arg_acc", f"exceeds ToolAcc {_shown(tool)}")


def _answers(entry: Entry) -> Iterator[EntryFinding]:
    """AnsAcc+I sums the same 172 answers and 57 image tasks worth 0 to 1 each, over 229."""
    answer, both = entry.scores.get("ans_acc"), entry.scores.get("ans_acc_i")
    if answer is None or both is None:
        return
    low = answer.value * ANSWERS / TASKS
    high = low + 100 * (TASKS - ANSWERS) / TASKS
    slack = _slack(answer) * ANSWERS / TASKS + _slack(both)
    if not low - slack <= both.value <= high + slack:
        yield _finding(
            entry,
            "ans-acc-i-bound",
            "ans_acc_i",
            f"does not lie between {low:.2f} and {high:.2f}, as AnsAcc {_shown(answer)} demands",
        )


def _finding(entry: Entry, check: EntryCheck, metric: MetricName, fact: str) -> EntryFinding:
    message = f"{LABELS[metric]} {_shown(entry.scores[metric])} {fact}"
    return EntryFinding(entry=entry.id, check=check, metric=metric, message=message)


def _shown(score: Score) -> str:
    return f"{score.value:.{score.decimals}f}"


def _slack(score: Score) -> float:
    """How far the rounded value may lie from the true one."""
    return 0.5 * 10.0**-score.decimals + EPSILON
