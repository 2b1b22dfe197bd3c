"""A proxy on loopback before a real model server: what was asked for, and what was answered."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.judging.builders import asked
from tests.serving import running


class RecordingProxy(ThreadingHTTPServer):
    """Passes every request on; `answered` lists the task's words and the leaves of each."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.answered: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def leaves(self) -> list[str]:
        with self.lock:
            return [leaf for request in self.answered for leaf in asked(request)]


class _Handler(BaseHTTPRequestHandler):
    server: RecordingProxy
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.server.target + self.path.removeprefix("/v1")
        request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as reply:
            content = reply.read()
        with self.server.lock:
            self.server.answered.append(json.loads(body))
        with suppress(ConnectionError):  # whoever asked may have been killed meanwhile
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def recording_proxy(target: str) -> Iterator[RecordingProxy]:
    server = RecordingProxy(target)
    with running(server):
        yield server
