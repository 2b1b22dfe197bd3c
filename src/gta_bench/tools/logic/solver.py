"""Solver: equations by sympy, in Python that the agent writes and the jail runs."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.contract import Availability, Made, Tool, ToolInput, text, truncate_text
from gta_bench.tools.logic.snippets import LIMITS, check_jailed, python_code, read_driver
from gta_bench.tools.packages import name_and_version

PACKAGE = "sympy"
DESCRIPTION = """\
This tool can execute Python code to solve math equations. The code should include a function \
named 'solution'. You should use the `sympy` library in your code to solve the equations. The \
function should return its answer in str format. Avoid printing the answer. The code instance \
format is as follows:

```python
# import packages
from sympy import symbols, Eq, solve
def solution():
    # Define symbols
    x, y = symbols('x y')

    # Define equations
    equation1 = Eq(x**2 + y**2, 20)
    equation2 = Eq(x**2 - 5*x*y + 6*y**2, 0)

    # Solve the system of equations
    solutions = solve((equation1, equation2), (x, y), dict=True)

    # Return solutions as strings
    return str(solutions)
```"""


class SolverInput(ToolInput):
    """Python with a function `solution()`."""

    command: str = Field(description="Markdown format Python code")


class Solver(Tool[SolverInput]):
    """Runs the code in the jail; the result is the text of what `solution()` returns."""

    name = "Solver"
    category = "logic"
    description = DESCRIPTION
    version = "1"
    input_type = SolverInput

    def check(self) -> Availability:
        """sympy and a jail."""
        return check_jailed(self.equipment, PACKAGE, "sympy")

    async def apply(self, workspace: Workspace, given: SolverInput) -> Made:
        """Run the code."""
        result = await self.equipment.need_jail().run_snippet(
            python_code(given.command),
            driver=read_driver("solver"),
            limits=LIMITS,
            label="Solver: the code",
        )
        value = truncate_text(str(result.value))
        return Made((text(value),), backend=name_and_version(PACKAGE), jail=result.report.jail)
