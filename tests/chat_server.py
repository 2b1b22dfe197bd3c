"""A real chat server in the OpenAI protocol on loopback that can be told to misbehave."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.serving import running

Behaviour = Literal["ok", "429", "500", "hang", "cut", "garbage"]
# A text, or a whole choice such as one that was cut off or refused.
Reply = Callable[[dict[str, Any]], str | dict[str, Any]]


class ChatServer(ThreadingHTTPServer):
    """Answers by `reply`, except where `behaviours` still holds what to do instead."""

    daemon_threads = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.behaviours: list[Behaviour] = []
        self.forever: Behaviour | None = None
        self.delay = 0.0
        self.answered = 0
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next_behaviour(self) -> Behaviour:
        with self.lock:
            self.asked += 1
            if self.behaviours:
                return self.behaviours.pop(0)
            return self.forever or "ok"


@contextmanager
def chat_server(reply: Reply = lambda request: "It is 7.") -> Iterator[ChatServer]:
    server = ChatServer(reply)
    with running(server):
        try:
            yield server
        finally:
            server.closing.set()


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            self._behave(server.next_behaviour(), request)
        finally:
            with server.lock:
                server.at_once -= 1

    def _behave(self, behaviour: Behaviour, request: dict[str, Any]) -> None:
        if behaviour in ("429", "500"):
            self._send(int(behaviour), {"error": {"message": "not now", "type": "server_error"}})
        elif behaviour == "hang":
            self.server.closing.wait(60)
            self.close_connection = True
        elif behaviour == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif behaviour == "garbage":
            self._send(200, ["not", "a", "completion"])
        else:
            time.sleep(self.server.delay)
            self._send(200, completion(request, self.server.reply(request)))
            with self.server.lock:
                self.server.answered += 1

    def _send(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def completion(request: dict[str, Any], reply: str | dict[str, Any]) -> dict[str, Any]:
    choice = (
        {"message": {"role": "assistant", "content": reply}} if isinstance(reply, str) else reply
    )
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": f"{request['model']}-2026",
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
