"""Fifty calls at once: sums stay quick while equations are solved, and the loop stays free."""

import asyncio
import time
from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")
pytest.importorskip("sympy")

from gta_bench.confine.workspace import Workspace
from gta_bench.settings import Settings
from gta_bench.tools.equipment import equipped
from gta_bench.tools.toolbox import Toolbox

SUMS, EQUATIONS = 40, 10
EQUATION = (
    "def solution():\n    x = symbols('x')\n    return solve(Eq(x**3 - 6*x**2 + 11*x, {}), x)"
)


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


async def measure(workspace: Workspace) -> tuple[list[float], list[float], float]:
    """Seconds of each sum, the loop's lags, and seconds of all together."""
    sums: list[float] = []
    lags: list[float] = []
    async with equipped(Settings()) as equipment:
        equipment.need_jail()
        box = Toolbox(equipment)
        await box.call(workspace, "Calculator", {"expression": "1"})

        async def tick() -> None:
            while True:
                start = time.perf_counter()
                await asyncio.sleep(0.005)
                lags.append(time.perf_counter() - start - 0.005)

        async def add(number: int) -> None:
            await asyncio.sleep(number * 0.1)  # spread over the time that the equations take
            start = time.perf_counter()
            result = await box.call(workspace, "Calculator", {"expression": f"sqrt({number}**2)"})
            sums.append(time.perf_counter() - start)
            assert result.text == f"{float(number)}"

        async def solve(number: int) -> None:
            await box.call(workspace, "Solver", {"command": EQUATION.format(number)})

        start = time.perf_counter()
        ticking = asyncio.create_task(tick())
        async with asyncio.TaskGroup() as group:
            for number in range(SUMS):
                group.create_task(add(number))
            for number in range(EQUATIONS):
                group.create_task(solve(number))
        ticking.cancel()
        return sums, lags, time.perf_counter() - start


@pytest.mark.measure
def test_fifty_mixed_calls_leave_the_loop_free_and_sums_quick(tmp_path: Path) -> None:
    space = Workspace.create(tmp_path / "space", {})
    sums, lags, seconds = asyncio.run(measure(space))
    print(f"{SUMS} sums and {EQUATIONS} equations at once: {seconds:.1f} s")
    print(f"Calculator p99 {p99(sums) * 1000:.1f} ms, worst {max(sums) * 1000:.1f} ms")
    print(f"event-loop lag p99 {p99(lags) * 1000:.1f} ms, worst {max(lags) * 1000:.1f} ms")
    assert len(sums) == SUMS
    assert p99(sums) < 0.25
    assert p99(lags) < 0.05
