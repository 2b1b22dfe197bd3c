"""OTLP over HTTP: spans and evaluation results as protobuf messages, and how they are sent."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Final, NamedTuple, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from gta_bench.errors import EnvironmentProblem, GtaError
from gta_bench.exports.spans import Attributes, AttributeValue, GenAiSpan, UnitSpans
from gta_bench.exports.unit_scores import OneScore
from gta_bench.redaction import current_redactor
from gta_bench.settings import OtlpVariables
from gta_bench.tools.http import RemoteServer, fetch_body

EVENT: Final = "gen_ai.evaluation.result"
PROTOBUF: Final = "application/x-protobuf"
# Of one attempt; a server that is silent is asked three times.
SECONDS: Final = 20.0
FIX: Final = "Check the address and the headers (OTEL_EXPORTER_OTLP_HEADERS)."
NO_LOGS: Final = (
    "If the server takes no log records, send scores by the API of MLflow or Phoenix, or none."
)
_Reply = TypeVar("_Reply", bound=Message)
_KINDS: Final = {"internal": Span.SPAN_KIND_INTERNAL, "client": Span.SPAN_KIND_CLIENT}


class ScoredSpans(NamedTuple):
    """A unit with its scores, which belong to its first span."""

    unit: UnitSpans
    scores: Sequence[OneScore]


def encode_spans(units: Iterable[UnitSpans], resource: Mapping[str, str]) -> bytes:
    """Return the request that exports these units."""
    spans = [_encode_span(span) for unit in units for span in unit.spans]
    scoped = ScopeSpans(scope=_make_scope(), spans=spans)
    found = ResourceSpans(resource=_make_resource(resource), scope_spans=[scoped])
    encoded: bytes = ExportTraceServiceRequest(resource_spans=[found]).SerializeToString()
    return encoded


def encode_scores(units: Iterable[ScoredSpans], resource: Mapping[str, str]) -> bytes:
    """Return the request that exports their scores as log records."""
    records = [_encode_score(one, unit.root) for unit, scores in units for one in scores]
    scoped = ScopeLogs(scope=_make_scope(), log_records=records)
    found = ResourceLogs(resource=_make_resource(resource), scope_logs=[scoped])
    request = ExportLogsServiceRequest(resource_logs=[found] if records else [])
    encoded: bytes = request.SerializeToString()
    return encoded


def describe_score(one: OneScore) -> Attributes:
    """Return the attributes of an evaluation result; judge and leaf have no name of their own."""
    found: dict[str, AttributeValue] = {
        "gen_ai.evaluation.name": one.name if one.leaf is None else f"{one.name} {one.leaf}"
    }
    if one.cause is not None:
        found["error.type"] = one.cause
    elif one.value is not None:
        found["gen_ai.evaluation.score.value"] = one.value
        found["gta.score.max"] = one.top
        if one.passed is not None:
            found["gen_ai.evaluation.score.label"] = label_score(one)
    if one.reason:
        found["gen_ai.evaluation.explanation"] = one.reason
    if one.judge is not None:
        found["gta.judge"] = "check" if one.by_check else one.judge
    if one.leaf is not None:
        found["gta.leaf"] = one.leaf
    return found


def label_score(one: OneScore) -> str:
    """Return the label of a score that decides something."""
    return "pass" if one.passed else "fail"


def send_spans(units: Sequence[UnitSpans], otlp: OtlpVariables) -> None:
    """Send units to the endpoint of traces."""
    body = encode_spans(units, otlp.resource)
    reply = call_server(otlp.traces, body, otlp.trace_headers)
    partial = _read_reply(otlp.traces, reply, ExportTraceServiceResponse()).partial_success
    _refuse_partial(otlp.traces, partial.rejected_spans, partial.error_message)


def send_scores(units: Sequence[ScoredSpans], otlp: OtlpVariables) -> None:
    """Send scores to the endpoint of logs."""
    body = encode_scores(units, otlp.resource)
    reply = call_server(otlp.logs, body, otlp.log_headers, fix=f"{FIX} {NO_LOGS}")
    partial = _read_reply(otlp.logs, reply, ExportLogsServiceResponse()).partial_success
    _refuse_partial(otlp.logs, partial.rejected_log_records, partial.error_message)


def call_server(
    url: str | None,
    body: bytes,
    headers: Mapping[str, str],
    *,
    media_type: str = PROTOBUF,
    fix: str = FIX,
    method: str = "POST",
) -> bytes:
    """Send a request; a server that is busy is asked again, any other refusal is an error."""
    assert url is not None
    server = RemoteServer(url, fix)
    sent = {**headers, "content-type": media_type}
    try:
        return asyncio.run(
            fetch_body(server, seconds=SECONDS, method=method, url=url, content=body, headers=sent)
        )
    except GtaError as exc:
        raise EnvironmentProblem(str(exc)) from exc


def _read_reply(url: str | None, reply: bytes, into: _Reply) -> _Reply:
    """Read a reply; some servers answer in JSON whatever they were sent, and a web page is none."""
    try:
        into.ParseFromString(reply)
    except DecodeError:
        into.Clear()
        try:
            json_format.Parse(reply, into, ignore_unknown_fields=True)
        except (json_format.ParseError, UnicodeDecodeError) as exc:
            raise EnvironmentProblem(f"{url} did not answer as an OTLP server. {FIX}") from exc
    return into


def _refuse_partial(url: str | None, rejected: int, message: str) -> None:
    if rejected:
        raise EnvironmentProblem(
            f"{url} rejected {rejected} of the records in one request: {message or 'no reason'}. "
            "Check its limits, then export again."
        )


def _encode_span(span: GenAiSpan) -> Span:
    status = Status()
    if span.error is not None:
        status = Status(code=Status.STATUS_CODE_ERROR, message=_clean(span.error))
    return Span(
        trace_id=span.trace,
        span_id=span.id,
        parent_span_id=span.parent or b"",
        name=_clean(span.name),
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.start,
        end_time_unix_nano=span.end,
        attributes=_encode_attributes(span.attributes),
        status=status,
    )


def _encode_score(one: OneScore, root: GenAiSpan) -> LogRecord:
    return LogRecord(
        time_unix_nano=root.end,
        observed_time_unix_nano=root.end,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        event_name=EVENT,
        trace_id=root.trace,
        span_id=root.id,
        attributes=_encode_attributes(describe_score(one)),
    )


def _encode_attributes(attributes: Mapping[str, AttributeValue]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_encode_value(value)) for key, value in attributes.items()]


def _encode_value(value: AttributeValue) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=_clean(value))
        case _:
            return AnyValue(array_value=ArrayValue(values=[_encode_value(one) for one in value]))


def _clean(text: str) -> str:
    """Return a text without secrets, and without lone surrogates, which cannot be encoded."""
    return current_redactor().text(text).encode("utf-8", "replace").decode()


def _make_resource(resource: Mapping[str, str]) -> Resource:
    return Resource(attributes=_encode_attributes(resource))


def _make_scope() -> InstrumentationScope:
    return InstrumentationScope(name="gta_bench", version=version("gta-bench"))
