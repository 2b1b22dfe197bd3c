"""What several workers share, by the clock: a limit of requests takes most of its minutes."""

import pytest

from gta_bench.datasets.atomic import load_atomic
from tests.slow.test_shards import UNITS, Bench, bench, uuids

__all__ = ["bench"]
pytestmark = pytest.mark.measure


def test_four_workers_share_connections_requests_a_minute_and_money(
    bench: Bench, loopback: None
) -> None:
    """250 calls cost a dollar; what is over the limit was in flight when it was reached."""
    server = bench.server
    server.delay, server.most_at_once, server.asked = 0.3, 0, 0
    server.times.clear()
    text = bench.settings.read_text(encoding="utf-8")
    cheap = text.replace("input_price = 100000.0", "input_price = 400.0")
    bench.settings.write_text(cheap, encoding="utf-8")
    limits = ("--max-connections", "8", "--rpm", "120", "--max-cost", "1")
    stopped = bench.start("shared", "--workers", "4", *limits)
    _, said = stopped.communicate(timeout=900)
    server.delay = 0.0
    assert stopped.returncode == 1, said
    assert "The run has spent its budget of $1 (budget.cost_usd)" in said
    fullest = max(sum(0 <= other - start < 60 for other in server.times) for start in server.times)
    most = max(len(task.steps) for task in load_atomic(bench.data).tasks.values())
    print(f"{server.asked} calls, {server.most_at_once} at once, {fullest} in the fullest minute")
    assert 4 < server.most_at_once <= 8
    # On a busy machine, requests that may start arrive later: at most as many as are in flight.
    assert 100 < fullest <= 120 + 8
    assert 250 <= server.asked <= 250 + 8 * most
    kept = uuids(bench.root / "shared")
    bench.run("shared")
    after = uuids(bench.root / "shared")
    assert len(after) == UNITS
    assert {key: after[key] for key in kept} == kept
    bench.settings.write_text(text, encoding="utf-8")
