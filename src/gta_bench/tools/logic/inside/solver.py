"""Solver's driver: sympy's names for the code, the text of `solution()` for the reply."""

from typing import Any

import sympy


def prepare() -> dict[str, Any]:
    """The names that upstream's tool gives to the code."""
    return {"symbols": sympy.symbols, "Eq": sympy.Eq, "solve": sympy.solve}


def finish(names: dict[str, Any]) -> str:
    """What the function gave back, as text."""
    if not callable(names.get("solution")):
        raise NameError("the code must define a function `solution()`")
    return str(names["solution"]())
