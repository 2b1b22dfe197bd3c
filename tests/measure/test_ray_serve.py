"""`gta tools serve --on ray` with a real cluster of this machine: equal, scaled, killed."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]
import pytest

from gta_bench.harnesses.choice import free_port
from gta_bench.serving.choice import ServerAddress
from gta_bench.serving.client import RemoteSource, connect
from gta_bench.settings import Settings
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox
from tests.served.examples import LIGHT, light_files
from tests.served.support import TOKEN, workspace_of
from tests.served.test_equality import Came, came

pytestmark = [pytest.mark.measure, pytest.mark.usefixtures("loopback")]

OTHER_PILLOW = "12.3.0"
PLAN = """
groups:
  - name: steady
    tools: [Calculator]
    replicas: 2
    cpus: 0.1
  - name: scaled
    tools: [Solver]
    replicas: {min: 0, max: 2, calls: 1, idle_seconds: 2}
    cpus: 0.1
  - name: others
    tools: ["*"]
    cpus: 0.1
"""
OWN_PACKAGES = f"""
groups:
  - name: boxes
    tools: [DrawBox]
    cpus: 0.1
    pip: [pillow=={OTHER_PILLOW}]
  - name: others
    tools: ["*"]
    cpus: 0.1
"""
SLEEPY = "```python\nimport time\ndef solution():\n    time.sleep(2)\n    return 7\n```"
PATIENCE = 900.0


class OnRay(NamedTuple):
    """A server on Ray: where it answers, and the process that started it."""

    url: str
    process: psutil.Process

    def replicas(self, group: str) -> list[psutil.Process]:
        """The processes of a group that have begun to serve.

        A program that a replica starts has its title for a moment, until it is a program.
        """
        title = f"ray::ServeReplica:gta-tools:{group}"
        everything = self.process.children(recursive=True)
        named = {one.pid: one for one in everything if _title(one) == title}
        return [one for one in named.values() if _parent(one) not in named]

    async def connect(self) -> RemoteSource:
        return await connect(ServerAddress("http", self.url), TOKEN)


def _parent(process: psutil.Process) -> int:
    try:
        return int(process.ppid())
    except psutil.Error:
        return 0


def _title(process: psutil.Process) -> str:
    try:
        return str(process.cmdline()[0]).partition(".")[0].strip()
    except (psutil.Error, IndexError):
        return ""


@pytest.fixture(scope="module")
def on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnRay]:
    with serve_on_ray(PLAN, tmp_path_factory.mktemp("ray")) as found:
        yield found


@contextmanager
def serve_on_ray(plan: str, folder: Path) -> Iterator[OnRay]:
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    (folder / "token").write_text(secrets.token_hex(32), encoding="ascii")
    port = free_port()
    command = [sys.executable, "-m", "gta_bench.cli", "tools", "serve", "--on", "ray"]
    options = ["--port", str(port), "--token-env", "GTA_TOOLS_TOKEN", "plan.yaml"]
    own = {"GTA_TOOLS_TOKEN": TOKEN, "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
    with ExitStack() as stack:
        # Not in pytest's folder: paths of sockets must be short.
        short = stack.enter_context(TemporaryDirectory(prefix="gta-ray-", dir="/tmp"))
        own["RAY_TMPDIR"] = short
        said = stack.enter_context((folder / "said").open("w+"))
        process = subprocess.Popen(
            [*command, *options], cwd=folder, env={**os.environ, **own}, stderr=said
        )
        below: list[psutil.Process] = []
        try:
            end = time.monotonic() + PATIENCE
            while "press Ctrl-C to stop" not in (folder / "said").read_text(encoding="utf-8"):
                assert process.poll() is None, (folder / "said").read_text(encoding="utf-8")
                assert time.monotonic() < end, (folder / "said").read_text(encoding="utf-8")
                time.sleep(0.2)
            served = OnRay(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
            yield served
            below = served.process.children(recursive=True)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
    _, left = psutil.wait_procs(below, timeout=60)
    assert left == [], "the cluster ended with its command"


async def do_light(served: OnRay, folder: Path) -> list[tuple[str, Came, Came]]:
    """Each light call by its tool, in this process and there."""
    equipment = await open_equipment(Settings())
    there = await served.connect()
    try:
        return [
            (
                call[0],
                await in_new_workspace(Toolbox(equipment), folder, *call),
                await in_new_workspace(there, folder, *call),
            )
            for call in LIGHT
        ]
    finally:
        await there.aclose()
        await asyncio.to_thread(close_equipment, equipment)


def test_results_equal_those_in_process(on_ray: OnRay, tmp_path: Path) -> None:
    for name, here, there in asyncio.run(do_light(on_ray, tmp_path)):
        assert here == there, name


def test_a_group_has_its_own_packages(tmp_path: Path) -> None:
    """Ray copies the whole environment for it, which takes minutes."""
    with serve_on_ray(OWN_PACKAGES, tmp_path) as served:
        found = asyncio.run(do_light(served, tmp_path / "work"))
    for name, here, there in found:
        if name == "DrawBox" and here.files.keys() - light_files().keys():
            assert f"pillow {OTHER_PILLOW}" in there.made_by[2] != here.made_by[2]
            assert here.said == there.said
        else:
            assert here == there, name


async def in_new_workspace(source: ToolSource, folder: Path, *call: Any) -> Came:
    with workspace_of(folder, light_files()) as workspace:
        return await came(source, workspace, *call)


def test_a_cluster_of_the_command_is_reached_by_this_machine_alone(on_ray: OnRay) -> None:
    everything = [on_ray.process, *on_ray.process.children(recursive=True)]
    found = [one for process in everything for one in process.net_connections("tcp")]
    listening = {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_replicas_come_with_the_load_and_go_after_it(on_ray: OnRay, tmp_path: Path) -> None:
    assert on_ray.replicas("scaled") == []
    most = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.1):
            most = max(most, len(on_ray.replicas("scaled")))

    async def load() -> list[Came]:
        """Eight calls at a time until both replicas are there: a process may start slowly."""
        there = await on_ray.connect()
        call = ("Solver", {"command": SLEEPY})
        results: list[Came] = []
        end = time.monotonic() + PATIENCE
        try:
            while most < 2 and time.monotonic() < end:
                calls = (in_new_workspace(there, tmp_path, *call) for _ in range(8))
                results += await asyncio.gather(*calls)
            return results
        finally:
            await there.aclose()

    thread = threading.Thread(target=watch)
    thread.start()
    results = asyncio.run(load())
    done.set()
    thread.join()
    assert {one.said for one in results} == {"7"}
    assert most == 2
    end = time.monotonic() + PATIENCE
    while on_ray.replicas("scaled") and time.monotonic() < end:
        time.sleep(0.2)
    assert on_ray.replicas("scaled") == []


def test_a_replica_that_is_killed_under_load_fails_no_call(on_ray: OnRay, tmp_path: Path) -> None:
    before = on_ray.replicas("steady")
    assert len(before) == 2

    results: list[Came] = []

    async def client(there: RemoteSource, end: float) -> None:
        # A busy machine needs longer for as many calls.
        while time.monotonic() < end or len(results) < 24:
            arguments = {"expression": "sum(range(100_000))"}
            results.append(await in_new_workspace(there, tmp_path, "Calculator", arguments))

    async def load() -> None:
        there = await on_ray.connect()
        try:
            end = time.monotonic() + 6
            clients = [asyncio.create_task(client(there, end)) for _ in range(8)]
            await asyncio.sleep(2)
            before[0].kill()
            await asyncio.gather(*clients)
        finally:
            await there.aclose()

    asyncio.run(load())
    assert not before[0].is_running()
    assert {one.said for one in results} == {"4999950000"}
