import pytest
from pydantic import ValidationError

from gta_bench.records.leaderboard import Score


@pytest.mark.parametrize("given", [{"k": 3}, {"n": 3}])
def test_a_count_is_whole_or_missing(given: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="given together"):
        Score.model_validate({"value": 1.0, **given})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_is_a_number(value: float) -> None:
    with pytest.raises(ValidationError):
        Score(value=value)
