"""A similarity model: its recorded name, whether it is upstream's, and its function."""

from collections.abc import Callable
from typing import NamedTuple


class Similarity(NamedTuple):
    """`comparable` says whether its scores may stand beside published ones."""

    name: str
    comparable: bool
    measure: Callable[[str, str], float]
