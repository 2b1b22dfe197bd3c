"""Messages in the form of OpenTelemetry's GenAI conventions: a role and parts, as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentReasoning,
    ContentText,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo
from pydantic import JsonValue

# The names that the conventions have for how a reply ended.
FINISH_REASONS: Final[Mapping[str, str]] = {
    "stop": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_call",
    "content_filter": "content_filter",
}


def format_messages(messages: Iterable[ChatMessage]) -> str:
    """Return the messages of a prompt."""
    return dump([{"role": message.role, "parts": _list_parts(message)} for message in messages])


def format_output(output: ModelOutput) -> str:
    """Return the replies of a model."""
    replies: list[JsonValue] = [
        {
            "role": "assistant",
            "parts": _list_parts(choice.message),
            "finish_reason": name_finish(choice.stop_reason),
        }
        for choice in output.choices
    ]
    return dump(replies)


def format_text(role: str, text: str) -> str:
    """Return a text as the only message."""
    message: dict[str, JsonValue] = {"role": role, "parts": [{"type": "text", "content": text}]}
    return dump([message | ({"finish_reason": "stop"} if role == "assistant" else {})])


def format_tools(tools: Sequence[ToolInfo]) -> str:
    """Return the tools that a model was offered."""
    return dump(
        [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters.model_dump(mode="json", exclude_none=True),
            }
            for tool in tools
        ]
    )


def name_finish(reason: str) -> str:
    """Return the conventions' name for how a reply ended."""
    return FINISH_REASONS.get(reason, "error")


def dump(value: JsonValue) -> str:
    """Return a value as JSON, in which a span has it."""
    return json.dumps(value, ensure_ascii=False)


def _list_parts(message: ChatMessage) -> list[JsonValue]:
    if isinstance(message, ChatMessageTool):
        response: JsonValue = message.text
        return [{"type": "tool_call_response", "id": message.tool_call_id, "response": response}]
    content = message.content
    parts: list[JsonValue] = []
    for one in [ContentText(text=content)] if isinstance(content, str) else content:
        if isinstance(one, ContentReasoning):
            parts.append({"type": "reasoning", "content": one.summary or one.reasoning})
        elif not isinstance(one, ContentText):
            # Bytes stay where they are: a picture is larger than everything else together.
            parts.append({"type": "text", "content": f"[{one.type}, not exported]"})
        elif one.text:
            parts.append({"type": "text", "content": one.text})
    if isinstance(message, ChatMessageAssistant):
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.function, "arguments": call.arguments}
            for call in message.tool_calls or ()
        ]
    return parts
