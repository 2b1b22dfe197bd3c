"""Files with traces in every format: of our own runs and exports, of packages, and written here.

`recorded/` has spans that packages made of one dialogue with a scripted model: openinference.jsonl
by openinference-instrumentation-openai 0.1.66, genai.jsonl by opentelemetry-util-genai 1.3b0 and
openai_v2.jsonl by opentelemetry-instrumentation-openai-v2 2.3b0, which captures no content.
"""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import json_format
from inspect_ai.event import ModelEvent, ToolEvent
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.tool import ToolCall, ToolCallError, ToolInfo, ToolParam, ToolParams
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from gta_bench.exports.otlp import encode_spans
from gta_bench.exports.spans import make_spans
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import copy_logs, read_whole_samples

RECORDED = Path(__file__).parent / "recorded"
BEGAN = datetime(2026, 11, 18, tzinfo=UTC)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
ASKED = "How many crates of 'Größe L' are in store 7? Answer with the number."
SCHEMA = {
    "type": "object",
    "properties": {"store": {"type": "integer"}, "size": {"type": "string"}},
    "required": ["store"],
}


class Expected(NamedTuple):
    """What a draft has: calls in all, calls on the tape, missing fields besides the usual ones."""

    calls: int
    taped: int
    missing: tuple[str, ...] = ()
    request: str | None = None


def write_lines(file: Path, values: list[Any], **options: Any) -> Path:
    file.write_text("\n".join(json.dumps(one, **options) for one in values), encoding="utf-8")
    return file


# Our own runs


def write_json_log(run: Path, folder: Path) -> Path:
    """The log of a run as one JSON file."""
    folder.mkdir(exist_ok=True)
    copy_logs(log_folder(run), folder)
    (file,) = folder.glob("*.json")
    return file


def write_own_spans(run: Path, file: Path) -> Path:
    """The spans that `gta export otel --content` sends, as a collector writes them."""
    manifest = read_manifest(run)
    samples = read_whole_samples(log_folder(run))
    units = [make_spans(one, run.name, manifest, content=True) for one in samples]
    request = ExportTraceServiceRequest.FromString(encode_spans(units, {}))
    file.write_text(json_format.MessageToJson(request), encoding="utf-8")
    return file


# Inspect logs of others


def tool_event(second: int, **changes: Any) -> ToolEvent:
    given = {"id": f"c{second}", "function": "stock", "arguments": {"store": 7}, **changes}
    return ToolEvent(timestamp=BEGAN + timedelta(seconds=second), **given)


def model_event() -> ModelEvent:
    store = ToolParam(type="integer")
    info = ToolInfo(
        name="stock",
        description="Count what a store has.",
        parameters=ToolParams(properties={"store": store}, required=["store"]),
    )
    return ModelEvent(
        model="m/m",
        input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content=ASKED)],
        tools=[info],
        tool_choice="auto",
        config=GenerateConfig(),
        output=ModelOutput.from_content("m", "12"),
    )


def write_inspect(file: Path, *samples: EvalSample) -> Path:
    spec = EvalSpec(
        created=BEGAN.isoformat(),
        task="stores",
        dataset=EvalDataset(),
        model="m/m",
        config=EvalConfig(),
    )
    log = EvalLog(eval=spec, status="success", samples=[*samples])
    write_eval_log(log, str(file))
    return file


def event_sample() -> EvalSample:
    failed = ToolCallError(type="timeout", message="The stock server did not answer.")
    events = [
        model_event(),
        tool_event(1, error=failed),
        tool_event(2, result="12 crates"),  # the same call again
        tool_event(3, arguments={"store": 8}, result=0, truncated=(5000, 100)),
    ]
    output = ModelOutput.from_content("m", "12")
    return EvalSample(id="a", epoch=1, input=ASKED, target="12", events=events, output=output)


def message_sample() -> EvalSample:
    """No events of tools; a picture is attached, and one call has no reply."""
    calls = [ToolCall(id=f"k{n}", function="stock", arguments={"store": n}) for n in (7, 8)]
    picture = ContentImage(image=f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    asked = ChatMessageUser(content=[ContentText(text=ASKED), picture])
    messages = [
        asked,
        ChatMessageAssistant(content="", tool_calls=calls),
        ChatMessageTool(content="12 crates", tool_call_id="k7", function="stock"),
    ]
    return EvalSample(id="b", epoch=2, input=[asked], target="", messages=messages)


def file_sample() -> EvalSample:
    asked = "Sum up ../../etc/sales.csv by region in summary.csv."
    files = ["../../etc/sales.csv"]
    return EvalSample(id="c/../d", epoch=1, input=asked, target="", files=files)


# Spans


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(one) for one in value]}}
    if isinstance(value, dict):
        pairs = [{"key": key, "value": otlp_value(one)} for key, one in value.items()]
        return {"kvlistValue": {"values": pairs}}
    return {"stringValue": value}


def span(
    trace: str, number: int, attributes: Mapping[str, Any], *, parent: int = 0, **changes: Any
) -> dict[str, Any]:
    """A span of OTLP; its number also is its time."""
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": str(attributes.get("gen_ai.operation.name", "span")),
        "startTimeUnixNano": str(1_763_424_000_000_000_000 + number),
        "attributes": [{"key": k, "value": otlp_value(v)} for k, v in attributes.items()],
        **changes,
    }


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [*spans]}]}]}


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [*parts]}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def asked_call(number: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": number, "name": "stock", "arguments": arguments}


def answered_call(number: str, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": number, "response": response}


def chat(given: list[Any], said: list[Any], **more: Any) -> dict[str, Any]:
    definition = {"type": "function", "name": "stock", "parameters": SCHEMA}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.output.messages": json.dumps(said),
        "gen_ai.tool.definitions": json.dumps([definition]),
        **more,
    }


def made_call(number: str | None, **more: Any) -> dict[str, Any]:
    found = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "stock", **more}
    return found if number is None else {**found, "gen_ai.tool.call.id": number}


def write_shuffled(file: Path) -> Path:
    """Parallel calls, a retry of the model, spans out of order, one sent twice, over two lines."""
    user = message("user", text(ASKED))
    both = message("assistant", asked_call("p", store=7), asked_call("q", store=8, size="Größe L"))
    replies = [message("tool", answered_call("q", {"crates": 0}), answered_call("p", "12 crates"))]
    spans = [
        span("ab" * 16, 1, {"gen_ai.operation.name": "invoke_agent"}),
        span(
            *("ab" * 16, 2, {**chat([user], []), "error.type": "RateLimit"}),
            parent=1,
            status={"code": 2, "message": "slow down"},
        ),
        span("ab" * 16, 3, chat([user], [both]), parent=1),
        span("ab" * 16, 4, made_call("q"), parent=1),
        span("ab" * 16, 5, made_call("p", **{"gen_ai.tool.call.result": "12 crates"}), parent=1),
        # The server's own span of the same call.
        span(
            "ab" * 16, 6, {"mcp.method.name": "tools/call", "gen_ai.tool.name": "stock"}, parent=5
        ),
        span("ab" * 16, 7, chat([user, both, *replies], [message("assistant", text("12"))])),
        span("cd" * 16, 1, {"http.request.method": "GET"}),
    ]
    order = [6, 2, 7, 0, 5, 1, 4, 3, 4]
    lines = [otlp(*(spans[place] for place in part)) for part in (order[:4], order[4:])]
    return write_lines(file, lines)


def write_structured(file: Path) -> Path:
    """Values that are structured, a picture as a blob, content in an event, no ids of calls."""
    blob = {"type": "blob", "modality": "image", "content": base64.b64encode(PNG).decode()}
    user = message("user", text(ASKED), blob)
    call = {"type": "tool_call", "name": "stock", "arguments": {"store": 7}}
    reply = {"type": "tool_call_response", "response": "12 crates"}
    first = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": [user]}
    details = {"gen_ai.output.messages": json.dumps([message("assistant", call)])}
    event = {
        "name": "gen_ai.client.inference.operation.details",
        "attributes": [{"key": k, "value": otlp_value(v)} for k, v in details.items()],
    }
    history = [user, message("assistant", call), message("tool", reply)]
    spans = [
        span("ef" * 16, 1, first, events=[event]),
        span("ef" * 16, 2, chat(history, [message("assistant", text("12"))])),
    ]
    return write_lines(file, [otlp(*spans)])


def write_phoenix(file: Path) -> Path:
    """OpenInference's attributes as a backend returns them: nested, no span of a tool."""
    function = {"name": "stock", "arguments": '{"store": 7}'}
    call = {"tool_call": {"id": "c1", "function": function}}
    asked = [{"message": {"role": "user", "content": ASKED}}]
    said = {"message": {"role": "assistant", "tool_calls": [call]}}
    reply = {"message": {"role": "tool", "content": "12 crates", "tool_call_id": "c1"}}
    tool = {"tool": {"json_schema": {"name": "stock", "input_schema": SCHEMA}}}

    def model(number: int, given: list[Any], out: Any) -> dict[str, Any]:
        llm = {"input_messages": given, "output_messages": [out], "tools": [tool]}
        return {
            "name": "model",
            "context": {"trace_id": "t1", "span_id": f"s{number}"},
            "start_time": (BEGAN + timedelta(seconds=number)).isoformat(),
            "attributes": {"openinference": {"span": {"kind": "LLM"}}, "llm": llm},
        }

    answer = {"message": {"role": "assistant", "content": "12"}}
    spans = [model(2, [*asked, said, reply], answer), model(1, asked, said)]
    return write_lines(file, [{"data": spans, "next_cursor": None}])


class Recorder:
    """The OpenTelemetry SDK; what it exports is written as its console exporter writes it."""

    def __init__(self, **limits: int) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(span_limits=SpanLimits(**limits))
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("tests")

    def add(self, attributes: Mapping[str, Any], error: str | None = None) -> None:
        with self.tracer.start_as_current_span("span", attributes=attributes) as one:
            if error is not None:
                one.set_status(Status(StatusCode.ERROR, error))

    def write(self, file: Path) -> Path:
        spans = self._exporter.get_finished_spans()
        file.write_text("\n".join(one.to_json() for one in spans), encoding="utf-8")
        return file


def write_sdk(file: Path, **limits: int) -> Path:
    """A dialogue by OpenInference's attributes; with a limit, the long reply is cut."""
    kind, recorder = "openinference.span.kind", Recorder(**limits)
    with recorder.tracer.start_as_current_span("agent", attributes={kind: "AGENT"}) as agent:
        agent.set_attribute("input.value", ASKED)
        recorder.add(
            {
                kind: "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": ASKED,
                "llm.output_messages.0.message.role": "assistant",
            }
        )
        for store, reply in {7: "12 crates", 8: "a long list: " + "x" * 3000}.items():
            given = json.dumps({"store": store})
            named = {kind: "TOOL", "tool.name": "stock", "input.value": given}
            recorder.add({**named, "output.value": reply})
        recorder.add({kind: "TOOL", "tool.name": "stock", "input.value": "{}"}, "No store.")
        agent.set_attribute("output.value", "12")
    return recorder.write(file)


# ATIF


def trajectory(*steps: dict[str, Any], **agent: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": "journey",
        "agent": {"name": "other", "version": "1", **agent},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
    }


def atif_call(number: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": number, "function_name": "mcp__stores__stock", "arguments": arguments}


def write_foreign_atif(file: Path) -> Path:
    """Parallel calls, one without a result, and steps of an earlier dialogue."""
    definition = {"function": {"name": "mcp__stores__stock", "parameters": SCHEMA}}
    results = [
        {"source_call_id": "y", "content": [{"type": "text", "text": "none"}]},
        {"source_call_id": "x", "content": "12 crates"},
    ]
    calls = [atif_call("x", store=7), atif_call("y", store=8), atif_call("z", store=9)]
    steps: list[dict[str, Any]] = [
        {"source": "user", "message": "An earlier question.", "is_copied_context": True},
        {"source": "system", "message": "Be brief."},
        {"source": "user", "message": ASKED},
        {
            **{"source": "agent", "message": "", "tool_calls": calls},
            "observation": {"results": results},
        },
        {"source": "agent", "message": "12"},
    ]
    return write_lines(file, [trajectory(*steps, tool_definitions=[definition])])


def write_picture_atif(file: Path) -> Path:
    parts = [
        {"type": "text", "text": "What is on the picture? Answer in one word."},
        {"type": "image", "source": {"path": "../../secret/cat.png", "media_type": "image/png"}},
    ]
    steps: list[dict[str, Any]] = [
        {"source": "user", "message": parts},
        {"source": "agent", "message": "A cat."},
    ]
    return write_lines(file, [trajectory(*steps)])


QUESTION = "Which tickets of the queues billing and crème are open for more than a week?"
# Files without a run, each with one trace.
SINGLE: Mapping[str, tuple[Callable[[Path], Path], Expected]] = {
    "openinference": (
        lambda file: _copy("openinference.jsonl", file),
        Expected(3, 3, request=QUESTION),
    ),
    "genai": (lambda file: _copy("genai.jsonl", file), Expected(3, 3, request=QUESTION)),
    "openai-v2": (lambda file: _copy("openai_v2.jsonl", file), Expected(3, 0, ("request", "tape"))),
    "shuffled": (write_shuffled, Expected(2, 2, request=ASKED)),
    "structured": (write_structured, Expected(1, 1, request=ASKED)),
    "phoenix": (write_phoenix, Expected(1, 1, request=ASKED)),
    "sdk": (write_sdk, Expected(3, 3, request=ASKED)),
    "sdk-cut": (
        lambda file: write_sdk(file, max_span_attribute_length=1000),
        Expected(3, 2, ("tape",), request=ASKED),
    ),
    "foreign-atif": (write_foreign_atif, Expected(3, 2, ("tape",), request=ASKED)),
    "picture-atif": (write_picture_atif, Expected(0, 0, ("inputs",), request="What is on")),
    "inspect-events": (
        lambda file: write_inspect(file.with_suffix(".eval"), event_sample()),
        Expected(3, 3, request=ASKED),
    ),
    "inspect-messages": (
        lambda file: write_inspect(file.with_suffix(".json"), message_sample()),
        Expected(2, 1, ("tape",), request=ASKED),
    ),
    "inspect-files": (
        lambda file: write_inspect(file.with_suffix(".eval"), file_sample()),
        Expected(0, 0, ("inputs", "deliverables"), request="Sum up"),
    ),
}


def _copy(name: str, file: Path) -> Path:
    file.write_bytes((RECORDED / name).read_bytes())
    return file
