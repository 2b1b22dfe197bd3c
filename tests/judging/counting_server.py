"""A provider on loopback that counts requests, bytes, tokens and what a prefix cache would read."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

from PIL import Image

from tests.chat_server import completion
from tests.judging.builders import honest
from tests.serving import running

CHARACTERS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750


@dataclass
class Counts:
    """What one side sent; tokens are those of chat requests."""

    calls: int = 0
    uploads: int = 0
    bytes: int = 0
    tokens: int = 0
    prefix: int = 0
    cached: int = 0


@dataclass
class CountingServer:
    """Takes `seconds` for every request."""

    seconds: float
    counts: Counts = field(default_factory=Counts)
    cache: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def fresh(self) -> None:
        self.counts, self.cache = Counts(), set()

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        """A sound judge's reply, with the usage that a provider with a prefix cache reports."""
        blocks = list(_blocks(request))
        marks = list(_prefixes(blocks))
        with self.lock:
            known = next((n for n, mark in enumerate(marks) if mark not in self.cache), len(marks))
        time.sleep(self.seconds)
        tokens = [_tokens(block) for block in blocks]
        with self.lock:
            self.cache.update(marks)
            self.counts.calls += 1
            self.counts.tokens += sum(tokens)
            self.counts.prefix += sum(tokens[:-1])
            self.counts.cached += sum(tokens[:known])
        reply = completion(request, honest(request))
        reply["usage"] = {
            "prompt_tokens": sum(tokens),
            "completion_tokens": 40,
            "total_tokens": sum(tokens) + 40,
            "prompt_tokens_details": {"cached_tokens": sum(tokens[:known])},
        }
        return reply


def _blocks(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The prompt as a provider reads it: the schema, then every part of every message."""
    yield {"type": "text", "text": json.dumps(request.get("response_format"))}
    for message in request["messages"]:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def _prefixes(blocks: list[dict[str, Any]]) -> Iterator[str]:
    running_hash = hashlib.sha256()
    for block in blocks:
        running_hash.update(json.dumps(block).encode())
        yield running_hash.hexdigest()


def _tokens(block: dict[str, Any]) -> int:
    if block["type"] == "text":
        return len(block["text"]) // CHARACTERS_PER_TOKEN + 1
    data = base64.b64decode(block["image_url"]["url"].partition(",")[2])
    width, height = Image.open(BytesIO(data)).size
    return int(width * height // PIXELS_PER_TOKEN)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counting: CountingServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        counting = self.counting
        with counting.lock:
            counting.counts.bytes += len(body)
        if self.path.endswith("/chat/completions"):
            reply = counting.chat(json.loads(body))
        elif self.path.endswith("/files"):
            time.sleep(counting.seconds)
            with counting.lock:
                counting.counts.uploads += 1
            reply = {"id": "file-1"}
        else:
            time.sleep(counting.seconds)
            with counting.lock:
                counting.counts.calls += 1
            reply = {"output_text": '{"score": 8, "analysis": "Seen."}'}
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def counting_server(seconds: float) -> Iterator[CountingServer]:
    counting = CountingServer(seconds)
    handler = type("Handler", (_Handler,), {"counting": counting})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    counting.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with running(server):
        yield counting
