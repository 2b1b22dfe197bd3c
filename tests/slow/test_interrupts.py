"""Interrupts of the Python API where users have them: scripts, coroutines and Jupyter kernels.

A server that takes a second for each reply counts what it is asked, also after the stop.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jupyter_client.manager import KernelManager
from jupyter_core.utils import ensure_event_loop

import gta_bench
from gta_bench.running import calling
from gta_bench.runs.logs import count_finished
from tests.builders import atomic_task, write_atomic
from tests.chat_server import ChatServer, chat_server

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("loopback")]

UNITS = 30
# Replies of the server before the interrupt: about 6 seconds of work on four connections.
REPLIES = 20
SAFE = "units are finished and safe in"
AGAIN = "call again with the same arguments to continue"
SETUP = """
import time
import gta_bench
options = dict(
    model="local", mode="step", data={data!r}, preflight=False,
    settings=gta_bench.Settings.model_validate({settings!r}),
)
"""


class Stopped(NamedTuple):
    """How an interrupt ended: seconds, what was raised and said, and what was shown before."""

    seconds: float
    raised: str
    said: str
    shown: str = ""


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as found:
        found.delay = 1.0
        yield found


@pytest.fixture
def setup(server: ChatServer, tmp_path: Path) -> str:
    write_atomic(tmp_path / "data", {str(number): atomic_task() for number in range(UNITS)})
    settings = {
        "models": {"local": {"model": "openai-api/local/any", "base_url": server.url}},
        "budget": {"max_connections": 4, "max_retries": 0},
        "scoring": {"similarity": "exact-or-half"},
    }
    return SETUP.format(data=str(tmp_path / "data"), settings=settings)


def wait_for_replies(server: ChatServer) -> None:
    end = time.monotonic() + 120
    while server.answered < REPLIES:
        assert time.monotonic() < end, "the run does not ask the server"
        time.sleep(0.02)


def run_program(setup: str, call: str, server: ChatServer, folder: Path) -> Stopped:
    """Interrupt a program as Ctrl-C does; it prints when the exception reached it."""
    program = folder / "program.py"
    program.write_text(f"{setup}\n{call}", encoding="utf-8")
    command = [sys.executable, str(program), str(folder / "run")]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, cwd=folder) as process:
        wait_for_replies(server)
        start = time.time()
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
    seconds, raised, said = printed.strip().split(" ", 2)
    assert process.returncode != 0 and "Traceback" in errors
    return Stopped(float(seconds) - start, raised, said)


def run_script(setup: str, server: ChatServer, folder: Path) -> Stopped:
    call = """
import sys
try:
    gta_bench.run("atomic", sys.argv[1], **options)
except KeyboardInterrupt as stopped:
    print(time.time(), type(stopped).__name__, stopped)
    raise
"""
    return run_program(setup, call, server, folder)


def run_coroutine(setup: str, server: ChatServer, folder: Path) -> Stopped:
    call = """
import asyncio, sys
async def main():
    try:
        await gta_bench.arun("atomic", sys.argv[1], **options)
    except asyncio.CancelledError as stopped:
        print(time.time(), type(stopped).__name__, stopped)
        raise
asyncio.run(main())
"""
    return run_program(setup, call, server, folder)


def run_cell(setup: str, server: ChatServer, folder: Path) -> Stopped:
    cell = f"gta_bench.run('atomic', {str(folder / 'run')!r}, **options)"
    return interrupt_cell(setup, cell, server)


def run_cell_with_await(setup: str, server: ChatServer, folder: Path) -> Stopped:
    cell = f"await gta_bench.arun('atomic', {str(folder / 'run')!r}, **options)"
    return interrupt_cell(setup, cell, server)


def interrupt_cell(setup: str, cell: str, server: ChatServer) -> Stopped:
    with open_kernel() as (manager, execute):
        assert execute(setup)["status"] == "ok"
        began: list[float] = []

        def interrupt() -> None:
            wait_for_replies(server)
            began.append(time.time())
            manager.interrupt_kernel()
            ensure_event_loop().close()  # the one that the manager made for this thread

        thread = threading.Thread(target=interrupt)
        thread.start()
        found = execute(cell)
        ended = time.time()
        thread.join()
        return Stopped(ended - began[0], found["ename"], found["evalue"], found["shown"])


@contextmanager
def open_kernel() -> Iterator[tuple[KernelManager, Callable[[str], dict[str, Any]]]]:
    """A real ipykernel, and a function that executes a cell in it and returns its reply."""
    manager = KernelManager()
    python = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.kernel_spec.argv = python  # type: ignore[union-attr]
    manager.start_kernel(env=dict(os.environ), stderr=subprocess.DEVNULL)
    client = manager.client()
    client.start_channels()

    def execute(cell: str) -> dict[str, Any]:
        shown: list[str] = []

        def show(message: dict[str, Any]) -> None:
            if message["msg_type"] in ("stream", "display_data"):
                shown.append(str(message["content"]))

        reply = client.execute_interactive(cell, output_hook=show, timeout=180)
        return {**reply["content"], "shown": "\n".join(shown)}

    try:
        client.wait_for_ready(timeout=120)
        yield manager, execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        ensure_event_loop().close()  # the client's


@pytest.mark.parametrize(
    ("interrupt", "raised"),
    [
        (run_script, "KeyboardInterrupt"),
        pytest.param(run_coroutine, "CancelledError", marks=pytest.mark.measure),
        pytest.param(run_cell, "KeyboardInterrupt", marks=pytest.mark.measure),
        (run_cell_with_await, "CancelledError"),
    ],
)
def test_an_interrupt_stops_a_run_soon_and_keeps_what_is_finished(
    interrupt: Callable[[str, ChatServer, Path], Stopped],
    raised: str,
    setup: str,
    server: ChatServer,
    tmp_path: Path,
) -> None:
    """A notebook's cell went on for 27 seconds, finished all units, and then raised."""
    stopped = interrupt(setup, server, tmp_path)
    asked = server.asked
    time.sleep(3)
    kept = count_finished(tmp_path / "run" / "logs")
    print(f"{interrupt.__name__}: {stopped.seconds:.2f} s, {kept} of {UNITS} units kept")
    assert server.asked == asked, "the model was called after the stop"
    assert stopped.raised == raised
    assert f"{kept} of {UNITS} {SAFE}" in stopped.said and AGAIN in stopped.said
    assert 0 < kept < UNITS
    assert stopped.shown == ""
    # Two seconds at most here; the bound is for a busy machine, where a run would go on for 15.
    assert stopped.seconds < 8


def test_a_cell_runs_without_ipywidgets_shows_nothing_and_continues(
    setup: str, server: ChatServer, tmp_path: Path
) -> None:
    """Inspect raised ModuleNotFoundError; rich and errors of units wrote into the cell."""
    server.delay = 0
    cell = f"gta_bench.run('atomic', {str(tmp_path / 'run')!r}, **options, limit={{}}).n"
    with open_kernel() as (_, execute):
        assert execute("import importlib.util as u; assert not u.find_spec('ipywidgets')")
        assert execute(setup)["status"] == "ok"
        for limit in (2, 3):
            found = execute(cell.format(limit) + f" == {limit} or 1 / 0")
            assert (found["status"], found["shown"]) == ("ok", "")
        assert "hello" in execute("import rich; rich.print('hello')")["shown"]


def test_a_canceled_task_stops_its_run_and_the_loop_goes_on(
    server: ChatServer, setup: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine ends its work later than in two seconds.
    monkeypatch.setattr(calling, "PATIENCE", 6.0)
    names: dict[str, Any] = {}
    exec(setup, names)

    async def main() -> tuple[float, str]:
        task = asyncio.create_task(gta_bench.arun("atomic", tmp_path / "run", **names["options"]))
        while server.answered < 4:
            await asyncio.sleep(0.02)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return time.monotonic() - start, str(caught.value)

    seconds, said = asyncio.run(main())
    asked = server.asked
    time.sleep(2)
    assert server.asked == asked and SAFE in said
    assert seconds < 8
