"""A Ray cluster that loses its head while a run is at work, and gets it back."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.running.backends.backend import stay_on_loopback
from tests.chat_server import chat_server
from tests.scripted import reference_reply
from tests.slow.test_shards import (
    Bench,
    add_node,
    be_patient,
    environment,
    finished,
    uuids,
    wait_until,
)

pytestmark = pytest.mark.measure

UNITS = 24
# The command, with less patience than the most that Ray allows.
IMPATIENT = """
from gta_bench.cli import main
from gta_bench.running.backends import backend
backend.HEAD_PATIENCE = 3.0
main()
"""


@pytest.fixture
def bench(atomic_dir: Path, tmp_path: Path, loopback: None) -> Iterator[Bench]:
    with chat_server(reference_reply(load_atomic(atomic_dir).tasks)) as server:
        yield Bench(tmp_path, atomic_dir, server)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Head:
    """A cluster of one node, at an address that outlasts it."""

    def __init__(self) -> None:
        # A raylet dies if an agent that chooses its own port takes more than 15 s to start.
        agents = ("metrics_agent", "metrics_export", "runtime_env_agent", "dashboard_agent_listen")
        self._ports = {f"{name}_port": free_port() for name in ("gcs_server", *agents)}
        self._cluster: Any = None

    def start(self) -> str:
        from ray.cluster_utils import Cluster

        be_patient()
        self._cluster = Cluster()
        add_node(self._cluster, num_cpus=1, include_dashboard=False, **self._ports)
        return str(self._cluster.address)

    def kill(self) -> None:
        """Kill the service that makes a node the head."""
        (service,) = self._cluster.head_node.all_processes["gcs_server"]
        os.kill(service.process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End what the head's loss left of the cluster."""
        self._cluster.shutdown()


@pytest.fixture
def head(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    folder = tempfile.mkdtemp(prefix="gta-ray-", dir="/tmp")  # paths of sockets must be short
    for name, value in {**environment(bench.root), "RAY_TMPDIR": folder}.items():
        monkeypatch.setenv(name, value)
    stay_on_loopback()
    found = Head()
    try:
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_lost_head_is_told_with_what_is_safe_and_the_next_one_goes_on(
    bench: Bench, head: Head
) -> None:
    """Ray ended the command without a word a minute after the loss."""
    bench.server.delay = 0.3
    some = ("run", "--tasks", f"0:{UNITS}", "--max-connections", "4", "--no-preflight")
    options = bench.command(*some, "--cluster", head.start())[3:]
    driver = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *options],
        cwd=bench.root,
        env=environment(bench.root),
        stderr=subprocess.PIPE,
        text=True,
    )
    run = bench.root / "run"
    wait_until(lambda: finished(run) >= 3, driver)
    head.kill()
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 3, said
    (line,) = [one for one in said.splitlines() if one.startswith("gta: ")]
    assert line.startswith("gta: The head of the Ray cluster at 127.0.0.1:")
    assert " is lost" in line
    assert f"of {UNITS} units are finished and safe in run; run the same command again" in line
    assert "Traceback" not in said
    head.stop()

    kept = uuids(run)
    assert 3 <= len(kept) < UNITS
    assert all(len(samples) == 1 for samples in kept.values())
    bench.server.delay = 0.0
    bench.run(*some, "--cluster", head.start())
    after = uuids(run)
    assert len(after) == UNITS
    assert all(len(samples) == 1 for samples in after.values())
    assert {key: after[key] for key in kept} == kept
