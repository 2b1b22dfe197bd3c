"""A loopback proxy in front of a real model server that records requests and replies."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.serving import running


class Exchange(NamedTuple):
    """A request and its reply, read from JSON."""

    request: dict[str, Any]
    reply: dict[str, Any]


class RecordingProxy(ThreadingHTTPServer):
    """Passes every request on, and keeps it with its reply."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.lock = threading.Lock()
        self._exchanges: list[Exchange] = []

    def keep(self, exchange: Exchange) -> None:
        with self.lock:
            self._exchanges.append(exchange)

    def taken(self) -> list[Exchange]:
        """What was answered since the last time."""
        with self.lock:
            exchanges, self._exchanges = self._exchanges, []
        return exchanges


class _Handler(BaseHTTPRequestHandler):
    server: RecordingProxy
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.server.target + self.path.removeprefix("/v1")
        request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=1800) as reply:
                status, content = reply.status, reply.read()
        except urllib.error.HTTPError as exc:
            with exc:
                status, content = exc.code, exc.read()
        self.server.keep(Exchange(json.loads(body), json.loads(content)))
        with suppress(ConnectionError):  # the client may have been killed meanwhile
            self.send_response(status)
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
