"""The cost of judging in short; tests/measure has the 20 real tasks."""

from pathlib import Path

import pytest

from gta_bench.tasks.judging import find_judgeable_units
from tests.judging.builders import task
from tests.judging.cost import our_cost, upstream_cost
from tests.judging.counting_server import counting_server
from tests.judging.stored import stored_run

FILES = {
    "report.md": b"# Report\n\nAll is well, and more of it.\n" * 300,
    "notes.txt": b"x " * 4000,
}


def test_judging_sends_less_and_reads_from_the_prefix_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> None:
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    run = stored_run(tmp_path / "run", [task("1", 8), task("2", 8)], FILES)
    files = []
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
        files.append(tmp_path / name)
    units = find_judgeable_units(run)
    with counting_server(0.02) as server:
        one, four, all_ = (our_cost(run, server, leaves) for leaves in (1, 4, 100))
        theirs = upstream_cost(units, dict.fromkeys(units, files), server)
    assert [cost.counts.calls for cost in (theirs, one, four, all_)] == [16, 16, 4, 2]
    assert (theirs.counts.uploads, one.counts.uploads) == (32, 0)
    assert one.counts.cached >= 0.7 * one.counts.tokens
    assert all(cost.counts.prefix >= 0.7 * cost.counts.tokens for cost in (one, four, all_))
    assert four.counts.bytes < theirs.counts.bytes / 2
