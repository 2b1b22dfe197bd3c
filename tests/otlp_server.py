"""A receiver of OTLP over HTTP on loopback, on the official protobuf classes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.serving import running


class OtlpServer(ThreadingHTTPServer):
    """Keeps what it gets; `statuses` are the next replies by path, `rejected` spans are refused."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.traces: list[ExportTraceServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []
        self.posted: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: dict[str, list[int]] = {}
        self.rejected = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def records(self) -> list[LogRecord]:
        return [
            record
            for request in self.logs
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]


def read_attributes(pairs: Any) -> dict[str, Any]:
    """Attributes as Python values."""
    return {pair.key: _read(pair) for pair in pairs}


def _read(pair: KeyValue) -> Any:
    kind = pair.value.WhichOneof("value")
    assert kind is not None
    if kind == "array_value":
        return [one.string_value for one in pair.value.array_value.values]
    return getattr(pair.value, kind)


@contextmanager
def serving() -> Iterator[OtlpServer]:
    server = OtlpServer()
    with running(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: OtlpServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.headers.append({key.lower(): value for key, value in self.headers.items()})
        waiting = self.server.statuses.get(self.path, [])
        if waiting:
            self._reply(waiting.pop(0), b"<!doctype html><title>No</title>")
        elif self.path == "/v1/traces":
            self.server.traces.append(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse()
            if self.server.rejected:
                answer.partial_success.rejected_spans = self.server.rejected
                answer.partial_success.error_message = "too old"
            self._reply(200, answer.SerializeToString())
        elif self.path == "/v1/logs":
            self.server.logs.append(ExportLogsServiceRequest.FromString(body))
            self._reply(200, ExportLogsServiceResponse().SerializeToString())
        else:
            self.server.posted.append((self.path, json.loads(body)))
            self._reply(200, b"{}")

    def do_GET(self) -> None:
        """MLflow's reply about a trace: what was posted to it."""
        own = [body["assessment"] for path, body in self.server.posted if self.path in path]
        found = {"trace": {"trace_info": {"assessments": own} if own else {}}}
        self._reply(200, json.dumps(found).encode())

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass
