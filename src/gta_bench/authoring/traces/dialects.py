"""The two dialects in which spans speak about agents: OpenTelemetry's GenAI and OpenInference.

Each span becomes a `ModelTurn`, a `ToolTurn` or an `AgentTurn`; any other is left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from gta_bench.authoring.traces.observed import (
    ObservedFile,
    ObservedTool,
    decode_base64,
    parse_object,
    read_data_address,
    read_definition,
)
from gta_bench.authoring.traces.spans import CutFinder, ReadSpan

Dialect = Literal["OpenInference", "OpenTelemetry GenAI"]
KIND: Final = "openinference.span.kind"
OPERATION: Final = "gen_ai.operation.name"
_CHATS: Final = ("chat", "generate_content", "text_completion")
_AGENTS: Final = ("invoke_agent", "invoke_workflow")


class SaidCall(NamedTuple):
    """A call as a message asks for it."""

    id: str | None
    name: str
    arguments: JsonValue


class SaidReply(NamedTuple):
    """A tool's reply as a message has it; `text` is None if it is not text."""

    id: str | None
    text: str | None


class SaidMessage(NamedTuple):
    """One message of a dialogue."""

    role: str
    text: str
    calls: Sequence[SaidCall] = ()
    replies: Sequence[SaidReply] = ()
    files: Sequence[ObservedFile] = ()


class ModelTurn(NamedTuple):
    """A call of a model; `has_content` is false if the span has no messages."""

    span: ReadSpan
    given: Sequence[SaidMessage]
    said: Sequence[SaidMessage]
    tools: Sequence[ObservedTool]
    has_content: bool
    is_cut: bool


class ToolTurn(NamedTuple):
    """A call of a tool; arguments and result are None if the span does not have them."""

    span: ReadSpan
    id: str | None
    tool: ObservedTool
    arguments: JsonValue
    result: JsonValue
    is_cut: bool


class AgentTurn(NamedTuple):
    """The work of an agent; `input` and `output` are plain texts that some frameworks record."""

    span: ReadSpan
    given: Sequence[SaidMessage]
    said: Sequence[SaidMessage]
    tools: Sequence[ObservedTool]
    input: str | None
    output: str | None
    is_cut: bool


SpanTurn = ModelTurn | ToolTurn | AgentTurn


def find_dialect(span: ReadSpan) -> Dialect | None:
    """Return the dialect of a span; None for one that is not of an agent."""
    if OPERATION in span.attributes or span.attributes.get("mcp.method.name") == "tools/call":
        return "OpenTelemetry GenAI"
    return "OpenInference" if KIND in span.attributes else None


def read_turn(span: ReadSpan, cuts: CutFinder) -> SpanTurn | None:
    """Read a span; None if it is neither of a model nor of a tool or an agent."""
    if find_dialect(span) == "OpenInference":
        return _read_openinference(span, cuts)
    return _read_genai(span, cuts)


# OpenTelemetry GenAI


def _read_genai(span: ReadSpan, cuts: CutFinder) -> SpanTurn | None:
    found, operation = span.attributes, span.attributes.get(OPERATION)
    if operation == "execute_tool" or (
        operation is None and found.get("mcp.method.name") == "tools/call"
    ):
        return _read_genai_tool(span, cuts)
    if operation not in (*_CHATS, *_AGENTS):
        return None
    keys = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
    given, said = (_read_messages(found.get(key)) for key in keys[:2])
    system = _read_instructions(found.get(keys[2]))
    given = [*system, *given]
    tools = _read_tools(found.get("gen_ai.tool.definitions"))
    is_cut = any(cuts.is_cut(found.get(key)) or _is_broken(found.get(key)) for key in keys)
    if operation in _CHATS:
        has_content = any(found.get(key) for key in keys[:2])
        return ModelTurn(span, given, said, tools, has_content, is_cut)
    texts = span.text("input.value"), span.text("output.value")
    return AgentTurn(span, given, said, tools, *texts, is_cut or any(map(cuts.is_cut, texts)))


def _read_genai_tool(span: ReadSpan, cuts: CutFinder) -> ToolTurn | None:
    found = span.attributes
    name = span.text("gen_ai.tool.name") or span.name.partition(" ")[2]
    if not name:
        return None
    arguments = found.get("gen_ai.tool.call.arguments")
    result = found.get("gen_ai.tool.call.result")
    return ToolTurn(
        span,
        span.text("gen_ai.tool.call.id"),
        ObservedTool(name=name, description=span.text("gen_ai.tool.description") or ""),
        arguments,
        result,
        cuts.is_cut(arguments) or cuts.is_cut(result),
    )


def _read_tools(value: JsonValue) -> list[ObservedTool]:
    found = (read_definition(one) for one in _as_list(value))
    return [tool for tool in found if tool is not None]


def _is_broken(value: JsonValue) -> bool:
    """Whether a text that should be JSON is not, as one that was cut."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return False
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return True
    return False


def _as_list(value: JsonValue) -> list[JsonValue]:
    """Return a list, also one that is written as JSON; an object is a list of one."""
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=str)
        except (ValueError, RecursionError):
            return []
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []


def _read_instructions(value: JsonValue) -> list[SaidMessage]:
    if isinstance(value, str) and value[:1] not in ("[", "{"):
        return [SaidMessage("system", value)] if value else []
    parts = [one for one in _as_list(value) if isinstance(one, dict)]
    texts = [one["content"] for one in parts if isinstance(one.get("content"), str)]
    return [SaidMessage("system", "\n".join(map(str, texts)))] if texts else []


def _read_messages(value: JsonValue) -> list[SaidMessage]:
    return [_read_message(one) for one in _as_list(value) if isinstance(one, dict)]


def _read_message(message: Mapping[str, JsonValue]) -> SaidMessage:
    texts: list[str] = []
    calls: list[SaidCall] = []
    replies: list[SaidReply] = []
    files: list[ObservedFile] = []
    parts = message.get("parts")
    content = message.get("content")
    if not isinstance(parts, list):
        parts = [{"type": "text", "content": content}] if isinstance(content, str) else []
    for part in (one for one in parts if isinstance(one, dict)):
        match part.get("type"):
            case "text":
                texts.append(str(part.get("content") or ""))
            case "tool_call":
                name = str(part.get("name") or "")
                calls.append(SaidCall(_as_id(part.get("id")), name, part.get("arguments")))
            case "tool_call_response":
                response = part.get("response", part.get("result"))
                replies.append(SaidReply(_as_id(part.get("id")), as_text(response)))
            case "blob" | "file" | "uri":
                files.append(_read_file(part))
    return SaidMessage(str(message.get("role") or ""), "\n".join(texts), calls, replies, files)


def _read_file(part: Mapping[str, JsonValue]) -> ObservedFile:
    """Return the bytes of a blob; a file or an address is only named."""
    kind = part.get("modality") or "file"
    content = part.get("content")
    if part.get("type") == "blob" and isinstance(content, str):
        return ObservedFile(name=str(kind), data=decode_base64(content))
    return ObservedFile(name=str(part.get("uri") or part.get("file_id") or kind))


def as_text(value: JsonValue) -> str | None:
    """Return a text, or the JSON of any other value; None if there is none."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _as_id(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


# OpenInference


def _read_openinference(span: ReadSpan, cuts: CutFinder) -> SpanTurn | None:
    texts = span.text("input.value"), span.text("output.value")
    match str(span.attributes[KIND]).upper():
        case "LLM":
            given = list(_read_numbered(span, "llm.input_messages", cuts))
            said = list(_read_numbered(span, "llm.output_messages", cuts))
            tools = [tool for tool in _read_own_tools(span) if tool is not None]
            # Without messages, the output of a call is its text.
            if (
                not said
                and texts[1] is not None
                and span.text("output.mime_type") != ("application/json")
            ):
                said = [SaidMessage("assistant", texts[1])]
            is_cut = _has_cut(span, "llm.", cuts) or any(map(cuts.is_cut, texts))
            return ModelTurn(span, given, said, tools, bool(given or said), is_cut)
        case "TOOL":
            schema = read_definition(span.attributes.get("tool.json_schema"))
            name = span.text("tool.name") or (schema.name if schema else span.name)
            tool = ObservedTool(
                name=name,
                description=span.text("tool.description") or "",
                parameters=None if schema is None else schema.parameters,
            )
            number = span.text("tool_call.id") or span.text("tool.id")
            return ToolTurn(span, number, tool, *texts, any(map(cuts.is_cut, texts)))
        case "AGENT" | "CHAIN":
            return AgentTurn(span, (), (), (), *texts, any(map(cuts.is_cut, texts)))
        case _:
            return None


def _read_own_tools(span: ReadSpan) -> Iterator[ObservedTool | None]:
    for number in _numbers(span, "llm.tools"):
        yield read_definition(span.attributes.get(f"llm.tools.{number}.tool.json_schema"))


def _read_numbered(span: ReadSpan, prefix: str, cuts: CutFinder) -> Iterator[SaidMessage]:
    """Yield the messages `PREFIX.N.message.…`."""
    found = span.attributes
    for number in _numbers(span, prefix):
        base = f"{prefix}.{number}.message"
        role = str(found.get(f"{base}.role") or "")
        text = found.get(f"{base}.content")
        parts = [
            _read_content(span, f"{base}.contents.{one}")
            for one in (_numbers(span, f"{base}.contents"))
        ]
        texts = [text] if isinstance(text, str) else [one for one in parts if isinstance(one, str)]
        content = "\n".join(texts)
        calls = [
            _read_own_call(span, f"{base}.tool_calls.{one}.tool_call")
            for one in (_numbers(span, f"{base}.tool_calls"))
        ]
        replies: list[SaidReply] = []
        if role == "tool":
            whole = None if cuts.is_cut(text) or not texts else content
            replies = [SaidReply(span.text(f"{base}.tool_call_id"), whole)]
        files = [one for one in parts if isinstance(one, ObservedFile)]
        yield SaidMessage(role, content, calls, replies, files)


def _read_own_call(span: ReadSpan, base: str) -> SaidCall:
    name = str(span.attributes.get(f"{base}.function.name") or "")
    return SaidCall(
        span.text(f"{base}.id"), name, span.attributes.get(f"{base}.function.arguments")
    )


def _read_content(span: ReadSpan, base: str) -> str | ObservedFile | None:
    text = span.text(f"{base}.message_content.text")
    address = span.text(f"{base}.message_content.image.image.url")
    if address is not None:
        data = read_data_address(address)
        return ObservedFile(name="image" if data is not None else address, data=data)
    return text


def _numbers(span: ReadSpan, prefix: str) -> list[int]:
    start = f"{prefix}."
    found = {
        key[len(start) :].partition(".")[0] for key in span.attributes if key.startswith(start)
    }
    return sorted(int(one) for one in found if one.isdecimal() and len(one) < 7)


def _has_cut(span: ReadSpan, prefix: str, cuts: CutFinder) -> bool:
    return any(
        cuts.is_cut(value) for key, value in span.attributes.items() if key.startswith(prefix)
    )


def read_arguments(value: JsonValue) -> dict[str, JsonValue] | None:
    """Return the arguments of a call, None if they are not an object or were cut."""
    if value == "":
        return {}
    return parse_object(value)
