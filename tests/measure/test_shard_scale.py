"""10^3, 10^4 and 10^5 units through plan, merge, scores and report: time and memory, no model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.measure
TASKS = 100
# The most that 100,000 units may take.
MOST_BYTES = 2 * 2**30

PROGRAM = """
import json, resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
from gta_bench.records.units import AtomicUnit
from gta_bench.records.atomic import AtomicTask
from gta_bench.cli.report import write_reports
from gta_bench.similarity.catalog import score_units
from gta_bench.records.plan import make_plan
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.logs import find_kept_units, list_logs, read_units
from gta_bench.runs.merge import merge_shards
from gta_bench.runs.merge import merged_log_path, read_plan, shards_folder
from gta_bench.similarity.catalog import load_similarity

run, steps, last = Path(sys.argv[1]), {}, time.process_time()

def step(name):
    global last
    steps[name], last = time.process_time() - last, time.process_time()

spec = read_manifest(run).spec
make_plan(spec.tasks, epochs=spec.epochs, places=8, log="x", created=datetime.now(UTC))
step("plan")
kept = find_kept_units(log_folder(run))
step("what is finished")
plan = read_plan(run)
wanted = [(task, epoch) for task in spec.tasks for epoch in range(1, spec.epochs + 1)]
logs = {key: kept[key].log for key in wanted}
merge_shards(logs, merged_log_path(run, plan), shards_folder(run, plan))
step("merge")
found = read_units(log_folder(run), spec.tasks, spec.epochs, AtomicUnit)
assert len(found.units) == len(wanted) and not found.not_run
step("read")
similarity = load_similarity("exact-or-half")
write_scores(run, score_units(found.units, "step", similarity, found.not_run))
del found
step("score")
write_reports([run])
step("report")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
(log,) = list_logs(log_folder(run))
print(json.dumps({"steps": steps, "peak": peak, "log": Path(log).stat().st_size}), file=sys.stderr)
"""


def test_plan_merge_and_report_are_linear_and_take_less_than_two_gib(tmp_path: Path) -> None:
    """Each size in a process of its own, so that its peak is its own."""
    totals = {}
    sizes = [int(size) for size in os.environ.get("GTA_SIZES", "1000,10000,100000").split(",")]
    for units in sizes:
        run = write_run(tmp_path / str(units), units)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(run)],
            env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stderr.splitlines()[-1])
        totals[units] = sum(found["steps"].values())
        steps = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found["steps"].items())
        sizes_of = f"{found['peak'] / 2**20:.0f} MiB, log {found['log'] / 2**20:.1f} MiB"
        print(f"{units} units: {sizes_of}, CPU: {steps}", flush=True)
        assert found["peak"] < MOST_BYTES
    per_unit = {units: total / units for units, total in totals.items()}
    # A fixed cost of imports makes few units dearer; many must not be.
    assert per_unit[sizes[-1]] < 2 * per_unit[sizes[-2]]


def write_run(root: Path, units: int) -> Path:
    """A run as shards left it: 100 tasks of GTA-Atomic's kind in so many epochs."""
    from tests.measure.shard_logs import write_sharded_run

    return write_sharded_run(root, tasks=TASKS, epochs=units // TASKS)
