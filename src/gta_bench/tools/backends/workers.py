"""Worker processes for local models: the event loop stays free, a crash stays outside.

Models hold Python's lock for tens of milliseconds, and native decoders can crash: both happen in
processes of their own. A pool has few of them, each with one job at a time; waiting calls hold no
thread of the toolbox.
"""

import asyncio
import atexit
import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import IO

from pydantic import JsonValue

from gta_bench.errors import ToolError
from gta_bench.tools.backends.worker import JobOutcome

PROGRAM = "gta_bench.tools.backends.worker"
SECONDS = 120.0
MOST_WORKERS = 4


class Worker:
    """One process, started at its first job and again after it was lost."""

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def do(
        self, job: str, data: bytes, options: Mapping[str, JsonValue], seconds: float
    ) -> JobOutcome:
        """One job; ToolError if it fails, takes too long or ends the process."""
        process = self._running()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            reply, made = _exchange(process, job, data, options)
        except (OSError, ValueError) as exc:
            ended = f"took more than {seconds:g} seconds" if late.is_set() else self._ending()
            raise ToolError(f"The process for {job!r} {ended}.") from exc
        finally:
            timer.cancel()
            if late.is_set():
                self.close()
        if "error" in reply:
            raise ToolError(str(reply["error"]))
        return JobOutcome(reply["value"], made)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
            )
        return self._process

    def _ending(self) -> str:
        """How the process ended, with the last line it wrote."""
        assert self._process is not None and self._errors is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        code = self._process.poll()
        self._errors.seek(0)
        last = self._errors.read().decode("utf-8", errors="replace").strip().splitlines()[-1:]
        self.close()
        said = f": {last[0][:200]}" if last else ""
        return f"ended with code {code}{said}"


def _exchange(
    process: subprocess.Popen[bytes], job: str, data: bytes, options: Mapping[str, JsonValue]
) -> tuple[dict[str, JsonValue], bytes]:
    assert process.stdin is not None and process.stdout is not None
    header = json.dumps({"job": job, "options": dict(options), "bytes": len(data)})
    process.stdin.write(header.encode() + b"\n" + data)
    process.stdin.flush()
    reply = json.loads(process.stdout.readline())
    made = process.stdout.read(reply["bytes"])
    if len(made) != reply["bytes"]:
        raise ValueError("the answer is cut")
    return reply, made


class Workers:
    """A few workers and the calls that wait for them."""

    def __init__(self, number: int, program: str = PROGRAM) -> None:
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._all = [Worker(program) for _ in range(number)]
        for worker in self._all:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="model")

    async def run(
        self, job: str, data: bytes, options: Mapping[str, JsonValue], seconds: float = SECONDS
    ) -> JobOutcome:
        """One job, as soon as a worker is free; the time counts from then on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._do, job, data, options, seconds)

    def _do(
        self, job: str, data: bytes, options: Mapping[str, JsonValue], seconds: float
    ) -> JobOutcome:
        worker = self._idle.get()
        try:
            return worker.do(job, data, options, seconds)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.close()


def shared_workers() -> Workers:
    """The pool of this process: models are loaded once, whatever number of toolboxes there is."""
    return _pool(os.getpid())  # a forked child must not write into its parent's pipes


@cache
def _pool(owner: int) -> Workers:
    # One core is left to the event loop and to jailed programs.
    workers = Workers(max(1, min(MOST_WORKERS, (os.cpu_count() or 1) - 1)))
    atexit.register(workers.close)
    return workers
