"""Inspect's viewer beside the app: started when a trace is opened first, stopped with the app."""

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gta_bench.errors import EnvironmentProblem, RunError
from gta_bench.harnesses.choice import free_port
from gta_bench.records.attempts import UnitKey
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import find_log

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0
SERVE: Final = """
import sys
from inspect_ai import view
view(log_dir=sys.argv[1], host=sys.argv[2], port=int(sys.argv[3]))
"""


def trace_fragment(logs: str, key: UnitKey) -> str:
    """Return the part of an address that opens a unit in Inspect's viewer."""
    task, epoch = key
    return f"#/logs/{quote(logs)}/samples/sample/{quote(task, safe='')}/{epoch}/transcript"


def is_listening(port: int) -> bool:
    """Whether a server on this machine answers at the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


class TraceViewer:
    """One process with Inspect's viewer for the logs of all runs of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._lock = threading.Lock()

    def open(self, run: Path, key: UnitKey | None) -> str:
        """Return the address of a unit's trace, or of all logs; starts the viewer if needed."""
        fragment = ""
        if key is not None:
            found = find_log(log_folder(run), *key)
            if found is None:
                raise RunError(
                    f"{run} has no sample of task {key[0]!r}, epoch {key[1]}: it has not been run "
                    "yet."
                )
            logs = log_folder(run).resolve().relative_to(self._folder)
            fragment = trace_fragment((logs / found).as_posix(), key)
        return f"http://{HOST}:{self._start()}/{fragment}"

    def close(self) -> None:
        """Stop the viewer."""
        with self._lock:
            if self._process is not None:
                self._process.send_signal(signal.SIGTERM)
                try:
                    self._process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._process = None

    def _start(self) -> int:
        """Return the port at which the viewer answers."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return self._port
            self._port = free_port()
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVE, str(self._folder), HOST, str(self._port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            end = time.monotonic() + START_SECONDS
            while time.monotonic() < end and self._process.poll() is None:
                if is_listening(self._port):
                    return self._port
                time.sleep(0.1)
        raise EnvironmentProblem(
            f"Inspect's viewer did not start; `inspect view --log-dir {self._folder}` says why."
        )
