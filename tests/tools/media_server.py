"""A real server on this machine that speaks the parts of the OpenAI protocol that media need."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """What the server answers by method and path, and what it was asked."""

    replies: dict[str, list[tuple[int, bytes]]]
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def next_reply(self, call: str) -> tuple[int, bytes]:
        """The replies to one call in their order; the last one for ever."""
        replies = self.replies.get(call, [(404, b"no such path")])
        return replies.pop(0) if len(replies) > 1 else replies[0]


def said(body: object, status: int = 200) -> tuple[int, bytes]:
    return status, json.dumps(body).encode()


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """The address of a server that follows the script."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.reply()

        def do_POST(self) -> None:
            self.reply()

        def reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            call = f"{self.command} {self.path}"
            script.asked.append((call, body))
            script.keys.add(self.headers.get("Authorization", ""))
            status, content = script.next_reply(call)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
