"""The gate with a real harness command in versions A and B, on 20 forged tasks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from gta_bench.errors import RunError
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.writing import Order, forge_tasks
from gta_bench.runs.directory import log_folder, read_gate_plan
from gta_bench.runs.logs import find_kept_units, read_attempts
from tests.conftest import REPOSITORY
from tests.needs import needs
from tests.slow.gate_agent import recognize

pytestmark = [pytest.mark.slow, needs("bwrap")]

TASKS = 20
FAMILY_NAMES = ("chart", "invoices")
BY_HAND = partial(pytest.param, marks=pytest.mark.measure)
AGENT = Path(__file__).with_name("gate_agent.py")


class Nights:
    """The tasks, the agent, and its run A."""

    def __init__(self, root: Path) -> None:
        self.root = root
        families = [FAMILIES[name] for name in FAMILY_NAMES]
        forge_tasks(families, Order("public", "gate", 1), TASKS, root / "tasks")
        self.names: dict[str, str] = {}
        for task in sorted(path for path in (root / "tasks").iterdir() if path.is_dir()):
            key = recognize(task / "inputs")
            self.names[key] = task.name
            gold = min((task / "gold").iterdir())
            shutil.copytree(gold, root / "answers" / key)
        shutil.copy(AGENT, root / "agent.py")

    def broken(self, number: int) -> set[str]:
        """The tasks that the agent gives up on."""
        return {self.names[key] for key in sorted(self.names)[:number]}

    def run_options(self, broken: int, *, seconds: float = 0) -> list[str]:
        harness = f"python3 agent.py {self.root / 'answers'} {broken} {seconds} {{workspace}}"
        return ["workflow", "--data", "tasks", "--harness", harness]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "gta_bench", *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def gta(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=600)
        assert process.returncode == code, stdout + stderr
        return stdout

    def gate(self, new: str, *options: str, code: int) -> dict[str, Any]:
        found = json.loads(self.gta("gate", "base.json", new, "--json", *options, code=code))
        assert isinstance(found, dict)
        return found

    def count_starts(self, run: str) -> int:
        attempts = read_attempts(self.root / run)
        assert attempts is not None
        return sum(one.number for one in attempts.values())


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    found = Nights(tmp_path_factory.mktemp("nights"))
    found.gta("run", *found.run_options(0), "--out", "a")
    found.gta("gate", "--write-baseline", "base.json", "a")
    return found


@pytest.mark.parametrize(("broken", "code"), [BY_HAND(0, 0), BY_HAND(1, 11), (8, 10)])
def test_version_b_breaks_some_tasks_and_the_gate_names_them(
    nights: Nights, broken: int, code: int
) -> None:
    new = f"b{broken}"
    nights.gta("run", *nights.run_options(broken), "--out", new)
    assert nights.count_starts(new) == TASKS
    files = ("--junit", f"{new}.xml", "--markdown", f"{new}.md", "--report", f"{new}.html")
    found = nights.gate(new, "--margin", "15", *files, code=code)
    flips = [flip for flip in found["flips"] if flip["leaf"] is None]
    assert {flip["task"] for flip in flips} == nights.broken(broken)
    leaves = {flip["task"] for flip in found["flips"] if flip["leaf"] is not None}
    assert leaves == nights.broken(broken)
    read = JUnitXml.fromfile(str(nights.root / f"{new}.xml"))
    assert (read.tests, read.errors) == (TASKS + 1, 0)
    assert read.failures == (broken + 1 if code == 10 else 0)
    assert read.skipped == (1 if code == 11 else 0)
    text = (nights.root / f"{new}.md").read_text(encoding="utf-8")
    assert text.count(f"]({new}.html#") == broken


SEQUENTIAL = ("--sequential", "--seed", "night", "--run")
# The margin, what is decided, and the exit code, by how many tasks are broken.
CASES = {0: ("25", "not worse", 0), 8: ("15", "worse", 10)}


def run_gate(nights: Nights, new: str, broken: int, *workers: str) -> dict[str, Any]:
    """Decide about version B and run it as far as needed; all runs of it have the same order."""
    margin, _, code = CASES[broken]
    options = (*nights.run_options(broken), *workers)
    found = nights.gate(new, *SEQUENTIAL, "--margin", margin, "--", *options, code=code)
    del found["new"]
    return found


@pytest.fixture(scope="module")
def alone(nights: Nights, request: pytest.FixtureRequest) -> tuple[int, dict[str, Any]]:
    """How many tasks are broken, and the decision of a gate that ran them in one process."""
    return request.param, run_gate(nights, f"alone{request.param}", request.param)


@pytest.mark.parametrize("alone", [BY_HAND(0), 8], indirect=True)
def test_it_runs_only_what_it_needs(nights: Nights, alone: tuple[int, dict[str, Any]]) -> None:
    broken, found = alone
    starts = nights.count_starts(f"alone{broken}")
    assert found["decision"] == CASES[broken][1]
    assert starts == found["used"] < TASKS
    assert len(found["unused"]) == TASKS - starts
    print(f"{broken} broken: {starts} of {TASKS} starts")


@pytest.mark.measure
@pytest.mark.parametrize("alone", [8], indirect=True)
def test_two_workers_decide_the_same(nights: Nights, alone: tuple[int, dict[str, Any]]) -> None:
    broken, found = alone
    assert run_gate(nights, f"two{broken}", broken, "--workers", "2") == found
    starts = nights.count_starts(f"two{broken}")
    assert found["used"] <= starts <= found["used"] + 1
    print(f"{broken} broken, two workers: {starts} of {TASKS} starts")


@pytest.mark.parametrize("alone", [8], indirect=True)
def test_a_killed_gate_goes_on_and_decides_the_same(
    nights: Nights, alone: tuple[int, dict[str, Any]]
) -> None:
    broken, expected = alone
    margin, _, code = CASES[broken]
    name = f"killed{broken}"
    arguments = ("gate", "base.json", name, "--json", *SEQUENTIAL, "--margin", margin, "--")
    options = nights.run_options(broken, seconds=1)
    process, run = nights.start(*arguments, *options), nights.root / name
    try:
        while count_finished(run) < 7:
            assert process.poll() is None
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    plan, before = read_gate_plan(run), count_finished(run)
    assert plan is not None
    found = nights.gta(*arguments, *options, code=code)
    assert {**json.loads(found), "new": ""} == {**expected, "new": ""}
    assert read_gate_plan(run) == plan
    lost = nights.count_starts(name) - expected["used"]
    print(f"{broken} broken: killed after {before} of {expected['used']}, {lost} begun again")
    assert nights.gta(*arguments, *options, code=code) == found, "a decided gate runs nothing"
    assert nights.count_starts(name) == expected["used"] + lost


def count_finished(run: Path) -> int:
    """How many units are finished; a log that is being written in this moment does not tell."""
    if not log_folder(run).is_dir():
        return 0
    try:
        return sum(one.finished for one in find_kept_units(log_folder(run)).values())
    except RunError:
        return 0
