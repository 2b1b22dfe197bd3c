import numpy as np
import pytest

from gta_bench.statistics.pooled import pass_at_k, pass_hat_k, run_variance


@pytest.mark.parametrize(
    ("successes", "runs", "k", "at", "hat"),
    [
        # Five runs, two of them right: 1 - C(3,k)/C(5,k) and C(2,k)/C(5,k).
        (2, 5, 1, 0.4, 0.4),
        (2, 5, 2, 0.7, 0.1),
        (2, 5, 3, 0.9, 0.0),
        (2, 5, 4, 1.0, 0.0),
        (0, 3, 2, 0.0, 0.0),
        (3, 3, 2, 1.0, 1.0),
    ],
)
def test_pass_at_k_and_pass_hat_k_of_one_task(
    successes: int, runs: int, k: int, at: float, hat: float
) -> None:
    assert pass_at_k([successes], [runs], k).estimate == pytest.approx(at)
    assert pass_hat_k([successes], [runs], k).estimate == pytest.approx(hat)


def test_over_tasks_they_are_means_with_an_interval() -> None:
    successes, runs = [0, 1, 2, 4] * 20, [4] * 80
    at, hat = pass_at_k(successes, runs, 2), pass_hat_k(successes, runs, 2)
    assert at.estimate == pytest.approx((0 + 0.5 + 5 / 6 + 1) / 4)
    assert hat.estimate == pytest.approx((0 + 0 + 1 / 6 + 1) / 4)
    assert at.low < at.estimate < at.high
    assert hat.n == 80


def test_they_are_unbiased() -> None:
    random = np.random.default_rng(5)
    chances = random.beta(1, 2, 2000)
    successes = [int(value) for value in random.binomial(6, chances)]
    assert pass_at_k(successes, [6] * 2000, 3).estimate == pytest.approx(
        np.mean(1 - (1 - chances) ** 3), abs=0.015
    )
    assert pass_hat_k(successes, [6] * 2000, 3).estimate == pytest.approx(
        np.mean(chances**3), abs=0.015
    )


def test_more_runs_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="cannot draw 4 runs of a task from 3"):
        pass_at_k([1], [3], 4)


def test_variance_of_repeats_is_the_one_way_analysis() -> None:
    """Three tasks, two runs; by hand: within (2 + 0 + 2) / 3, means 1, 4, 7."""
    result = run_variance([[0, 2], [4, 4], [6, 8]])
    assert (result.tasks, result.runs) == (3, 2)
    assert result.mean == 4
    assert result.within_tasks == pytest.approx(4 / 3)
    assert result.between_tasks == pytest.approx(9 - 2 / 3)
    assert result.run_sd == pytest.approx(np.std([10 / 3, 14 / 3], ddof=1))
    assert result.unstable == pytest.approx(2 / 3)


def test_the_three_runs_of_a_reader_of_gta_spread_by_three_points() -> None:
    """14.35, 19.05 and 13.07 for the same model: 2.57 is their population's deviation."""
    result = run_variance([[14.35, 19.05, 13.07], [14.35, 19.05, 13.07]])
    assert result.run_sd * np.sqrt(2 / 3) == pytest.approx(2.57, abs=0.01)
    assert result.between_tasks == 0


@pytest.mark.parametrize("scores", [[[1.0], [2.0]], [[1.0, 2.0]]])
def test_one_run_or_one_task_has_no_variance(scores: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="two tasks and two runs"):
        run_variance(scores)
