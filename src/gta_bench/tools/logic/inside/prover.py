"""Prover's driver: z3 on the SMT-LIB text of `theorem.smt2`; the reply is a small JSON object.

A theorem holds if its negation is unsatisfiable. z3 obeys commands that read and write files; here
it finds nothing worth reading and writes to a folder that is thrown away.
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
    """What z3 makes of the theorem."""
    outcome, detail = decide(Path("theorem.smt2").read_text(encoding="utf-8"))
    return json.dumps({"outcome": outcome, "detail": detail})


def decide(source: str) -> tuple[str, str]:
    """The outcome in one word, and what there is to tell."""
    try:
        assertions = z3.parse_smt2_string(source)
    except z3.Z3Exception as exc:
        words = exc.value.decode("utf-8", "replace") if isinstance(exc.value, bytes) else exc.value
        return "invalid", str(words).strip()
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
    """A solver with that one assertion."""
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(formula)
    return solver


def model_text(model: Any) -> str:
    """One line for each constant and function, by name."""
    lines = sorted(f"{entry.name()} = {model[entry]}" for entry in model.decls())
    return "\n".join(lines[:MOST_LINES])
