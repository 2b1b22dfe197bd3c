"""Judges with planted blindness: the ceiling recovers where each of them errs, and how often."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from gta_bench.judge_quality.ceiling import (
    KnownLeaf,
    find_suspects,
    group_errors,
    group_table,
    sum_by_task,
    suspect_table,
)
from gta_bench.records.ceiling import ErrorRates

TASKS, THRESHOLD = 60, 7.0
LEAVES = [*product(("xlsx",), ("table", "xlsx")), *product(("docx",), ("doc", "text"))]
LEAVES += [("mp4", "media"), ("mp4", "file"), ("answer", "answer")]
# Gets whether a leaf holds, its kind of file, its type and a random number; returns a score.
ScriptedJudge = Callable[[bool, str, str, float], float]


def exact(holds: bool, kind: str, type: str, luck: float) -> float:
    return 9.0 if holds else 1.0


def never_sees_excel(holds: bool, kind: str, type: str, luck: float) -> float:
    return 0.0 if kind == "xlsx" else exact(holds, kind, type, luck)


def misses_titles_in_word(holds: bool, kind: str, type: str, luck: float) -> float:
    """It does not see four of five titles, so that it fails leaves that hold."""
    if (kind, type) == ("docx", "doc") and luck < 0.8:
        return 2.0
    return exact(holds, kind, type, luck)


def passes_every_film(holds: bool, kind: str, type: str, luck: float) -> float:
    return 8.0 if kind == "mp4" else exact(holds, kind, type, luck)


def is_wrong_one_time_in_ten(holds: bool, kind: str, type: str, luck: float) -> float:
    return exact(holds != (luck < 0.1), kind, type, luck)


def judge_tasks(judge: ScriptedJudge, seed: int = 28) -> Iterator[KnownLeaf]:
    """Two golds, and a wrong work that breaks each leaf."""
    random = np.random.default_rng(seed)
    for task in range(TASKS):
        for work in range(2 + len(LEAVES)):
            for number, (kind, type) in enumerate(LEAVES):
                holds = work - 2 != number
                scores = (judge(holds, kind, type, float(random.random())),)
                name = f"{kind}-{type}"
                yield KnownLeaf(str(task), name, holds, work < 2, (kind,), type, scores)


def rates(judge: ScriptedJudge) -> dict[str, ErrorRates]:
    return {one.name: one for one in group_errors(judge_tasks(judge), THRESHOLD)}


def holds_rate(found: ErrorRates, sensitivity: float, specificity: float) -> bool:
    one, two = found.sensitivity, found.specificity
    assert one is not None and two is not None
    return one.low <= sensitivity <= one.high and two.low <= specificity <= two.high


@pytest.mark.parametrize(
    ("judge", "blind", "planted"),
    [
        (never_sees_excel, ("xlsx", "xlsx, table", "xlsx, xlsx"), (1.0, 0.0)),
        (misses_titles_in_word, ("docx, doc",), (1.0, 0.2)),
        (passes_every_film, ("mp4", "mp4, media", "mp4, file"), (0.0, 1.0)),
        (is_wrong_one_time_in_ten, ("all", "xlsx", "docx", "mp4", "answer"), (0.9, 0.9)),
    ],
)
def test_planted_blindness_is_recovered_where_it_is(
    judge: ScriptedJudge, blind: tuple[str, ...], planted: tuple[float, float]
) -> None:
    found = rates(judge)
    assert all(holds_rate(found[name], *planted) for name in blind)
    # All other kinds of file are judged without error; what includes the blind part is not.
    clean = [name for name in ("xlsx", "docx, text", "mp4", "answer") if name not in blind]
    if judge is not is_wrong_one_time_in_ten:
        assert all(holds_rate(found[name], 1.0, 1.0) for name in clean)
        ends = [found[name].specificity for name in blind] + [
            found[name].sensitivity for name in blind
        ]
        assert any(one is not None and one.high < 0.9 for one in ends)


def test_overall_rates_mix_the_kinds_of_the_tasks() -> None:
    found = rates(never_sees_excel)["all"]
    assert (found.tasks, found.broken, found.intact) == (TASKS, 7 * TASKS, (9 * 7 - 7) * TASKS)
    assert holds_rate(found, 1.0, 5 / 7)
    rows = list(sum_by_task(judge_tasks(never_sees_excel), THRESHOLD))
    assert [(row.found, row.broken, row.passed, row.intact) for row in rows[:1]] == [(7, 7, 40, 56)]


def test_suspects_are_leaves_that_no_repeat_passed_in_any_gold() -> None:
    found = list(find_suspects(judge_tasks(never_sees_excel), THRESHOLD))
    assert len(found) == 2 * TASKS and {one.kinds for one in found} == {("xlsx",)}
    assert not list(find_suspects(judge_tasks(exact), THRESHOLD))
    assert not list(find_suspects(judge_tasks(passes_every_film), THRESHOLD))
    once = KnownLeaf("t", "a", True, True, ("docx",), "doc", (1.0, 9.0, 1.0), reason="not seen")
    assert not list(find_suspects([once], THRESHOLD)), "one repeat passed it"
    never = once._replace(scores=(1.0, None))
    assert not list(find_suspects([never._replace(scores=(None,))], THRESHOLD))
    (suspect,) = find_suspects([never, never], THRESHOLD)
    assert suspect_table([suspect]).rows == (("t", "a", "docx", "doc", "2", "", "not seen"),)


def test_leaves_without_a_score_in_every_repeat_are_left_out() -> None:
    known = KnownLeaf("t", "a", True, True, ("docx", "pdf"), "doc", (9.0, 6.0))
    leaves = [known, known._replace(scores=(9.0, None)), known._replace(scores=())]
    found = list(group_errors(leaves, THRESHOLD))
    assert [(one.by, one.name, one.intact) for one in found] == [
        *(("all", "all", 1), ("file", "docx", 1), ("file", "pdf", 1), ("leaf", "doc", 1)),
        *(("file and leaf", "docx, doc", 1), ("file and leaf", "pdf, doc", 1)),
    ]
    assert group_table(found).rows[0] == (
        *("all", "all", "1", "0", "-", "1", "100.00 (0.00 to 100.00)"),
    )
