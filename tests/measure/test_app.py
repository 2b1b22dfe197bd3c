"""The app on 50 runs with 10^5 units in all, for three people at once: how long a page takes.

Run by `make measure`; the figures go to docs/measurements.md.
"""

import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
import pytest

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.run import System
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.units import AtomicUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.directory import open_run, read_manifest, write_manifest, write_scores
from gta_bench.runs.imported import write_imported
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.verdicts import VERDICTS, dump_rows
from gta_bench.settings import Settings
from gta_bench.web.app_runs import entry_id
from tests.browser import served
from tests.builders import manifest as build_manifest
from tests.judging.builders import task
from tests.judging.stored import stored_run
from tests.metrics.atomic_variants import make_task

pytestmark = [pytest.mark.measure, pytest.mark.usefixtures("loopback")]
RUNS, UNITS = 50, 2_000
PEOPLE, SECONDS = 3, 60
LIMIT = 0.3
STEPS = (
    CallStep(name="OCR", arguments={"image": "inputs/a.jpg"}),
    CallStep(name="Calculator", arguments={"expression": "2+3"}),
    AnswerStep(content="it is 5"),
)


def atomic_run(folder: Path, seed: int) -> Path:
    """A run in which about half of the steps fail, for several causes."""
    chance = random.Random(seed)
    units = []
    for number in range(UNITS):
        one = make_task(*STEPS, id=str(number))
        trace = [
            step if chance.random() < 0.5 else chance.choice((STEPS[1], AnswerStep(content="no")))
            for step in reference_steps(one)
        ]
        units.append(AtomicUnit(task=one, trace=tuple(trace)))
    tasks = tuple(unit.task.id for unit in units)
    manifest = build_manifest(tasks=tasks, system=System(model=f"m/{seed}", agent="toolcalling"))
    open_run(folder, manifest)
    write_imported(folder, manifest, units)
    scores = score_run(
        units, "step", similarity=exact_or_half, similarity_name="exact-or-half", comparable=False
    )
    write_scores(folder, scores)
    return folder


def workflow_run(folder: Path, seed: int) -> Path:
    """A run with nine leaves a task, as GTA-Workflow has on average."""
    chance = random.Random(seed)
    tasks = [task(str(number), leaves=9, category="Plans") for number in range(UNITS)]
    run = stored_run(folder, tasks, {"report.md": b"# Report\n" * 200})
    rows = (
        VerdictRow(
            key=VerdictKey(task=one.id, leaf=leaf.id, judge="j"),
            verdict=Scored(value=chance.choice((2, 6, 8, 9, 10)), reason="It is there. " * 20),
        )
        for one in tasks
        for leaf in one.leaves()
    )
    (run / VERDICTS).write_bytes(dump_rows(rows))
    score_workflow_run(run, Settings())
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 runs: copies of four, each with a name of its own."""
    root = tmp_path_factory.mktemp("scale")
    made = [
        atomic_run(root / "made" / "a1", 1),
        atomic_run(root / "made" / "a2", 2),
        workflow_run(root / "made" / "w1", 3),
        workflow_run(root / "made" / "w2", 4),
    ]
    for number in range(RUNS):
        run = root / "runs" / f"run-{number:02}"
        shutil.copytree(made[number % 4], run)
        manifest = read_manifest(run)
        write_manifest(run, manifest.model_copy(update={"notes": (f"copy {number}",)}))
    return root / "runs"


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served("view", str(folder)) as (printed, process):
        try:
            yield printed
        finally:
            status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
            peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
            print(f"the app's memory at its peak: {peak:.0f} MiB")


def pages(chance: random.Random) -> tuple[str, str]:
    """A page that somebody would open next, and its kind."""
    run = entry_id(f"run-{chance.randrange(RUNS):02}")
    one = chance.randrange(UNITS)
    kind = chance.choice(("runs", "failures", "filtered", "run", "unit", "compare", "label"))
    place = {
        "runs": "/",
        "failures": f"/failures?page={chance.randint(1, 50)}",
        "filtered": f"/failures?cause=wrong+content&task={one}",
        "run": f"/runs/{run}",
        "unit": f"/runs/{run}/unit?task={one}",
        "compare": f"/compare?a=run-02&b=run-03&task={one}",
        "label": "/label",
    }[kind]
    return kind, place


def browse(address: str, seed: int, end: float, found: list[tuple[str, float]]) -> None:
    """One person opens a page every half second, and the script of the page asks every second."""
    chance = random.Random(seed)
    site = address.partition("/?")[0]
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        client.get(address)
        while time.monotonic() < end:
            for kind, place in (("poll", "/version"), pages(chance)):
                start = time.perf_counter()
                answer = client.get(site + place)
                found.append((kind, time.perf_counter() - start))
                assert answer.status_code == 200, (place, answer.text)
            time.sleep(0.5)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def test_three_people_on_fifty_runs_wait_less_than_300_ms(address: str) -> None:
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        site, start = address.partition("/?")[0], time.perf_counter()
        client.get(address)
        first = time.perf_counter() - start
        while "still being read" in client.get(f"{site}/failures").text:
            time.sleep(0.2)
        whole = time.perf_counter() - start
        while "are being compared" in client.get(f"{site}/compare?a=run-02&b=run-03").text:
            time.sleep(0.2)
        compared = time.perf_counter() - start - whole
        for run in ("run-00", "run-02"):
            begun = time.perf_counter()
            while client.get(f"{site}/runs/{run}/report").status_code == 202:
                time.sleep(0.2)
            print(f"report of {run}: {time.perf_counter() - begun:.1f} s")
    print(f"first page {first:.2f} s, everything read after {whole:.1f} s, two compared in "
          f"{compared:.1f} s")  # fmt: skip
    found: list[tuple[str, float]] = []
    end = time.monotonic() + SECONDS
    people = [
        threading.Thread(target=browse, args=(address, seed, end, found)) for seed in range(PEOPLE)
    ]
    for one in people:
        one.start()
    for one in people:
        one.join()
    for kind in sorted({kind for kind, _ in found}):
        own = [1000 * seconds for name, seconds in found if name == kind]
        print(f"{kind}: {len(own)} requests, median {median(own):.0f} ms, "
              f"p95 {percentile(own, 0.95):.0f} ms, slowest {max(own):.0f} ms")  # fmt: skip
    every = [seconds for kind, seconds in found if kind != "poll"]
    print(f"all pages: {len(every)}, p95 {1000 * percentile(every, 0.95):.0f} ms; load "
          f"{os.getloadavg()}")  # fmt: skip
    assert percentile(every, 0.95) < LIMIT
