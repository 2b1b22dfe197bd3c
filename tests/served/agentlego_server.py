"""A small server that speaks AgentLego's route format, as its FastAPI application writes it."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.serving import running

PICTURE = b"\x89PNG\r\n\x1a\n drawn elsewhere"


def operation(name: str, body: str, properties: dict[str, Any], answer: Any) -> dict[str, Any]:
    required = [key for key, schema in properties.items() if "default" not in schema]
    return {
        "operationId": name,
        "summary": f"What {name} does.",
        "requestBody": {"content": {body: {"schema": {"$ref": f"#/components/schemas/{name}"}}}},
        "responses": {"200": {"content": {"application/json": {"schema": answer}}}},
        "_schema": {"type": "object", "properties": properties, "required": required},
    }


FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
TEXT = {"type": "string"}
IMAGE_IN = {"type": "string", "format": "image;binary", "description": "The picture."}
IMAGE_OUT = {"type": "string", "format": "image/png;base64"}
OPERATIONS = [
    operation("Calculator", FORM, {"expression": TEXT}, TEXT),
    operation("Search", FORM, {"query": TEXT, "k": {"type": "integer", "default": 10}}, TEXT),
    operation("ImageDescription", MULTIPART, {"image": IMAGE_IN}, TEXT),
    operation("DrawBox", MULTIPART, {"image": IMAGE_IN, "bbox": TEXT}, IMAGE_OUT),
    operation(
        "Both",
        FORM,
        {"text": TEXT},
        {"type": "array", "prefixItems": [TEXT, IMAGE_OUT]},
    ),
    operation("Archive", FORM, {}, {"type": "string", "format": "zip;base64"}),
]
PAGE = {
    "openapi": "3.1.0",
    "info": {"title": "AgentLego", "version": "1"},
    "paths": {
        f"/{entry['operationId']}": {"post": {k: v for k, v in entry.items() if k != "_schema"}}
        for entry in OPERATIONS
    },
    "components": {
        "schemas": {str(entry["operationId"]): entry["_schema"] for entry in OPERATIONS}
    },
}


class AgentLegoServer(ThreadingHTTPServer):
    """`statuses` are given instead of answers while there are any."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.received: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def agentlego_server() -> Iterator[AgentLegoServer]:
    with running(AgentLegoServer()) as server:
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: AgentLegoServer

    def do_GET(self) -> None:
        self._send(200, PAGE if self.path == "/openapi.json" else {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fields = self._fields(body)
        self.server.received.append(fields)
        if self.server.statuses:
            self._send(self.server.statuses.pop(0), {"detail": "ValueError('not like this')"})
            return
        picture = base64.b64encode(PICTURE).decode()
        answers: dict[str, Any] = {
            "/Calculator": "42",
            "/Search": f"{fields.get('k')} results",
            "/ImageDescription": f"{len(fields.get('image', b''))} bytes",
            "/DrawBox": picture,
            "/Both": ["words", picture],
            "/Archive": base64.b64encode(b"PK").decode(),
        }
        self._send(200, answers[self.path])

    def _fields(self, body: bytes) -> dict[str, Any]:
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith(MULTIPART):
            return {key: values[0] for key, values in parse_qs(body.decode()).items()}
        message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        fields: dict[str, Any] = {}
        for part in message.get_payload():
            assert not isinstance(part, str)
            name = str(part.get_param("name", header="content-disposition"))
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            fields[name] = data if part.get_filename() else data.decode()
        return fields

    def _send(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass
