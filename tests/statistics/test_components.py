import numpy as np
import pytest

from gta_bench.statistics.components import variance_components
from tests.statistics.simulation import crossed


def test_components_are_those_of_the_analysis_of_variance_by_hand() -> None:
    """Two harnesses, two models, two tasks, one run; mean squares written out."""
    y = np.array([[[1.0, 2.0], [4.0, 3.0]], [[6.0, 9.0], [8.0, 15.0]]])
    signs = np.array([1.0, -1.0])
    h, m, t = signs[:, None, None], signs[None, :, None], signs[None, None, :]

    def square(contrast: np.ndarray) -> float:
        return float((y * contrast).sum() ** 2 / 8)

    result = variance_components(y[..., None].tolist())
    hmt = square(h * m * t)
    assert result.variance["harness x model x task"] == pytest.approx(hmt)
    assert result.variance["harness x model"] == pytest.approx((square(h * m) - hmt) / 2)
    assert result.variance["harness"] == pytest.approx(
        (square(h) - square(h * m) - square(h * t) + hmt) / 4
    )
    assert "run" not in result.variance
    assert sum(result.share.values()) == pytest.approx(1)


def test_repeats_separate_luck_from_the_highest_interaction() -> None:
    random = np.random.default_rng(2)
    scores = crossed(random, harnesses=3, models=4, tasks=10, runs=2)
    result = variance_components(scores.tolist())
    run = float(scores.var(axis=3, ddof=1).mean())
    assert result.variance["run"] == pytest.approx(run)
    alone = variance_components(scores.mean(axis=3, keepdims=True).tolist())
    highest = [one.variance["harness x model x task"] for one in (result, alone)]
    assert highest[0] == pytest.approx(highest[1] - run / 2)
    assert list(result.variance)[-1] == "run"
    assert (result.harnesses, result.models, result.tasks, result.runs) == (3, 4, 10, 2)


def test_equal_scores_have_no_variance_to_share() -> None:
    result = variance_components(np.ones((2, 2, 3, 2)).tolist())
    assert set(result.share.values()) == {0.0}


@pytest.mark.parametrize("shape", [(1, 2, 3, 1), (2, 2, 1, 1), (2, 2, 3)])
def test_a_design_that_is_not_crossed_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="all crossed"):
        variance_components(np.ones(shape).tolist())
