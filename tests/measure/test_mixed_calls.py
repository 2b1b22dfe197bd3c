"""Fifty tool calls at once on one machine: is the event loop free, and are quick calls quick?"""

import asyncio
import time
from pathlib import Path

import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.demo import ATOMIC
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.toolbox import Toolbox

pytestmark = pytest.mark.measure
SOLVE = """from sympy import symbols, solve
def solution():
    x = symbols("x")
    return solve(x**2 - 4, x)
"""
Call = tuple[str, dict[str, JsonValue]]
SUMS: list[Call] = [
    ("Calculator", {"expression": f"math.sqrt({number}) * 7"}) for number in range(34)
]
EQUATION: Call = ("Solver", {"command": SOLVE})
PICTURE: Call = ("OCR", {"image": "inputs/receipt.png"})
CALLS = [*SUMS, *[EQUATION] * 8, *[PICTURE] * 8]


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


async def lag(stop: asyncio.Event, seen: list[float]) -> None:
    """How much later than asked for the loop comes back."""
    while not stop.is_set():
        start = time.perf_counter()
        await asyncio.sleep(0.005)
        seen.append((time.perf_counter() - start - 0.005) * 1000)


async def measure(folder: Path) -> tuple[list[float], list[float]]:
    workspace = Workspace.create(folder, {"inputs/receipt.png": ATOMIC / "image" / "receipt.png"})
    seen: list[float] = []
    stop = asyncio.Event()
    async with use_equipment(Settings()) as equipment:
        toolbox = Toolbox(equipment)
        for name, arguments in (CALLS[0], CALLS[-1]):  # start-up is not what is measured
            await toolbox.call(workspace, name, arguments)

        async def timed(name: str, arguments: dict[str, JsonValue]) -> tuple[str, float]:
            start = time.perf_counter()
            await toolbox.call(workspace, name, arguments)
            return name, (time.perf_counter() - start) * 1000

        watching = asyncio.create_task(lag(stop, seen))
        taken = await asyncio.gather(*(timed(name, given) for name, given in CALLS))
        stop.set()
        await watching
    return seen, [milliseconds for name, milliseconds in taken if name == "Calculator"]


def test_fifty_mixed_calls_leave_the_loop_free_and_calculator_quick(tmp_path: Path) -> None:
    assert len(CALLS) == 50
    seen, sums = asyncio.run(measure(tmp_path))
    print(f"event loop lag p99 {p99(seen):.1f} ms, Calculator p99 {p99(sums):.1f} ms")
    assert p99(seen) < 50
    assert p99(sums) < 250
