"""Plot's driver: pyplot for the code, the figure of `solution()` as PNG for the reply."""

import io
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure


def prepare() -> dict[str, Any]:
    """The name that upstream's tool gives to the code."""
    return {"plt": plt}


def finish(names: dict[str, Any]) -> bytes:
    """The figure as PNG."""
    if not callable(names.get("solution")):
        raise NameError("the code must define a function `solution()`")
    figure = names["solution"]()
    if not isinstance(figure, Figure):
        kind = type(figure).__name__
        raise TypeError(f"`solution()` must return a matplotlib Figure, not {kind}")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()
