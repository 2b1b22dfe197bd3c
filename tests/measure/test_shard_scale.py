"""10^4 and 10^5 units through every command that reads or writes a whole run: CPU and memory.

Run by `make measure`; the figures go to docs/measurements.md. No model is called.
"""

import os
from pathlib import Path
from shutil import copytree

import pytest

from gta_bench.runs.scoring import LISTED
from tests.measure.shard_logs import write_judged_run, write_sharded_run
from tests.measure.test_results_scale import COMMAND, measured

pytestmark = pytest.mark.measure
TASKS = 100
# The agent of the measured run, whose every unit fails, and of the one that it is compared with.
AGENTS = ("silent", "gold")
# Units that are evaluated; all others are copies of them.
REAL_EPOCHS = int(os.environ.get("GTA_REAL_EPOCHS", "10"))
# The most that any command may take, for a million units too.
MOST_MIB = 2 * 2**10
# All leases of a run of which nothing is known, then what is left to do once all shards are there.
PLAN = """
import sys, time
from pathlib import Path
from gta_bench.running.leases import LeaseTable
from gta_bench.running.shards import _expect, _is_whole, _open_tasks
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import find_kept_units, restore_attempts
from tests.measure.test_results_scale import peak_memory
run, start = Path(sys.argv[1]), time.process_time()
spec, leases = read_manifest(run).spec, 0
for kept in ({}, find_kept_units(log_folder(run))):
    restore_attempts(run, kept)
    _is_whole(run, spec, kept)
    tasks = _open_tasks(spec.tasks, spec.epochs, kept)
    expected = _expect(tasks, spec.epochs, kept, {})
    table = LeaseTable(expected, make=lambda *lease: lease, places=64, epochs=spec.epochs)
    while table._left:
        table._choose()
        leases += 1
assert leases and not tasks
print(time.process_time() - start, peak_memory())
"""
MERGE = """
import sys, time
from pathlib import Path
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import find_kept_units, unit_keys
from gta_bench.runs.merge import find_shards, merge_shards, merged_log_path, shards_folder
from tests.measure.test_results_scale import peak_memory
run, start = Path(sys.argv[1]), time.process_time()
spec, name, kept = read_manifest(run).spec, find_shards(run), find_kept_units(log_folder(run))
chosen = {key: kept[key].log for key in unit_keys(spec.tasks, spec.epochs)}
merge_shards(chosen, merged_log_path(run, name), shards_folder(run, name))
print(time.process_time() - start, peak_memory())
"""
# `gta report` and queries by hand for the same figures, in turns and warm, the best of three: sums
# of each task for scores and intervals, repeats of the primary metric, causes with an example.
RATIO = """
import sys, time
import duckdb
from click.testing import CliRunner
from gta_bench.cli import app
run = sys.argv[1]
columns = ("inst_hits", "inst_total", "tool_hits", "call_total", "arg_hits", "arg_typed_sum",
           "answer_sum", "answer_total", "malformed")
sums = ", ".join(f"sum(strict_{name})" for name in columns)
share = "(SELECT *, strict_arg_hits / strict_call_total AS share FROM"
units = f"'{run}/results/units/*.parquet'"
queries = (
    f"SELECT task, {sums}, count(*) FROM {units} GROUP BY task",
    f"SELECT task, count(share), count(*) FILTER (share > 0.999999), var_samp(share),"
    f" min(share) = max(share) FROM {share} {units}) GROUP BY task",
    f"SELECT epoch, avg(share) FROM {share} {units}) GROUP BY epoch",
    f"SELECT cause, count(*), count(DISTINCT task), arg_min(detail, epoch)"
    f" FROM '{run}/results/failures/*.parquet' GROUP BY cause",
)

def ours():
    result = CliRunner().invoke(app, ["report", run])
    assert result.exit_code == 0, result.output

def bare():
    with duckdb.connect() as connection:
        for query in queries:
            connection.execute(query).fetchall()

took = {ours: [], bare: []}
for _ in range(4):
    for work, times in took.items():
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
print(*(min(times[1:]) for times in took.values()))
"""


def write_run(root: Path, units: int, agent: str) -> str:
    """A run as shards left it: 100 tasks of GTA-Atomic's kind in so many epochs."""
    made = write_sharded_run(
        root,
        tasks=TASKS,
        epochs=units // TASKS,
        real_tasks=TASKS,
        real_epochs=REAL_EPOCHS,
        agent=agent,
    )
    return str(made)


def test_every_command_is_linear_and_takes_less_than_two_gib(tmp_path: Path) -> None:
    """Each command in a process of its own, so that its peak is its own."""
    sizes = [int(size) for size in os.environ.get("GTA_SIZES", "10000,100000").split(",")]
    scale = Scale("plan,merge,score,report,page,compare,export", tmp_path)
    for units in sizes:
        run, other = (write_run(tmp_path / f"{name}-{units}", units, name) for name in AGENTS)
        scale.measure(units, run, other, "--similarity", "exact-or-half")
        if units > LISTED:  # the rows of a short run are in `scores.json`
            ours, bare = measured(RATIO, run)
            print(f"{units} units: report {ours:.2f} s warm, by hand {bare:.2f} s", flush=True)
    scale.check()


def test_the_same_of_a_judged_run(tmp_path: Path) -> None:
    """Nine leaves a unit: 370,400 units have 10^7 verdicts if the judge is asked three times."""
    sizes = [int(size) for size in os.environ.get("GTA_JUDGED", "1000,10000").split(",")]
    repeats = int(os.environ.get("GTA_REPEATS", "3"))
    scale = Scale("merge,score,report,page,compare,export", tmp_path)
    for units in sizes:
        made = write_judged_run(
            tmp_path / str(units), tasks=TASKS, epochs=units // TASKS, repeats=repeats
        )
        scale.measure(units, str(made))
    scale.check()


class Scale:
    """What each command takes, in CPU a unit and memory, by the number of units."""

    def __init__(self, steps: str, folder: Path) -> None:
        self.steps = os.environ.get("GTA_STEPS", steps).split(",")
        self.folder = folder
        self.found: dict[str, dict[int, float]] = {step: {} for step in self.steps}

    def measure(self, units: int, run: str, other: str | None = None, *options: str) -> None:
        """Measure all steps; without another run, the comparison is with a copy of this one."""
        out = self.folder / f"out-{units}"
        if "compare" in self.steps and other is not None:
            measured(MERGE, other)
            measured(COMMAND, "score", *options, other)
        compared = other or f"{run}-copy"
        programs = {
            "plan": (PLAN, run),
            "merge": (MERGE, run),
            "score": (COMMAND, "score", *options, run),
            "report": (COMMAND, "report", run),
            "page": (COMMAND, "report", "--html", f"{out}.html", run),
            "compare": (COMMAND, "compare", run, compared),
            "export": (COMMAND, "results", "export", run, "--out", str(out)),
        }
        for step in self.steps:
            if step == "compare" and other is None:
                copytree(run, compared)
            seconds, peak = measured(*programs[step])
            self.found[step][units] = seconds / units
            each = f"{1e6 * seconds / units:.0f} us a unit"
            print(f"{units} units: {step} {seconds:.1f} s, {each}, {peak:.0f} MiB", flush=True)
            assert peak < MOST_MIB

    def check(self) -> None:
        for step, costs in self.found.items():
            # A fixed cost of imports makes few units dearer; many must not be.
            first, *_, last = [*costs.values()] * 2
            assert last <= 1.3 * first, step
