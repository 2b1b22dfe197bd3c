"""OpenAI's chat completions, and what they refuse."""

from collections.abc import Iterator
from typing import ClassVar

from tests.providers.core import (
    NO_CONTENT,
    Api,
    Json,
    Refusal,
    Reply,
    first_refusal,
    read_arguments,
)

_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: "
)
_FINISH = {"end": "stop", "cut off": "length", "refused": "stop", "malformed": "stop"}


def check(request: Json) -> Refusal | None:
    """What OpenAI has against a chat."""
    return first_refusal(
        request, [_content_is_there, _results_are_text, _ids_are_short, _calls_are_answered]
    )


def _content_is_there(request: Json) -> Refusal | None:
    for message in request["messages"]:
        if message.get("tool_calls") == []:
            return Refusal("Invalid 'tool_calls': empty array. Expected an array with minimum 1.")
        if message.get("content") is None and not message.get("tool_calls"):
            return Refusal("Invalid value for 'content': expected a string, got null.")
    return None


def _results_are_text(request: Json) -> Refusal | None:
    for place, message in enumerate(request["messages"]):
        kinds = [part["type"] for part in _parts(message)]
        if message["role"] != "user" and "image_url" in kinds:
            return Refusal(
                f"Invalid 'messages[{place}]'. Image URLs are only allowed for messages with role "
                f"'user', but this message with role '{message['role']}' contains an image URL."
            )
    return None


def _ids_are_short(request: Json) -> Refusal | None:
    for place, message in enumerate(request["messages"]):
        for number, call in enumerate(message.get("tool_calls") or []):
            if len(call["id"]) > 40:
                return Refusal(
                    f"Invalid 'messages[{place}].tool_calls[{number}].id': string too long. "
                    "Expected a string with maximum length 40.",
                    code="string_above_max_length",
                )
    return None


def _calls_are_answered(request: Json) -> Refusal | None:
    """Every call is answered once, before anything else is said."""
    open_ids: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'."
                )
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            return Refusal(_UNANSWERED + ", ".join(open_ids))
        else:
            open_ids = [call["id"] for call in message.get("tool_calls") or []]
    return Refusal(_UNANSWERED + ", ".join(open_ids)) if open_ids else None


def _parts(message: Json) -> Iterator[Json]:
    content = message.get("content")
    yield from content if isinstance(content, list) else []


class OpenAIChat(Api):
    """A model that shows no reasoning, as OpenAI's do in a chat."""

    model = "openai/gpt-5"
    args: ClassVar[Json] = {"responses_api": False}
    base = "/v1"
    path = "/chat/completions"

    def check(self, request: Json) -> Refusal | None:
        return check(request)

    def blocks(self, reply: Reply, number: int) -> list[Json]:
        message: Json = {"role": "assistant", "content": reply.text}
        if reply.calls:
            message["content"] = reply.text or None
            message["tool_calls"] = [
                {
                    "id": f"call{number:03d}{place:02d}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.text},
                }
                for place, call in enumerate(reply.calls)
            ]
        elif reply.stop == "refused":
            message = {"role": "assistant", "content": None, "refusal": reply.text}
        return [message]

    def body(self, reply: Reply, blocks: list[Json], request: Json) -> Json:
        (message,) = blocks
        called = reply.calls and reply.stop == "end"
        finish = "tool_calls" if called else self.finish(reply)
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "completion_tokens_details": {"reasoning_tokens": 3 if reply.thought else 0},
            },
        }

    def finish(self, reply: Reply) -> str:
        """The word for the end of a reply without calls."""
        return _FINISH[reply.stop]

    def error(self, refusal: Refusal) -> Json:
        kind = "invalid_request_error" if refusal.status < 500 else "server_error"
        return {
            "error": {
                "message": refusal.message,
                "type": kind,
                "param": None,
                "code": refusal.code,
            }
        }

    def said(self, request: Json) -> list[Json]:
        return [message for message in request["messages"] if message["role"] == "assistant"]

    def plain(self, block: Json) -> Json | None:
        content = (block.get("content") or "").strip()
        calls = [
            (call["id"], call["function"]["name"], read_arguments(call["function"]["arguments"]))
            for call in block.get("tool_calls") or []
        ]
        return {"text": "" if content == NO_CONTENT else content, "calls": calls}
