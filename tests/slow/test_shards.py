"""60 tasks on every backend, and on a cluster that loses a worker, a node and its driver."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import GtaError
from gta_bench.records.atomic import AtomicTask
from gta_bench.running.backends.backend import RayTasks, stay_on_loopback
from gta_bench.running.leases import Items
from gta_bench.runs.directory import (
    log_folder,
    progress_folder,
    read_command,
    read_progress,
    read_scores,
)
from gta_bench.runs.logs import find_kept_units, list_logs
from gta_bench.tape.reference import write_reference_tape
from tests.chat_server import ChatServer, chat_server
from tests.conftest import REPOSITORY
from tests.needs import needs
from tests.running.backends import works
from tests.scripted import reference_reply, write_settings

pytestmark = pytest.mark.slow

UNITS = 60


class Bench:
    """A scripted model, a tape, and the command that runs tasks with both."""

    def __init__(self, root: Path, data: Path, server: ChatServer) -> None:
        self.root, self.data, self.server = root, data, server
        self.settings = write_settings(root / "gta.toml", server.url)
        write_reference_tape(load_atomic(data), root / "tape")

    def command(self, out: str, *arguments: str) -> list[str]:
        options = ("--mode", "end-to-end", "--model", "scripted", "--similarity", "exact-or-half")
        files = ("--data", str(self.data), "--tape", str(self.root / "tape"), "--out", out)
        command = (sys.executable, "-m", "gta_bench.cli", "--config", str(self.settings))
        some = () if "--tasks" in arguments else ("--tasks", f"0:{UNITS}")
        return [*command, "run", "atomic", *options, *files, *some, *arguments]

    def start(self, out: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(out, *arguments),
            cwd=self.root,
            env=environment(self.root),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, out: str, *arguments: str) -> Path:
        process = self.start(out, *arguments)
        _, said = process.communicate(timeout=1200)
        assert process.returncode == 0, said
        return self.root / out


def environment(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}",
        "SCRIPTED_KEY": "none",
        "RAY_AUTH_TOKEN_PATH": str(root / "token"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # Ray gives its workers what others leave of a core, which may be nothing for minutes.
        "RAY_worker_niceness": "0",
        "RAY_worker_register_timeout_seconds": "600",
        # A node that refuses is lost after 20 s; one that is only slow has 10 s for each answer.
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_failure_threshold": "20",
    }


@pytest.fixture(scope="module")
def bench(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    tasks: Mapping[str, AtomicTask] = load_atomic(atomic_dir).tasks
    with chat_server(reference_reply(tasks)) as server:
        yield Bench(tmp_path_factory.mktemp("bench"), atomic_dir, server)


@pytest.fixture(scope="module")
def inline(bench: Bench) -> Path:
    return bench.run("inline")


def counts(run: Path) -> Any:
    """Every score of a run, without what a clock says."""
    clock = {"seconds"}
    return read_scores(run).model_dump(
        exclude={"usage": clock, "tools": {"__all__": clock}, "units": {"__all__": clock}}
    )


def metrics(run: Path) -> dict[str, str]:
    """The metrics in the run's one log, to 12 digits."""
    (log,) = list_logs(log_folder(run))
    results = read_eval_log(log, header_only=True).results
    assert results is not None
    return {
        name: f"{metric.value:.12g}"
        for score in results.scores
        for name, metric in score.metrics.items()
    }


def check_equal(run: Path, inline: Path, *, begun_again: range = range(1)) -> None:
    """The same scores; so many attempts were lost with a worker, a node or a driver."""
    found, wanted = counts(run), counts(inline)
    lost = found.pop("attempts") - wanted.pop("attempts")
    assert lost in begun_again
    assert wanted.pop("retried") <= found.pop("retried") <= lost
    assert found == wanted
    assert metrics(run) == metrics(inline)
    kept = find_kept_units(log_folder(run))
    assert len(kept) == UNITS
    assert kept.keys() == find_kept_units(log_folder(inline)).keys()
    assert all(one.finished for one in kept.values())


def test_two_processes_give_what_one_gives(bench: Bench, inline: Path, loopback: None) -> None:
    run = bench.run("processes", "--workers", "2")
    check_equal(run, inline)
    assert not list(log_folder(run).glob("*.shards"))


def finished(run: Path) -> int:
    progress = read_progress(progress_folder(run)) if (run / "progress").is_dir() else None
    return 0 if progress is None else progress.done


def wait_until(true: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + 900
    while not true():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.1)


def ray_workers(raylet: int) -> list[int]:
    """The workers of a node that evaluate a shard now, by the name that Ray gives them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                name = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == raylet and name.startswith(b"ray::run_in_folder"):
                found.append(int(entry.name))
    return found


def be_patient() -> None:
    """Ray gives a node 30 s to start, busy as the machine may be; here its clock is slower."""
    import ray._private.node as node

    slow = ModuleType("time")
    slow.__dict__.update(time.__dict__, monotonic=lambda: time.monotonic() / 20)
    vars(node)["time"] = slow


def add_node(cluster: Any, **options: Any) -> None:
    """A node that only this machine reaches."""
    cluster.add_node(node_ip_address="127.0.0.1", **options)


@pytest.fixture(scope="module")
def cluster(bench: Bench) -> Iterator[Any]:
    """Three nodes on this machine; the first is for the driver only."""
    before = dict(os.environ)
    # Not in pytest's folder: paths of sockets must be short. `Cluster` writes its address into
    # Ray's default folder whatever `temp_dir` a node has, so that folder is this one.
    folder = tempfile.mkdtemp(prefix="gta-ray-", dir="/tmp")
    os.environ.update(environment(bench.root), RAY_TMPDIR=folder)
    stay_on_loopback()
    from ray.cluster_utils import Cluster

    be_patient()
    cluster = Cluster()
    try:
        add_node(cluster, num_cpus=0, include_dashboard=False)
        for _ in range(2):
            add_node(cluster, num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.measure
def test_ray_gives_what_one_process_gives(
    bench: Bench, inline: Path, cluster: Any, loopback: None
) -> None:
    run = bench.run("ray", "--cluster", cluster.address)
    check_equal(run, inline)
    command = read_command(progress_folder(run))
    assert command is not None
    assert (command.backend, command.places) == ("ray", 2)


def uuids(run: Path) -> dict[tuple[str, int], set[str | None]]:
    """The finished samples of every log of a run, those of killed attempts too."""
    found: dict[tuple[str, int], set[str | None]] = {}
    for log in list_logs(log_folder(run)):
        for one in read_eval_log_sample_summaries(log):
            if one.error is None:
                found.setdefault((str(one.id), one.epoch), set()).add(one.uuid)
    return found


def test_a_lost_worker_node_and_driver_lose_no_unit_and_finish_none_twice(
    bench: Bench, inline: Path, cluster: Any, loopback: None
) -> None:
    bench.server.delay = 0.15
    run = bench.root / "faults"
    driver = bench.start("faults", "--cluster", cluster.address, "--max-connections", "8")
    first, second = list(cluster.worker_nodes)
    raylet = first.all_processes["raylet"][0].process.pid

    wait_until(lambda: finished(run) >= 6, driver)
    os.kill(ray_workers(raylet)[0], signal.SIGKILL)
    wait_until(lambda: finished(run) >= 16, driver)
    cluster.remove_node(second, allow_graceful=False)
    add_node(cluster, num_cpus=1)
    wait_until(lambda: finished(run) >= 30, driver)
    driver.kill()
    driver.communicate()
    wait_until(lambda: not ray_workers(raylet))

    kept = uuids(run)
    assert 26 <= len(kept) < UNITS
    assert all(len(samples) == 1 for samples in kept.values())
    bench.server.delay = 0.0
    bench.run("faults", "--cluster", cluster.address)
    # At most what 8 connections had in flight, three times.
    check_equal(run, inline, begun_again=range(1, 25))
    after = uuids(run)
    assert {key: after[key] for key in kept} == kept
    command, progress = (
        read_command(progress_folder(run)),
        read_progress(progress_folder(run)),
    )
    assert command is not None
    assert progress is not None
    assert command.finished == len(kept)
    assert (progress.done, progress.done_now, progress.failed) == (UNITS, UNITS - len(kept), 0)
    said = subprocess.run(
        [sys.executable, "-m", "gta_bench.cli", "status", str(run), "--json"],
        env=environment(bench.root),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout)["state"] == "complete"


# One process alone: tests/slow/test_interrupts.py.
@pytest.mark.measure
@pytest.mark.parametrize("backend", ["processes", "ray"])
def test_ctrl_c_stops_cleanly_and_any_backend_goes_on(
    bench: Bench, backend: str, request: pytest.FixtureRequest, loopback: None
) -> None:
    """A terminal interrupts the command and all that it started, in one moment."""
    bench.server.delay = 0.5
    where = ["--workers", "2"]
    if backend == "ray":
        where = ["--cluster", request.getfixturevalue("cluster").address]
    run = bench.root / f"stopped-{backend}"
    some = (run.name, "--tasks", "0:24", "--max-connections", "4")
    driver = bench.start(*some, *where)
    wait_until(lambda: finished(run) >= 3, driver)
    os.killpg(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 130, said
    (line,) = [one for one in said.splitlines() if one.startswith("gta: ")]
    assert "Traceback" not in said and "Cancelled" not in said
    assert line.startswith("gta: Interrupted. ")
    assert "units are finished and safe" in line
    again = [sys.executable, "-m", "gta_bench.cli"]
    shown = [*again, "status", str(run), "--json"]
    found = json.loads(subprocess.run(shown, capture_output=True, check=True).stdout)
    assert (found["failed"], found["causes"]) == (0, {})
    subprocess.run([*again, "score", str(run)], capture_output=True, check=False)
    scored = read_scores(run)
    assert {one.cause for one in scored.unscored} == {"not run yet"}
    assert all(one.cause != "infrastructure" for one in scored.failures)
    kept = uuids(run)
    assert 3 <= len(kept) < 24
    bench.server.delay = 0.0
    bench.run(*some)
    after = uuids(run)
    assert len(after) == 24
    assert {key: after[key] for key in kept} == kept


FULL = """
head -c 28500000 /dev/zero > {small}/filler
{command}; echo code=$?
rm {small}/filler
{command}; echo code=$?
"""


@needs("bwrap")
def test_a_full_disk_stops_the_run_and_nothing_is_lost_once_there_is_room(
    bench: Bench, loopback: None
) -> None:
    """In one process; a worker whose disk is full is in tests/measure/test_one_worker.py."""
    small = bench.root / "small"
    small.mkdir()
    command = " ".join(bench.command(f"{small}/run", "--tasks", "0:20"))
    script = FULL.format(command=command, small=small)
    mount = ("--dev-bind", "/", "/", "--size", "30000000", "--tmpfs", str(small))
    done = subprocess.run(
        ["bwrap", *mount, "bash", "-c", script],
        cwd=bench.root,
        env=environment(bench.root),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("code=")] == [
        "code=3",
        "code=0",
    ], done.stderr
    assert "units are finished and safe in" in done.stderr
    assert "its disk is full: free some space" in done.stderr
    assert "Traceback" not in done.stderr


def test_ray_tells_failures_and_begins_lost_work_again(
    cluster: Any, tmp_path: Path, loopback: None
) -> None:
    backend = RayTasks(cluster.address)
    try:
        items = [(str(tmp_path), name) for name in "abc"]
        backend.run(works.die_once, Items(items), at_once=2, tick=int)
        assert {"a", "b", "c"} <= {file.name for file in tmp_path.iterdir()}
        with pytest.raises(GtaError, match=r"^This part is bad\.$") as caught:
            backend.run(works.fail, Items([(str(tmp_path), "bad")]), at_once=1, tick=int)
        assert caught.value.exit_code == 2
    finally:
        backend.close()
