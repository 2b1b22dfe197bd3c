"""Corrected rates, cell by cell. The printed figures go to docs/measurements.md.

The cells: leaves (correlation within tasks 0.4) and roots; shares 0.1, 0.3
and 0.5; 30 and 60 of 132 tasks labeled; judges that are wrong in 0, 1, 4, 5, 8 and 15 % of the
cases, in both directions or, for roots with 30 labeled tasks, in one. 1,000 datasets a cell. Then
differences of two systems on the same tasks, where of what the first gets wrong the judge passes
30 % more; 500 datasets a cell for leaves, 1,000 for roots.
"""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest

from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import Ratio, compute_interval
from gta_bench.statistics.prediction import JudgedPart, estimate_difference, estimate_rate
from tests.statistics.simulation import (
    judged_and_labeled,
    partly_sure,
    two_judged_and_labeled,
)

pytestmark = pytest.mark.measure
DATASETS = 1000
ERRORS = (0.0, 0.01, 0.04, 0.05, 0.08, 0.15)
SHARES = (0.1, 0.3, 0.5)
# Which of the errors a judge makes: good things failed, bad things passed.
JUDGES = {"both ways": (1, 1), "lenient": (0, 1), "strict": (1, 0)}


def labels_alone(parts: list[JudgedPart]) -> Interval:
    """What people's labels say without the judge."""
    tasks: dict[str, list[float]] = {}
    for part in parts:
        if part.labeled is not None:
            tasks.setdefault(part.task, []).append(part.labeled)
    return compute_interval(
        Ratio([sum(own) for own in tasks.values()], [len(own) for own in tasks.values()])
    )


def datasets(
    share: float, labeled: int, errors: tuple[float, float], leaves: bool
) -> Iterator[list[JudgedPart]]:
    """The same tasks for every judge."""
    random = np.random.default_rng([20261116, labeled, int(100 * share), leaves])
    for _ in range(DATASETS):
        yield judged_and_labeled(
            random, tasks=132, labeled=labeled, share=share, leaves=leaves, errors=errors
        )


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("labeled", [30, 60])
def test_corrected_rates_cover_and_better_judges_narrow_them(labeled: int, leaves: bool) -> None:
    kind = "leaves" if leaves else "roots"
    for (name, ways), share in product(JUDGES.items(), SHARES):
        if name != "both ways" and (leaves or labeled > 30):
            continue
        held, widths, ratios = [], [], []
        for error in ERRORS:
            covered, width, alone = 0, 0.0, 0.0
            for parts in datasets(share, labeled, (ways[0] * error, ways[1] * error), leaves):
                found, labels = estimate_rate(parts), labels_alone(parts)
                covered += found.low <= share <= found.high
                assert found.high - found.low <= labels.high - labels.low + 1e-12
                width += found.high - found.low
                alone += labels.high - labels.low
            held.append(covered / DATASETS)
            widths.append(width / DATASETS)
            ratios.append(width / alone)
        print(f"{kind}, {labeled} of 132 tasks, share {share}, {name}:")
        print("  covers", *(f"{100 * one:.1f}" for one in held))
        print("  points", *(f"{100 * one:.1f}" for one in widths))
        print("  of labels alone", *(f"{one:.3f}" for one in ratios))
        assert min(held) >= 0.93
        assert all(one <= two for one, two in pairwise(widths))
        if share >= 0.3:
            assert ratios[ERRORS.index(0.05)] <= 0.80


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("labeled", [30, 60])
def test_corrected_differences_cover_where_a_judge_favors_one(labeled: int, leaves: bool) -> None:
    kind, count = ("leaves", DATASETS // 2) if leaves else ("roots", DATASETS)
    random = np.random.default_rng([20261117, labeled, leaves])
    for shares, favor in product(((0.1, 0.1), (0.3, 0.3), (0.5, 0.3)), (0.0, 0.3)):
        covered, width, gap = 0, 0.0, 0.0
        for _ in range(count):
            found = estimate_difference(
                *two_judged_and_labeled(
                    random,
                    tasks=132,
                    labeled=labeled,
                    shares=shares,
                    leaves=leaves,
                    errors=((0.02, 0.02 + favor), (0.02, 0.02)),
                )
            )
            covered += found.low <= shares[0] - shares[1] <= found.high
            width += found.high - found.low
            gap += found.estimate - (shares[0] - shares[1])
        held, width, gap = (one / count for one in (covered, width, gap))
        print(
            f"difference, {kind}, {labeled} of 132 tasks, shares {shares}, favor {favor}: "
            f"covers {held:.1%}, {100 * width:.1f} points, bias {100 * gap:+.2f}"
        )
        assert held >= 0.93


def alike(
    random: np.random.Generator, labeled: int, share: float, better: float, wrong: float
) -> tuple[list[JudgedPart], list[JudgedPart]]:
    """The second passes what the first does and a part of the rest; the judge errs on the same."""
    tasks = range(132)
    first = random.random(len(tasks)) < share
    second = first | (random.random(len(tasks)) < better)
    misread = random.random(len(tasks)) < wrong
    one, two = (
        [
            JudgedPart(str(n), float(good[n] ^ misread[n]), float(good[n]) if n < labeled else None)
            for n in tasks
        ]
        for good in (first, second)
    )
    return one, two


@pytest.mark.parametrize("labeled", [10, 30, 60, 132])
def test_corrected_differences_of_systems_that_are_alike_cover(labeled: int) -> None:
    random = np.random.default_rng([20261118, labeled])
    for share, better, wrong in product((0.1, 0.3, 0.5), (0.02, 0.05, 0.1), (0.0, 0.05, 0.15)):
        covered, width, truth = 0, 0.0, -better * (1 - share)
        for _ in range(DATASETS):
            found = estimate_difference(*alike(random, labeled, share, better, wrong))
            covered += found.low <= truth <= found.high
            width += found.high - found.low
        held = covered / DATASETS
        print(
            f"alike, {labeled} of 132 tasks, share {share}, {better} better, judge {wrong} wrong: "
            f"covers {held:.1%}, {100 * width / DATASETS:.1f} points"
        )
        # One cell has 92.5 % (docs/measurements.md).
        assert held >= 0.92


@pytest.mark.parametrize("labeled", [15, 30])
def test_corrected_rates_cover_where_some_tasks_deliver_nothing(labeled: int) -> None:
    random = np.random.default_rng([20261119, labeled])
    judges = ((0.0, 0.0), (0.05, 0.05), (0.3, 0.0), (0.0, 0.3))
    for delivered, share, errors in product((0.3, 0.5, 0.8), (0.1, 0.5), judges):
        truth, found = delivered * share, []
        for _ in range(DATASETS):
            given = partly_sure(
                random, delivered=delivered, labeled=labeled, share=share, errors=errors
            )
            found.append(estimate_rate(given))
        held = float(np.mean([one.low <= truth <= one.high for one in found]))
        off = float(np.mean([one.estimate for one in found])) - truth
        print(
            f"{labeled} labeled, {delivered} deliver, {share} good, judge {errors}: "
            f"covers {held:.1%}, bias {100 * off:+.2f}"
        )
        assert held >= 0.93
