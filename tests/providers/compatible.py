"""A server in OpenAI's protocol with `reasoning_content`, as strict as any of them.

No one server refuses all of this: DeepSeek and Kimi want the reasoning back, vLLM parses old
arguments, Mistral's ids have nine characters, and chat templates want roles that alternate.
"""

import json
import re
from typing import ClassVar

from tests.providers import openai_chat
from tests.providers.core import Json, Refusal, Reply, first_refusal

_NEXT_ROLES = {
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user", "tool"),
    "tool": ("tool", "assistant"),
}


def check(request: Json) -> Refusal | None:
    """What compatible servers have against a chat."""
    rules = [openai_chat.check, _reasoning_is_there, _arguments_are_objects, _ids_fit]
    return first_refusal(request, [*rules, _roles_alternate])


def _reasoning_is_there(request: Json) -> Refusal | None:
    for place, message in enumerate(request["messages"]):
        if message.get("tool_calls") and message.get("reasoning_content") is None:
            return Refusal(
                "Missing `reasoning_content` field in the assistant message at message index "
                f"{place}"
            )
    return None


def _arguments_are_objects(request: Json) -> Refusal | None:
    for message in request["messages"]:
        for call in message.get("tool_calls") or []:
            try:
                found = json.loads(call["function"]["arguments"])
            except ValueError as exc:
                return Refusal(str(exc))
            if not isinstance(found, dict):
                return Refusal("Can only get item pairs from a mapping.")
    return None


def _ids_fit(request: Json) -> Refusal | None:
    for message in request["messages"]:
        for call in message.get("tool_calls") or []:
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
                return Refusal(
                    f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
                )
    return None


def _roles_alternate(request: Json) -> Refusal | None:
    """A template's own failure comes from llama.cpp as a fault of the server."""
    before = ""
    for message in request["messages"]:
        role = message["role"]
        if role == "user" and before == "tool":
            return Refusal("Unexpected role 'user' after role 'tool'")
        if before and role not in _NEXT_ROLES[before]:
            return Refusal(
                "After the optional system message, conversation roles must alternate "
                "user/assistant/user/assistant/...",
                status=500,
            )
        before = role
    return None


class Compatible(openai_chat.OpenAIChat):
    """An open model that thinks, on a server of one's own."""

    model = "openai-api/local/deepseek-reasoner"
    args: ClassVar[Json] = {}

    def check(self, request: Json) -> Refusal | None:
        return check(request)

    def blocks(self, reply: Reply, number: int) -> list[Json]:
        (message,) = super().blocks(reply, number)
        if reply.stop == "refused":
            message = {"role": "assistant", "content": ""}
        return [{**message, "reasoning_content": reply.thought}]

    def finish(self, reply: Reply) -> str:
        return "content_filter" if reply.stop == "refused" else super().finish(reply)

    def plain(self, block: Json) -> Json | None:
        found = super().plain(block)
        assert found is not None
        return {**found, "thought": block.get("reasoning_content") or ""}
