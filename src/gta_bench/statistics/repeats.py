"""The same tasks run several times: pass@k, pass^k, and how much of a score is luck."""

import math
from collections.abc import Sequence

import numpy as np

from gta_bench.records.statistics import Interval, RunVariance
from gta_bench.statistics.pooled import Ratio, interval_of


def pass_at_k(successes: Sequence[int], runs: Sequence[int], k: int) -> Interval:
    """The chance that at least one of `k` runs of a task succeeds, over all tasks.

    Unbiased for any number of runs of at least `k` (Chen et al. 2021).
    """
    return _over_tasks([1 - _all_among(n - c, n, k) for c, n in zip(successes, runs, strict=True)])


def pass_hat_k(successes: Sequence[int], runs: Sequence[int], k: int) -> Interval:
    """pass^k: the chance that all of `k` runs of a task succeed, over all tasks (tau-bench)."""
    return _over_tasks([_all_among(c, n, k) for c, n in zip(successes, runs, strict=True)])


def run_variance(scores: Sequence[Sequence[float]]) -> RunVariance:
    """Scores of tasks (rows) in runs (columns), split into what tasks and what luck explain."""
    table = np.asarray(scores, dtype=np.float64)
    tasks, runs = table.shape
    if runs < 2 or tasks < 2:
        raise ValueError("variance needs two tasks and two runs")
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / runs
    return RunVariance(
        runs=runs,
        tasks=tasks,
        mean=float(table.mean()),
        run_sd=float(table.mean(axis=0).std(ddof=1)),
        within_tasks=within,
        between_tasks=max(0.0, between),
        unstable=float(np.mean(table.min(axis=1) != table.max(axis=1))),
    )


def _all_among(good: int, n: int, k: int) -> float:
    """The chance that `k` drawn of `n` are all good."""
    if k > n:
        raise ValueError(f"{k} runs of a task cannot be drawn from {n}")
    return math.comb(good, k) / math.comb(n, k)


def _over_tasks(values: Sequence[float]) -> Interval:
    return interval_of(Ratio(values, [1.0] * len(values)))
