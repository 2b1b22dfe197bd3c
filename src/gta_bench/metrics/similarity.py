"""How alike two texts are, from 0 to 1: always a parameter of a score, never loaded by it."""

from collections.abc import Callable

SimilarityFunction = Callable[[str, str], float]


def exact(left: str, right: str) -> float:
    """1 where the texts are equal, else 0."""
    return 1.0 if left == right else 0.0


def exact_or_half(left: str, right: str) -> float:
    """1 where the texts are equal, else 0.5: the stand-in that the parity figures use."""
    return 1.0 if left == right else 0.5


def bounded(similarity: SimilarityFunction) -> SimilarityFunction:
    """The same similarity, held within 0 and 1; what is not a number counts as 0."""

    def within(left: str, right: str) -> float:
        return min(1.0, max(0.0, float(similarity(left, right))))

    return within
