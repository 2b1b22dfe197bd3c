"""Prover: theorems in SMT-LIB, decided by z3 in the jail."""

from typing import Literal

from pydantic import Field

from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.base import Record
from gta_bench.tools.contract import Availability, Made, Tool, ToolInput, text, truncate_text
from gta_bench.tools.logic.snippets import check_jailed, read_driver
from gta_bench.tools.packages import name_and_version

PACKAGE = "z3-solver"
LIMITS = JailLimits(wall_seconds=20.0, cpu_seconds=20, memory_bytes=2048 * MIB, disk_bytes=8 * MIB)
LONGEST = 200_000

EVERY = "for all values of the declared constants"


class ProverInput(ToolInput):
    """A theorem."""

    theorem: str = Field(description="SMT-LIB2 formatted logical formula string.")


class ProofResult(Record):
    """What the driver found; `detail` is z3's message or a model."""

    outcome: Literal["proved", "refuted", "contradictory", "unknown", "invalid", "empty"]
    detail: str


class Prover(Tool[ProverInput]):
    """Says whether the assertions hold for all values, with a counterexample if they do not."""

    name = "Prover"
    category = "logic"
    description = (
        "This tool uses the Z3 SMT solver to assist in proving mathematical theorems (input is an "
        "SMT-LIB2 formatted string). The theorem is the conjunction of all assertions; it is "
        "proved if it holds for every value of the declared constants, otherwise a counterexample "
        "is given. Assert the theorem itself, not its negation."
    )
    version = "1"
    input_type = ProverInput

    def check(self) -> Availability:
        """z3 and a jail."""
        return check_jailed(self.equipment, PACKAGE, "z3")

    async def apply(self, workspace: Workspace, given: ProverInput) -> Made:
        """Let z3 decide."""
        if len(given.theorem) > LONGEST:
            raise ToolError(f"Prover: the theorem has more than {LONGEST} characters.")
        result = await self.equipment.need_jail().run_snippet(
            "",
            driver=read_driver("prover"),
            files={"theorem.smt2": given.theorem.encode("utf-8", "replace")},
            limits=LIMITS,
            label="Prover: the solver",
        )
        answer = truncate_text(_describe(ProofResult.model_validate_json(result.value)))
        return Made((text(answer),), backend=name_and_version(PACKAGE), jail=result.report.jail)


def _describe(decision: ProofResult) -> str:
    detail = decision.detail or "any values"
    match decision.outcome:
        case "proved":
            return f"Proved: the assertions hold {EVERY}."
        case "refuted":
            return f"Refuted: the assertions do not hold {EVERY}. Counterexample:\n{detail}"
        case "contradictory":
            return (
                "Refuted: the assertions contradict each other, so they hold for no values (if "
                f"this was a theorem's negation, the theorem is proved). Counterexample:\n{detail}"
            )
        case "unknown":
            return f"Unknown: Z3 could not decide it ({detail})."
        case "invalid":
            raise ToolError(f"Prover: the theorem is not valid SMT-LIB2: {detail}")
        case "empty":
            raise ToolError("Prover: the theorem has no assertion. Write `(assert …)`.")
