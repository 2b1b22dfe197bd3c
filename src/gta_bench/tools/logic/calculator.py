"""Calculator: one Python expression, evaluated by an interpreter that can do nothing else."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, text
from gta_bench.tools.packages import find_missing, name_and_version

if TYPE_CHECKING:
    from gta_bench.tools.logic.expressions import Evaluator

PACKAGE = "pydantic-monty"
# A waiting thread and its worker cost little, and slow calls must not delay a sum.
AT_ONCE = 8


class CalculatorInput(ToolInput):
    """One expression."""

    expression: str = Field(description="Python expression to evaluate.")


class Calculator(Tool[CalculatorInput]):
    """Evaluates a Python expression; the result is the text of its value."""

    name = "Calculator"
    category = "logic"
    description = (
        "A calculator tool. The input must be a single Python expression and you cannot import "
        "packages. You can use functions in the `math` package without import."
    )
    version = "1"
    input_type = CalculatorInput

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        # Its own threads: in the shared ones a sum would wait for pictures and models.
        return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="calculator")

    @cached_property
    def _evaluator(self) -> "Evaluator":
        from gta_bench.tools.logic.expressions import Evaluator

        return Evaluator(processes=AT_ONCE)

    def check(self) -> Availability:
        """It needs this package only."""
        return find_missing("pydantic_monty") or Available(name_and_version(PACKAGE))

    async def apply(self, workspace: Workspace, given: CalculatorInput) -> Made:
        """Evaluate off the event loop."""
        evaluate = self._evaluator.evaluate
        loop = asyncio.get_running_loop()
        try:
            value = await loop.run_in_executor(self._threads, evaluate, given.expression)
        except ToolError as exc:
            raise ToolError(f"Calculator: {exc}") from exc
        return Made((text(value),), backend=name_and_version(PACKAGE))
