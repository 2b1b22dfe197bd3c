"""Calls a second through `gta tape record`, against the bare server, side by side."""

import asyncio
import sys
import time
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from gta_bench.tape.storage import Tape
from tests.served.foreign import OWN
from tests.served.test_tape_proxy import proxy

pytestmark = pytest.mark.measure
CALLS, ROUNDS = 200, 7
REST = 3.0  # seconds in which the proxy records, so that the bare server has the machine again


async def make_calls(client: Client) -> float:
    start = time.perf_counter()
    for number in range(CALLS):
        await client.call_tool("echo", {"text": f"call {number}"})
    return CALLS / (time.perf_counter() - start)


def test_the_proxy_keeps_most_of_the_servers_speed(tmp_path: Path) -> None:
    """Both are open at once, and take turns."""

    async def go() -> list[tuple[float, float]]:
        bare = StdioServerParameters(command=sys.executable, args=[str(OWN)])
        recorded = proxy(tmp_path / "tape", sys.executable, str(OWN))
        async with Client(bare) as one, Client(recorded) as two:
            for client in (one, two):
                page = await client.list_tools()
                await client.list_tools(cursor=page.next_cursor)
            found = []
            for _ in range(ROUNDS):
                found.append((await make_calls(one), await make_calls(two)))
                await asyncio.sleep(REST)
            return found

    rates = asyncio.run(go())
    ratios = sorted(through / bare for bare, through in rates)
    rounded = [(round(bare), round(through)) for bare, through in rates]
    print(f"calls a second, bare and through the proxy: {rounded}")
    print(f"ratio: median {ratios[len(ratios) // 2]:.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}")
    tape = Tape.open(tmp_path / "tape")
    assert len(tape) == CALLS * ROUNDS
    tape.close()
    assert ratios[len(ratios) // 2] >= 0.5
