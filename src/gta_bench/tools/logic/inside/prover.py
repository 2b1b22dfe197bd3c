"""Prover's driver: z3 on the SMT-LIB text of `theorem.smt2`; the reply is a small JSON object.

A theorem is true if its negation is unsatisfiable. z3 executes commands that read and write files;
in the jail there is nothing to read, and the folder is deleted afterwards.
"""

import json
from pathlib import Path
from typing import Any

import z3

MILLISECONDS = 5000
MOST_LINES = 200


def prepare() -> dict[str, Any]:
    """Nothing but the import above."""
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return z3's decision as JSON."""
    outcome, detail = decide(Path("theorem.smt2").read_text(encoding="utf-8"))
    return json.dumps({"outcome": outcome, "detail": detail})


def decide(source: str) -> tuple[str, str]:
    """Return the outcome in one word, and its details."""
    try:
        assertions = z3.parse_smt2_string(source)
    except z3.Z3Exception as exc:
        value = exc.value.decode("utf-8", "replace") if isinstance(exc.value, bytes) else exc.value
        return "invalid", str(value).strip()
    if len(assertions) == 0:
        return "empty", ""
    theorem = z3.And(*assertions)
    solver = check(z3.Not(theorem))
    state = solver.check()
    if state == z3.unsat:
        return "proved", ""
    if state == z3.unknown:
        return "unknown", solver.reason_unknown()
    contradictory = check(theorem).check() == z3.unsat
    return ("contradictory" if contradictory else "refuted"), model_text(solver.model())


def check(formula: Any) -> Any:
    """Return a solver with that one assertion."""
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(formula)
    return solver


def model_text(model: Any) -> str:
    """Return one line for each constant and function, sorted by name."""
    lines = sorted(f"{entry.name()} = {model[entry]}" for entry in model.decls())
    return "\n".join(lines[:MOST_LINES])
