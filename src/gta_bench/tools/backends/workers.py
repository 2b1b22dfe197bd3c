"""Worker processes for local models, and the program that runs in them.

Models block Python's lock for tens of milliseconds, and native decoders can crash, so both run in
processes of their own. A pool has few of them, each with one job at a time.

A job is a line of JSON, followed by the bytes that it announces; so is the reply. Models stay
loaded between jobs. A process ends when its input does, so none outlives the program that started
it.
"""

import asyncio
import atexit
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import IO, BinaryIO, NamedTuple

from pydantic import JsonValue

from gta_bench.errors import ToolError

PROGRAM = "gta_bench.tools.backends.workers"
SECONDS = 120.0
ENDING_SECONDS = 30.0  # a process whose output ended may need long to end on a busy machine
MOST_WORKERS = 4
NICENESS = 5  # lower priority than the event loop and the jailed programs, which must be quick
JOBS: Mapping[str, str] = {
    "ocr": "gta_bench.tools.backends.local_models:read_lines",
    "detect": "gta_bench.tools.backends.local_models:detect_objects",
    "stylize": "gta_bench.tools.backends.local_models:paint_picture",
}


class JobOutcome(NamedTuple):
    """The result of a job: a value, and the bytes of a file if it made one."""

    value: JsonValue
    data: bytes = b""


class Worker:
    """One process, started with its first job and again after a crash."""

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def do(
        self, job: str, data: bytes, options: Mapping[str, JsonValue], seconds: float
    ) -> JobOutcome:
        """Run one job; raises ToolError if it fails, takes too long or ends the process."""
        process = self._start()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            reply, made = _exchange(process, job, data, options)
        except (OSError, ValueError) as exc:
            late_by = f"took more than {seconds:g} seconds"
            problem = late_by if late.is_set() else self._describe_end()
            raise ToolError(f"The process for {job!r} {problem}.") from exc
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

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
            )
        return self._process

    def _describe_end(self) -> str:
        """Return how the process ended, with the last line that it wrote."""
        assert self._process is not None and self._errors is not None
        try:
            end = f"ended with code {self._process.wait(timeout=ENDING_SECONDS)}"
        except subprocess.TimeoutExpired:
            end = "sent a reply that cannot be read"
        self._errors.seek(0)
        last = self._errors.read().decode("utf-8", errors="replace").strip().splitlines()[-1:]
        self.close()
        line = f": {last[0][:200]}" if last else ""
        return f"{end}{line}"


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
        raise ValueError("the reply is incomplete")
    return reply, made


class Workers:
    """A pool of workers."""

    def __init__(self, number: int, program: str = PROGRAM) -> None:
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._all = [Worker(program) for _ in range(number)]
        for worker in self._all:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="model")

    async def run(
        self, job: str, data: bytes, options: Mapping[str, JsonValue], seconds: float = SECONDS
    ) -> JobOutcome:
        """Run one job as soon as a worker is free; `seconds` count from then on."""

        def work() -> JobOutcome:
            worker = self._idle.get()
            try:
                return worker.do(job, data, options, seconds)
            finally:
                self._idle.put(worker)

        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.close()


def get_workers() -> Workers:
    """Return the pool of this process, which all toolboxes share."""
    return _pool(os.getpid())  # a forked child must not write into its parent's pipes


@cache
def _pool(owner: int) -> Workers:
    # One core is left to the event loop and to jailed programs.
    workers = Workers(max(1, min(MOST_WORKERS, (os.cpu_count() or 1) - 1)))
    atexit.register(workers.close)
    return workers


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Run jobs until the input ends; called in the worker process."""
    while line := requests.readline():
        header = json.loads(line)
        data = requests.read(header["bytes"])
        module, _, name = JOBS[header["job"]].partition(":")
        job: Callable[[bytes, Mapping[str, JsonValue]], JobOutcome]
        job = getattr(import_module(module), name)
        made = b""
        try:
            value, made = job(data, header["options"])
            reply = {"value": value}
        except ToolError as exc:
            reply = {"error": str(exc)}
        replies.write(json.dumps({**reply, "bytes": len(made)}).encode() + b"\n" + made)
        replies.flush()


def main() -> None:
    """Serve on the pipes of this process; what libraries print goes to stderr."""
    if sys.platform != "win32":
        os.nice(NICENESS)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
