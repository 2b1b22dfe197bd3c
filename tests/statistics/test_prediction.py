"""Rates that a labeled part corrects: known cases, and coverage in simulation (short form)."""

import numpy as np
import pytest

from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import Ratio, compute_difference, compute_interval
from gta_bench.statistics.prediction import (
    JudgedPart,
    bias_variance,
    estimate_difference,
    estimate_rate,
)
from tests.statistics.simulation import (
    coverage,
    judged_and_labeled,
    partly_sure,
    two_judged_and_labeled,
)


def parts(
    labeled: list[tuple[float, float]], others: list[float], *, whole: float = 1.0
) -> list[JudgedPart]:
    """Labeled units as (judge, people), then what the judge says of the others."""
    known = [JudgedPart(f"k{n}", judge, people, whole) for n, (judge, people) in enumerate(labeled)]
    return [*known, *(JudgedPart(f"o{n}", judge, None, whole) for n, judge in enumerate(others))]


def test_a_lenient_judge_is_corrected_downwards_and_the_interval_is_shorter_than_labels_alone() -> (
    None
):
    random = np.random.default_rng(3)
    given = judged_and_labeled(random, tasks=400, labeled=100, share=0.3, leaves=False)
    raw = sum(part.judged for part in given) / len(given)
    found = estimate_rate(given)
    alone = estimate_rate(given[:100])
    assert (found.method, alone.method) == ("prediction-powered", "labels-only")
    assert raw > 0.33
    assert found.low < 0.3 < found.high
    assert found.estimate < raw
    assert found.high - found.low < alone.high - alone.low


def test_a_judge_worth_nothing_leaves_the_labels_rate() -> None:
    """People and judge are opposite: the best weight is 0."""
    labeled = [(0.0, 1.0)] * 10 + [(1.0, 0.0)] * 10
    found = estimate_rate(parts(labeled, [1.0] * 30 + [0.0] * 10))
    assert found.estimate == pytest.approx(0.5)


@pytest.mark.parametrize(
    "given",
    [
        parts([(1.0, 1.0)] * 6 + [(0.0, 0.0)] * 6, []),  # nothing is left to correct
        parts([(1.0, 0.0)] * 6 + [(0.0, 1.0)] * 6, [1.0, 0.0]),  # the judge is worth nothing
        parts([(1.0, 0.0)] * 9, [1.0, 0.0]),  # people say the same of all
        parts([(1.0, 1.0)] + [(0.0, 0.0)] * 11, [1.0] * 9),  # what others say would widen it
    ],
)
def test_where_labels_cannot_correct_they_stand_alone(given: list[JudgedPart]) -> None:
    found = estimate_rate(given)
    assert found.method == "labels-only"
    assert found.n == sum(part.labeled is not None for part in given)


def test_scores_of_ten_are_corrected_on_their_own_scale() -> None:
    labeled = [(8.0, 6.0), (9.0, 7.0), (3.0, 2.0), (5.0, 4.0), (10.0, 8.0)]
    found = estimate_rate(parts(labeled, [8.0, 5.0, 9.0, 2.0] * 5), top=10)
    assert 3.5 < found.estimate < 5.5
    assert 0 < found.low < found.estimate < found.high < 10


def test_without_labels_there_is_nothing_to_correct_with() -> None:
    with pytest.raises(ValueError, match="nothing is labeled"):
        estimate_rate(parts([], [1.0]))


def width(found: Interval) -> float:
    return found.high - found.low


def test_the_better_the_judge_the_shorter_the_interval() -> None:
    """A judge without a seen error was once dropped: 36 points where one with errors had 27."""
    labeled = [(1.0, 1.0)] * 9 + [(0.0, 0.0)] * 21
    widths = []
    for wrong in range(4):
        seen = [(1.0, 0.0)] * wrong + [(0.0, 1.0)] * wrong
        given = parts(labeled[wrong : 30 - wrong] + seen, [1.0] * 31 + [0.0] * 71)
        widths.append(width(estimate_rate(given)))
    alone = width(estimate_rate(parts(labeled, [])))
    assert widths == sorted(widths)
    assert widths[0] < 0.7 * alone
    assert widths[-1] < alone


def test_a_judge_that_was_never_wrong_on_labels_is_not_taken_to_be_without_error() -> None:
    given = parts([(1.0, 1.0)] * 9 + [(0.0, 0.0)] * 21, [1.0] * 31 + [0.0] * 71)
    found = estimate_rate(given)
    judge = compute_interval(Ratio([part.judged for part in given], [1.0] * len(given)))
    assert found.estimate == pytest.approx(judge.estimate, abs=0.001)
    assert width(found) > 1.1 * width(judge)


def test_what_was_less_likely_to_be_labeled_weighs_more() -> None:
    """People labeled all tasks that the judge passed, and a third of the others."""
    passed = [JudgedPart(f"p{n}", 1.0, float(n < 30), chance=1.0) for n in range(60)]
    failed = [
        JudgedPart(f"f{n}", 0.0, float(n < 6) if n < 20 else None, chance=1 / 3) for n in range(60)
    ]
    truth = (30 + 3 * 6) / 120
    assert estimate_rate([*passed, *failed]).estimate == pytest.approx(truth)
    alike = [part._replace(chance=1.0) for part in (*passed, *failed)]
    assert estimate_rate(alike).estimate > 0.41


def test_leaves_of_a_task_that_is_labeled_in_part_are_used() -> None:
    whole = [JudgedPart(f"t{n}", float(n % 2), float(n % 3 > 0)) for n in range(30)]
    leaf = JudgedPart("t0", 1.0, None)
    found = estimate_rate([*whole, *(leaf._replace(task=f"t{n}") for n in range(20))])
    assert found.n == 30
    assert found.estimate != pytest.approx(20 / 30, abs=1e-6)


@pytest.mark.parametrize("leaves", [True, False])
def test_the_interval_covers(leaves: bool) -> None:
    held = coverage(
        lambda random, seed: estimate_rate(
            judged_and_labeled(random, tasks=80, labeled=30, share=0.25, leaves=leaves)
        ),
        0.25,
        datasets=120,
    )
    assert 0.89 <= held <= 1.0


def test_the_judges_own_interval_would_not_cover() -> None:
    """What the correction is for: the raw rate is wrong however many tasks are judged."""
    random = np.random.default_rng(1)
    given = judged_and_labeled(random, tasks=5000, labeled=0, share=0.1, leaves=False)
    assert sum(part.judged for part in given) / 5000 > 0.2


def test_a_judge_that_passes_nearly_all_still_gives_an_interval() -> None:
    """Without the one task that it fails it says the same of all."""
    labeled = [(1.0, 1.0)] * 13 + [(1.0, 0.0)] * 6 + [(0.0, 1.0)]
    found = estimate_rate(parts(labeled, [1.0] * 40))
    assert 0 < found.low < found.estimate < found.high < 1


@pytest.mark.parametrize("leaves", [True, False])
def test_a_judge_that_favors_one_of_two_systems_is_corrected(leaves: bool) -> None:
    """Equal systems; of what the first gets wrong, the judge passes a quarter."""
    random, held, deceived, estimates = np.random.default_rng(5), 0, 0, []
    for _ in range(40):
        first, second = two_judged_and_labeled(
            random,
            tasks=132,
            labeled=40,
            shares=(0.3, 0.3),
            leaves=leaves,
            errors=((0.0, 0.25), (0.05, 0.0)),
        )
        found = estimate_difference(first, second)
        held += found.low <= 0 <= found.high
        estimates.append(found.estimate)
        judge = compute_difference(*(by_task(parts) for parts in (first, second)))
        deceived += judge.interval.low > 0
    assert held >= 35
    assert deceived >= 30
    assert abs(float(np.mean(estimates))) < 0.03


def by_task(given: list[JudgedPart]) -> Ratio:
    tasks: dict[str, list[float]] = {}
    for part in given:
        tasks.setdefault(part.task, []).append(part.judged)
    return Ratio([sum(own) for own in tasks.values()], [len(own) for own in tasks.values()])


def test_a_difference_of_labels_alone_is_that_of_any_two_systems() -> None:
    given = parts([(1.0, 0.0)] * 5 + [(0.0, 1.0)] * 5, [])
    found = estimate_difference(given, given)
    same = Ratio([0.0] * 5 + [1.0] * 5, [1.0] * 10)
    wanted = compute_difference(same, same).interval
    assert (found.estimate, found.low, found.high) == (0, wanted.low, wanted.high)
    assert found.method == "labels-only"
    constant = parts([(1.0, 1.0)] * 5 + [(0.0, 1.0)] * 5, [])
    assert estimate_difference(given, constant).estimate == -0.5


def test_labels_of_other_tasks_have_no_difference_of_their_own() -> None:
    one, two = parts([(1.0, 0.0)] * 5 + [(0.0, 1.0)] * 5, []), parts([(1.0, 1.0)] * 5, [])
    found = estimate_difference(one, [part._replace(task=f"x{part.task}") for part in two])
    assert (found.estimate, found.method) == (-0.5, "labels-only")
    assert found.low < -0.75


@pytest.mark.parametrize("labeled", [30, 132])
def test_the_difference_of_two_systems_that_are_alike_covers(labeled: int) -> None:
    """The second passes 5 % more; the judge errs on the same tasks of both.

    The interval was once 0 wide where no labeled task differs, and held the truth in 64 to 86 %.
    """
    random, held = np.random.default_rng(11), 0
    for _ in range(60):
        first = random.random(132) < 0.5
        second = first | (random.random(132) < 0.05)
        wrong = random.random(132) < 0.3
        sides = []
        for good in (first, second):
            seen, right = (good ^ wrong).astype(float).tolist(), good.astype(float).tolist()
            known = list(zip(seen[:labeled], right[:labeled], strict=True))
            sides.append(parts(known, seen[labeled:]))
        found = estimate_difference(*sides)
        assert found.low < found.high
        held += found.low <= -0.025 <= found.high
    assert held >= 55


def test_errors_that_no_label_shows_may_reach_over_all() -> None:
    one = parts([(1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)], [0.0, 1.0] * 9)
    found = estimate_difference(one, one)
    assert -1 <= found.low < -0.4
    assert 0.4 < found.high <= 1


def test_a_judge_that_was_always_off_by_the_same_is_not_taken_to_be_so_everywhere() -> None:
    """Root Score, one point above people in each of three tasks."""
    others = [4.0, 6.0, 8.0, 2.0] * 10
    always = parts([(6.0, 5.0), (3.0, 2.0), (9.0, 8.0)], others)
    exact = parts([(6.0, 6.0), (3.0, 3.0), (9.0, 9.0)], others)
    assert width(estimate_rate(always, top=10)) == pytest.approx(
        width(estimate_rate(exact, top=10)), rel=0.1
    )


def test_what_fails_by_rule_is_not_corrected() -> None:
    """What the judge does to works that are there was once taken to hold for the others too.

    Of 132 tasks 30 % deliver something and 15 % are good: it said 27 %, and held the truth in 40 %.
    """
    random, held, estimates = np.random.default_rng(8), 0, []
    for _ in range(60):
        given = partly_sure(random, delivered=0.3, labeled=25, share=0.5, errors=(0.3, 0.0))
        found = estimate_rate(given)
        assert found.n == min(25, sum(not part.sure for part in given))
        held += found.low <= 0.15 <= found.high
        estimates.append(found.estimate)
    assert held >= 55
    assert float(np.mean(estimates)) == pytest.approx(0.15, abs=0.015)


def test_where_people_pass_nothing_what_is_sure_makes_a_zero_no_surer_than_it_is() -> None:
    """0 of 30 labels speak for 60 tasks, and 60 others are sure to fail: half of 0 of 30."""
    asked = [JudgedPart(f"a{n}", 0.0, 0.0 if n < 30 else None) for n in range(60)]
    sure = [JudgedPart(f"s{n}", 0.0, 0.0, sure=True) for n in range(60)]
    found, alone = estimate_rate([*asked, *sure]), estimate_rate(asked)
    assert (found.low, found.n) == (0, 30)
    assert found.high == pytest.approx(alone.high / 2, rel=0.1)


def test_what_is_sure_says_nothing_of_the_judge() -> None:
    sure = [JudgedPart(f"s{n}", 0.0, 0.0, sure=True) for n in range(60)]
    with pytest.raises(ValueError, match="nothing is labeled"):
        estimate_rate([*sure, JudgedPart("o", 1.0, None)])
    one = parts([(1.0, 1.0), (0.0, 0.0)] * 5, [1.0, 0.0] * 20)
    all_of_it, alone = bias_variance([*one, *sure]), bias_variance(one)
    assert all_of_it is not None
    assert alone is not None
    assert all_of_it < alone
    assert bias_variance([*one[:10], *sure]) == 0


def test_a_difference_knows_what_is_sure() -> None:
    """Systems that are alike, one of which delivers nothing in ten tasks."""
    first = parts([(1.0, 1.0), (0.0, 0.0)] * 10, [1.0, 0.0] * 20)
    second = [
        part._replace(judged=0.0, labeled=0.0, sure=True) if n >= 50 else part
        for n, part in enumerate(first)
    ]
    found = estimate_difference(first, second)
    assert found.n == 20
    assert found.low < 5 / 60 < found.high
    assert found.estimate == pytest.approx(5 / 60, abs=0.02)


def test_the_bias_of_a_judge_is_open_where_labels_do_not_tell_how_it_varies() -> None:
    """One task says nothing of others; a judge that is always wrong may be right elsewhere."""
    others = [1.0, 0.0] * 20
    assert bias_variance(parts([(1.0, 0.0)], others)) is None
    two = [JudgedPart("a", 1.0, 0.0, chance=1e-9), JudgedPart("b", 0.0, 0.0)]
    assert bias_variance([*two, *parts([], others)]) is None
    always = bias_variance(parts([(1.0, 0.0)] * 5, others))
    once = bias_variance(parts([(1.0, 0.0)] + [(0.0, 0.0)] * 4, others))
    assert always is not None
    assert once is not None
    assert 0 < always < once
    # Of few labels the spread is larger than it looks: 1 / (n - 1) and not 1 / n.
    assert once == pytest.approx(40 / 45 * 0.2 * 0.8 / 4)
