"""Text similarity from 0 to 1; scoring functions take it as a parameter."""

from collections.abc import Callable

SimilarityFunction = Callable[[str, str], float]


def exact(left: str, right: str) -> float:
    """Return 1 if the texts are equal, else 0."""
    return 1.0 if left == right else 0.0


def exact_or_half(left: str, right: str) -> float:
    """Return 1 if the texts are equal, else 0.5; the parity numbers use it instead of a model."""
    return 1.0 if left == right else 0.5


def clip_similarity(similarity: SimilarityFunction) -> SimilarityFunction:
    """Clip a similarity to 0 and 1; NaN counts as 0."""

    def within(left: str, right: str) -> float:
        return min(1.0, max(0.0, float(similarity(left, right))))

    return within
