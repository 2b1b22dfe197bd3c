"""A real HTTP server on loopback that answers like a search service, or misbehaves."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.serving import running


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


class SearchServer(ThreadingHTTPServer):
    """Replies `reply`; before that, one status of `statuses` for each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply: Any = {}
        self.statuses: list[int] = []
        self.extra_headers: dict[str, str] = {}
        self.delay = 0.0
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving() -> Iterator[SearchServer]:
    server = SearchServer()
    with running(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.command, self.path, headers, body))
        time.sleep(self.server.delay)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        reply = self.server.reply
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in self.server.extra_headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):  # the client did not wait
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass
