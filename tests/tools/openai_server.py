"""A real HTTP server on loopback that speaks the OpenAI protocol and can be told to misbehave."""

import base64
import io
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image

from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.backends.client import EndpointLimits
from gta_bench.tools.contract import Equipment
from tests.serving import running

KEY = "sk-planted-key-5f2a9c"
HASTY = EndpointLimits(retries=2, seconds=1, total_seconds=8, connect_seconds=1)


def png(color: str = "blue", size: tuple[int, int] = (48, 32)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", size, color).save(stream, "PNG")
    return stream.getvalue()


@dataclass(frozen=True)
class Turn:
    """One reply that differs from the good one."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    sleep: float = 0
    cut: bool = False


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    fields: Mapping[str, Any]
    image: bytes | None
    at: float


class OpenAiServer(ThreadingHTTPServer):
    """Plays `turns` first, each once; then answers well: chat with `say`, images with `image`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.turns: list[Turn] = []
        self.seen: list[Seen] = []
        self.say = "A blue rectangle."
        self.image = png()
        self.files: dict[str, bytes] = {}

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def settings(self, tool: str, *, model: str = "tiny-vlm") -> Settings:
        endpoint = EndpointSettings(url=f"{self.origin}/v1", model=model, key_env="TEST_KEY")
        return Settings(endpoints={"mine": endpoint}, tools={tool: ToolSettings(endpoint="mine")})

    def equipment(self, tool: str, *, model: str = "tiny-vlm") -> Equipment:
        keys = {"TEST_KEY": KEY}
        return Equipment(self.settings(tool, model=model), key=keys.get)

    def answer(self, path: str) -> bytes:
        if path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": self.say}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            reply = {"id": "1", "object": "chat.completion", "model": "tiny-vlm-2026-11"}
            return json.dumps({**reply, "choices": [choice]}).encode()
        encoded = base64.b64encode(self.image).decode()
        return json.dumps({"created": 1, "data": [{"b64_json": encoded}]}).encode()


@contextmanager
def openai_server() -> Iterator[OpenAiServer]:
    server = OpenAiServer()
    with running(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: OpenAiServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._note({}, None)
        content = self.server.files.get(self.path)
        if content is None:
            self._send(Turn(404, b'{"error": {"message": "no such file"}}'))
        else:
            self._send(Turn(body=content))

    def do_POST(self) -> None:
        fields, image = self._received()
        self._note(fields, image)
        turns = self.server.turns
        with suppress(ConnectionError):  # a client that has given up
            self._send(turns.pop(0) if turns else Turn(body=self.server.answer(self.path)))

    def _received(self) -> tuple[Mapping[str, Any], bytes | None]:
        body = self.rfile.read(int(self.headers["content-length"]))
        kind = self.headers["content-type"]
        if kind.startswith("multipart/form-data"):
            return _form(kind, body)
        return json.loads(body), None

    def _note(self, fields: Mapping[str, Any], image: bytes | None) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append(Seen(self.path, headers, fields, image, time.monotonic()))

    def _send(self, turn: Turn) -> None:
        time.sleep(turn.sleep)
        self.send_response(turn.status)
        length = len(turn.body) + (1000 if turn.cut else 0)
        for name, value in {"content-length": str(length), **turn.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(turn.body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def _form(kind: str, body: bytes) -> tuple[Mapping[str, Any], bytes | None]:
    head = f"content-type: {kind}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    fields: dict[str, Any] = {}
    image = None
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        if part.get_filename() is None:
            fields[str(name)] = data.decode()
        else:
            fields[f"{name} is"] = part.get_content_type()
            image = data
    return fields, image
