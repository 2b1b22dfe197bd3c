"""10^4, 10^5 and 10^6 verdict rows: time and memory of exporting, reporting and ranking them.

Run by `make measure`; the figures go to docs/measurements.md.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.records.leaderboard import Score
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import Checkpoint
from gta_bench.runs.aggregation import judge_scores
from gta_bench.runs.results_table import RunExport
from gta_bench.runs.tables import TABLES
from gta_bench.runs.verdicts import VERDICTS
from tests.metrics.test_comparability import manifest
from tests.metrics.workflow_units import SEVEN, unit

SIZES = (10_000, 100_000, 1_000_000)
# GTA-Workflow's shape: 132 tasks with 1156 leaves, 9 a task.
LEAVES = tuple(f"{top}{below}" for top in "abc" for below in (1, 2, 3))
TREE = tuple(
    Checkpoint(
        id=top, weight=2, children=tuple(Checkpoint(id=f"{top}{below}") for below in (1, 2, 3))
    )
    for top in "abc"
)
JUDGES, REPEATS, TASKS = 3, 3, 132
# What somebody would write by hand, with no unscored or missing row in mind: all figures of the
# report (headline, groups, both curves), and the headline alone.
ROOTS = """
WITH leaf AS MATERIALIZED (
    SELECT run, judge, task, epoch, leaf, any_value(weight) AS weight, avg(value) AS value,
           avg(coalesce(compat, value)) AS compat, sum(input_tokens) AS input_tokens,
           sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
    FROM '{folder}/verdicts/*.parquet' GROUP BY ALL
), root AS MATERIALIZED (
    SELECT run, judge, task, epoch, sum(weight * value) AS root, sum(weight * compat) AS compat,
           count(*) FILTER (value >= 7) AS passed, count(value) AS leaves,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cost_usd) AS cost_usd
    FROM leaf GROUP BY run, judge, task, epoch
)
"""
FIGURES = """
SELECT run, judge, {by} AS name, avg(root), avg((root >= 7)::INTEGER), sum(passed) / sum(leaves),
       avg(compat), sum(input_tokens), sum(output_tokens), sum(cost_usd)
FROM {source} GROUP BY ALL
"""
UNIT = """(SELECT root.*, category, unnest(kinds) AS kind, unnest(tool_categories) AS called
FROM root JOIN '{folder}/samples/*.parquet' USING (run, task, epoch))"""
HEADLINE = ROOTS + FIGURES.format(by="'all'", source="root") + " ORDER BY run, judge"
SAME = (
    ROOTS
    + " UNION ALL ".join(
        FIGURES.format(by=by, source=source)
        for by, source in (
            ("'all'", "root"),
            ("category", UNIT),
            ("kind", UNIT),
            ("called", UNIT),
            *((f"'{end}'", f"(FROM root WHERE root >= {end})") for end in range(11)),
        )
    )
    + "".join(
        f" UNION ALL SELECT run, judge, '{end}', count(*), 0, 0, 0, 0, 0, 0 FROM leaf"
        f" WHERE value >= {end} GROUP BY ALL"
        for end in range(11)
    )
)
COMMAND = """
import sys, time
from click.testing import CliRunner
from gta_bench.cli import app
from tests.measure.test_results_scale import peak_memory
start = time.process_time()
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(time.process_time() - start, peak_memory())
"""
EXPORT = """
import sys
from pathlib import Path
from tests.measure.test_results_scale import export, peak_memory
print(export(Path(sys.argv[1]), int(sys.argv[2])), peak_memory())
"""
# A run of GTA-Workflow by one judge has as many verdicts, so this is how many runs the rows are.
RUN_ROWS = 1156


def write_rows(file: Path, units: list[WorkflowUnit], size: int) -> None:
    """Verdicts as a run has them, without making a record of each."""
    left = size
    with file.open("w", encoding="utf-8") as opened:
        for judge in range(JUDGES):
            for repeat in range(1, REPEATS + 1):
                for one in units:
                    for place, leaf in enumerate(LEAVES):
                        if not left:
                            return
                        left -= 1
                        value = (int(one.task.id) * 7 + judge + repeat + place + one.epoch) % 11
                        key = (one.task.id, one.epoch, leaf, f"judge-{judge}", repeat)
                        opened.write(format_verdict(*key, value))


def format_verdict(task: str, epoch: int, leaf: str, judge: str, repeat: int, value: float) -> str:
    """A line of a usual length."""
    key = {"task": task, "epoch": epoch, "leaf": leaf, "judge": judge, "repeat": repeat}
    row = {"key": key, "verdict": {"type": "scored", "value": value,
           "reason": "It has what was asked for. " * 8, "used": []},
           "compat": None, "evidence": "e" * 64, "prompts": "p" * 64,
           "model": "m", "input_tokens": 2000, "cached_tokens": 0,
           "output_tokens": 90, "cost_usd": 0.001}  # fmt: skip
    return json.dumps(row) + "\n"


def export(folder: Path, size: int) -> float:
    """The tables of a run with that many verdict rows, by the code of `gta results export`."""
    run = folder / "run"
    run.mkdir(parents=True)
    wanted = -(-size // (len(LEAVES) * JUDGES * REPEATS))
    tasks = [unit(str(n)).task.model_copy(update={"checkpoints": TREE}) for n in range(TASKS)]
    units = [WorkflowUnit(task=tasks[n % TASKS], epoch=n // TASKS + 1) for n in range(wanted)]
    write_rows(run / VERDICTS, units, size)
    held = manifest(tasks=tuple(str(n) for n in range(TASKS)))
    start = time.process_time()
    rows = dict.fromkeys(TABLES, 0)
    exporter = RunExport("run", held, folder / "out", 1, "parquet", rows)
    exporter.workflow(units, run, thresholds=SEVEN)
    return time.process_time() - start


def peak_memory() -> float:
    """Of this process, in MiB; getrusage would count that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(program: str, *arguments: str) -> tuple[float, float]:
    """Seconds of computing and peak memory in MiB, in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    seconds, peak = map(float, result.stdout.split())
    return seconds, peak


def write_entries(file: Path, size: int) -> None:
    """All those rows as entries of one board."""
    model = next(entry for entry in read_published_entries() if entry.board == "workflow")
    entries = [
        model.model_copy(
            update={
                "id": f"2027-01/workflow/{number}",
                "release": "2027-01",
                "system": str(number),
                "scores": {**model.scores, "root_sr": Score(value=number % 60)},
            }
        ).model_dump(mode="json")
        for number in range(max(1, size // RUN_ROWS))
    ]
    file.write_text(json.dumps(entries), encoding="utf-8")


def pooled_seconds(folder: Path) -> tuple[float, float, float]:
    """Our pooling and both queries by hand, in turns; computing time, the best of five each."""
    ours: list[float] = []
    same: list[float] = []
    headline: list[float] = []
    for _ in range(5):
        with duckdb.connect() as connection:
            for table in ("runs", "samples", "verdicts"):
                connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}/*.parquet'")
            start = time.process_time()
            found = judge_scores(connection)["run"]
            ours.append(time.process_time() - start)
        for query, times in ((SAME, same), (HEADLINE, headline)):
            with duckdb.connect() as connection:
                start = time.process_time()
                rows = connection.execute(query.format(folder=folder)).fetchall()
                times.append(time.process_time() - start)
        assert [row[1] for row in rows] == [judge.judge for judge in found]
        # The last unit may lack rows: it has no root of ours, and a wrong one by hand.
        assert found[0].strict.root_score == pytest.approx(rows[0][3], abs=1e-2)
    return min(ours), min(same), min(headline)


@pytest.mark.measure
def test_a_million_verdicts_are_handled_in_bounded_memory(tmp_path: Path) -> None:
    seconds: dict[int, list[float]] = {}
    for size in SIZES:
        folder = tmp_path / str(size)
        exported = measured(EXPORT, str(folder), str(size))
        ours, same, headline = pooled_seconds(folder / "out")
        reported = measured(COMMAND, "report", str(folder / "out"))
        write_entries(folder / "entries.json", size)
        site = ("--out", str(folder / "site"))
        built = measured(COMMAND, "leaderboard", "build", str(folder / "entries.json"), *site)
        for what, (took, peak) in (("export", exported), ("report", reported), ("site", built)):
            print(f"{size:>9,} rows: {what} {took:.2f} s of computing, {peak:.0f} MiB")
            assert peak < 1024
        print(
            f"{size:>9,} rows: pooling {ours:.3f} s; by hand the same {same:.3f} s (ratio "
            f"{ours / same:.2f}), the headline alone {headline:.3f} s (ratio {ours / headline:.2f})"
        )
        seconds[size] = [exported[0], reported[0], built[0], ours]
        ratio = ours / same
    assert ratio <= 1.5
    # Linear: ten times the rows take at most ten times as long, with room for a loaded machine.
    for now, before in zip(seconds[SIZES[-1]], seconds[SIZES[-2]], strict=True):
        assert now < 15 * before
