"""A real chat server in the OpenAI protocol on loopback that can be told to misbehave."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.serving import running

Behavior = Literal["ok", "429", "500", "hang", "cut", "garbage"]
# What a model is asked before a run.
PREFLIGHT = "Reply with the word: ready"
Refusal = tuple[int, str]
# A text, or a whole choice such as one that was cut off or refused.
Reply = Callable[[dict[str, Any]], str | dict[str, Any]]
# The tokens of a request and of the choice that answers it.
Usage = Callable[[dict[str, Any], dict[str, Any]], tuple[int, int]]


class ChatServer(ThreadingHTTPServer):
    """Answers by `reply`, except where `behaviors` still holds what to do instead."""

    daemon_threads = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.usage: Usage = lambda request, choice: (10, 5)
        self.behaviors: list[Behavior] = []
        self.forever: Behavior | None = None
        self.delay = 0.0
        # What it refuses, as providers do; None takes everything.
        self.key: str | None = None
        self.model: str | None = None
        self.sees = True
        self.tools_refusal: Refusal | None = None
        self.calls_first_tool = False
        # The request before a run is counted by itself (but not a second one, with a tool), and
        # what both meet is said here.
        self.preflight: Behavior = "ok"
        self.preflights = 0
        self.answered = 0
        self.last_headers: dict[str, str] = {}
        self.asked = 0
        # When each request came that is not one before a run.
        self.times: list[float] = []
        self.at_once = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def refusal(self, path: str, headers: Message, request: dict[str, Any]) -> Refusal | None:
        """The status and message for a request that the server does not take."""
        if not path.startswith("/v1/"):
            return 404, "File Not Found"
        if self.key is not None and headers["Authorization"] != f"Bearer {self.key}":
            return 401, "Incorrect API key provided."
        if self.model is not None and request["model"] != self.model:
            return 404, f"The model `{request['model']}` does not exist."
        if not self.sees and "image_url" in json.dumps(request["messages"]):
            return 500, "image input is not supported - hint: you may need to provide the mmproj"
        return self.tools_refusal if request.get("tools") else None

    def next_behavior(self) -> Behavior:
        with self.lock:
            self.asked += 1
            self.times.append(time.monotonic())
            if self.behaviors:
                return self.behaviors.pop(0)
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
        server.last_headers = {name.lower(): value for name, value in self.headers.items()}
        with server.lock:
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            self._answer(request)
        finally:
            with server.lock:
                server.at_once -= 1

    def _answer(self, request: dict[str, Any]) -> None:
        server = self.server
        asked_before = PREFLIGHT in json.dumps(request["messages"])
        with server.lock:
            server.preflights += asked_before and not request.get("tools")
        refusal = server.refusal(self.path, self.headers, request)
        if refusal is not None:
            status, words = refusal
            self._send(status, {"error": {"message": words, "type": "invalid_request_error"}})
        elif not asked_before:
            self._behave(server.next_behavior(), request)
        elif server.preflight == "ok":
            calls = server.calls_first_tool and request.get("tools")
            reply = call_first(request) if calls else "ready"
            self._send(200, completion(request, reply, server.usage))
        else:
            self._behave(server.preflight, request)

    def _behave(self, behavior: Behavior, request: dict[str, Any]) -> None:
        if behavior in ("429", "500"):
            self._send(int(behavior), {"error": {"message": "not now", "type": "server_error"}})
        elif behavior == "hang":
            self.server.closing.wait(60)
            self.close_connection = True
        elif behavior == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif behavior == "garbage":
            self._send(200, ["not", "a", "completion"])
        else:
            time.sleep(self.server.delay)
            self._send(200, completion(request, self.server.reply(request), self.server.usage))
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


def call_first(request: dict[str, Any]) -> dict[str, Any]:
    """A choice that calls the first tool of a request."""
    function = {"name": request["tools"][0]["function"]["name"], "arguments": "{}"}
    call = {"id": "call-1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"finish_reason": "tool_calls", "message": message}


def completion(
    request: dict[str, Any],
    reply: str | dict[str, Any],
    usage: Usage = lambda request, choice: (10, 5),
) -> dict[str, Any]:
    choice = (
        {"message": {"role": "assistant", "content": reply}} if isinstance(reply, str) else reply
    )
    sent, written = usage(request, choice)
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": f"{request['model']}-2026",
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": written,
            "total_tokens": sent + written,
        },
    }
