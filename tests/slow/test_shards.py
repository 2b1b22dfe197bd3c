"""All 229 tasks on every backend, and on a cluster that loses a worker, a node and its driver."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.atomic import AtomicTask
from gta_bench.runs.directory import log_folder, read_scores
from gta_bench.runs.logs import kept_units, log_files
from gta_bench.runs.progress import progress_folder, read_command, read_progress
from gta_bench.tape.reference import reference_tape
from tests.chat_server import ChatServer, chat_server
from tests.conftest import REPOSITORY
from tests.scripted import reference_reply, write_settings

pytestmark = pytest.mark.slow


class Bench:
    """A scripted model, a tape, and the command that runs all tasks with both."""

    def __init__(self, root: Path, data: Path, server: ChatServer) -> None:
        self.root, self.data, self.server = root, data, server
        self.settings = write_settings(root / "gta.toml", server.url)
        reference_tape(load_atomic(data), root / "tape")

    def start(self, out: str, *arguments: str) -> subprocess.Popen[str]:
        options = ("--mode", "end-to-end", "--model", "scripted", "--similarity", "exact-or-half")
        files = ("--data", str(self.data), "--tape", str(self.root / "tape"), "--out", out)
        command = (sys.executable, "-m", "gta_bench.cli", "--config", str(self.settings))
        return subprocess.Popen(
            [*command, "run", "atomic", *options, *files, *arguments],
            cwd=self.root,
            env=environment(self.root),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, out: str, *arguments: str) -> Path:
        process = self.start(out, *arguments)
        _, said = process.communicate(timeout=600)
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
    (log,) = log_files(log_folder(run))
    results = read_eval_log(log, header_only=True).results
    assert results is not None
    return {
        name: f"{metric.value:.12g}"
        for score in results.scores
        for name, metric in score.metrics.items()
    }


def check_equal(run: Path, inline: Path) -> None:
    assert counts(run) == counts(inline)
    assert metrics(run) == metrics(inline)
    kept = kept_units(log_folder(run))
    assert len(kept) == 229
    assert kept.keys() == kept_units(log_folder(inline)).keys()
    assert all(one.finished for one in kept.values())


def test_two_processes_give_what_one_gives(bench: Bench, inline: Path, loopback: None) -> None:
    run = bench.run("processes", "--workers", "2")
    check_equal(run, inline)
    assert not list(log_folder(run).glob("*.shards"))
    assert {score for score in metrics(run).values()} > {"0"}


def finished(run: Path) -> int:
    progress = read_progress(progress_folder(run)) if (run / "progress").is_dir() else None
    return 0 if progress is None else progress.done


def wait_until(true: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + 300
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
            if parent == raylet and name.startswith(b"ray::guarded"):
                found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def cluster(bench: Bench) -> Iterator[Any]:
    """Three nodes on this machine; the first is for the driver only."""
    before = dict(os.environ)
    os.environ.update(environment(bench.root))
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        # Paths of sockets must be short.
        folder = f"/tmp/gta-ray-{os.getpid()}"
        cluster.add_node(
            num_cpus=0, include_dashboard=False, node_ip_address="127.0.0.1", temp_dir=folder
        )
        for _ in range(2):
            cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")
        yield cluster
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


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
    for log in log_files(log_folder(run)):
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

    wait_until(lambda: finished(run) >= 20, driver)
    os.kill(ray_workers(raylet)[0], signal.SIGKILL)
    wait_until(lambda: finished(run) >= 60, driver)
    cluster.remove_node(second, allow_graceful=False)
    cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")
    wait_until(lambda: finished(run) >= 110, driver)
    driver.kill()
    driver.communicate()
    wait_until(lambda: not ray_workers(raylet))

    kept = uuids(run)
    assert 100 <= len(kept) < 229
    assert all(len(samples) == 1 for samples in kept.values())
    bench.server.delay = 0.0
    bench.run("faults", "--cluster", cluster.address)
    check_equal(run, inline)
    after = uuids(run)
    assert {key: after[key] for key in kept} == kept
    command, progress = (
        read_command(progress_folder(run)),
        read_progress(progress_folder(run)),
    )
    assert command is not None
    assert progress is not None
    assert command.finished == len(kept)
    assert (progress.done, progress.done_now, progress.failed) == (229, 229 - len(kept), 0)
    said = subprocess.run(
        [sys.executable, "-m", "gta_bench.cli", "status", str(run), "--json"],
        env=environment(bench.root),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout)["state"] == "complete"
