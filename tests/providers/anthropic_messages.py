"""Anthropic's messages with thinking, and what they refuse."""

import json
import re
from collections.abc import Iterator
from typing import ClassVar

from tests.providers.core import NO_CONTENT, Api, Json, Refusal, Reply, first_refusal, seal

THINKING = ("thinking", "redacted_thinking")
_STOP = {"end": "end_turn", "cut off": "max_tokens", "refused": "refusal", "malformed": "end_turn"}


def check(request: Json) -> Refusal | None:
    """What Anthropic has against messages."""
    rules = [_options_fit_thinking, _texts_are_there, _ids_fit, _results_are_there]
    return first_refusal(request, [*rules, _calls_are_answered, _thinking_is_kept])


def _options_fit_thinking(request: Json) -> Refusal | None:
    thinking = request.get("thinking", {})
    if thinking.get("type") == "enabled":
        if not 1024 <= thinking["budget_tokens"] < request["max_tokens"]:
            return Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
        if request.get("tool_choice", {}).get("type") in ("any", "tool"):
            return Refusal("Thinking may not be enabled when tool_choice forces tool use.")
    return None


def _texts_are_there(request: Json) -> Refusal | None:
    for place, message in enumerate(request["messages"]):
        if not message["content"]:
            return Refusal(f"messages.{place}: all messages must have non-empty content")
        for block in _blocks(message):
            if block["type"] == "text" and not block["text"].strip():
                return Refusal("messages: text content blocks must be non-empty")
            if block["type"] in THINKING and block is _blocks(message)[-1]:
                return Refusal(
                    f"messages.{place}: The final block in an assistant message cannot be "
                    "`thinking`."
                )
    return None


def _ids_fit(request: Json) -> Refusal | None:
    ids = [block["id"] for message in request["messages"] for block in _of(message, "tool_use")]
    for name in ids:
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", name):
            return Refusal("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    return Refusal("messages: `tool_use` ids must be unique") if len({*ids}) < len(ids) else None


def _results_are_there(request: Json) -> Refusal | None:
    for message in request["messages"]:
        for block in _of(message, "tool_result"):
            if block.get("is_error") and not block.get("content"):
                return Refusal("tool_result: content cannot be empty if `is_error` is true")
    return None


def _calls_are_answered(request: Json) -> Refusal | None:
    """The results of a message's calls begin the next message, one for each."""
    messages = request["messages"]
    for place, message in enumerate(messages):
        called = [block["id"] for block in _of(messages[place - 1], "tool_use")] if place else []
        results = [block["tool_use_id"] for block in _of(message, "tool_result")]
        for name in results:
            if name not in called:
                return Refusal(
                    f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{name}. Each `tool_result` block must have a corresponding `tool_use` block "
                    "in the previous message."
                )
        leading = {block.get("tool_use_id") for block in _blocks(message)[: len(called)]}
        if missing := [name for name in called if name not in leading]:
            return _unanswered(place - 1, missing)
        if len(results) > len(called):
            return Refusal("each tool_use must have a single result.")
    last = [block["id"] for block in _of(messages[-1], "tool_use")]
    return _unanswered(len(messages) - 1, last) if last else None


def _unanswered(place: int, ids: list[str]) -> Refusal:
    return Refusal(
        f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message."
    )


def _thinking_is_kept(request: Json) -> Refusal | None:
    """Thinking that is sent is as it was; where calls are open and budgeted, it must be sent."""
    messages = request["messages"]
    places = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
    for place in places:
        blocks = _blocks(messages[place])
        if any(
            block["type"] in THINKING and _seal_of(block) != _seal(blocks, index)
            for index, block in enumerate(blocks)
        ):
            return Refusal(
                f"messages.{place}: `thinking` or `redacted_thinking` blocks in the latest "
                "assistant message cannot be modified. These blocks must remain as they were in "
                "the original response."
                if place == places[-1]
                else f"messages.{place}: Invalid `signature` in `thinking` block"
            )
    if request.get("thinking", {}).get("type") != "enabled" or not places:
        return None
    first = _blocks(messages[places[-1]])[0]["type"]
    if first in THINKING or not _of(messages[places[-1]], "tool_use"):
        return None
    return Refusal(
        f"messages.{places[-1]}.content.0.type: Expected `thinking` or `redacted_thinking`, but "
        f"found `{first}`. When `thinking` is enabled, a final `assistant` message must start with "
        "a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    )


def _seal(blocks: list[Json], index: int) -> str:
    """Holds for a thinking block, its place, and the calls that it led to."""
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return seal(blocks[index].get("thinking"), index, calls)


def _seal_of(block: Json) -> str:
    return str(block.get("signature") or block.get("data"))


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _of(message: Json, kind: str) -> list[Json]:
    return [block for block in _blocks(message) if block["type"] == kind]


class AnthropicMessages(Api):
    """A model that thinks within a budget; a thought `[redacted]` is sent without its text."""

    model = "anthropic/claude-opus-4-5"
    generate: ClassVar[Json] = {"reasoning_tokens": 2048}
    path = "/v1/messages"

    def check(self, request: Json) -> Refusal | None:
        return check(request)

    def blocks(self, reply: Reply, number: int) -> list[Json]:
        blocks: list[Json] = []
        if reply.thought == "[redacted]":
            blocks.append({"type": "redacted_thinking", "data": ""})
        elif reply.thought or reply.calls:  # where thinking is budgeted, no call comes without
            blocks.append({"type": "thinking", "thinking": reply.thought or "…", "signature": ""})
        if reply.text:
            blocks.append({"type": "text", "text": reply.text})
        for place, call in enumerate(reply.calls):
            name = f"toolu_{number}_{place}"
            assert not isinstance(call.arguments, str), "arguments are objects here"
            arguments = dict(call.arguments)
            blocks.append({"type": "tool_use", "id": name, "name": call.name, "input": arguments})
        if blocks and blocks[0]["type"] in THINKING:
            field = "data" if blocks[0]["type"] == "redacted_thinking" else "signature"
            blocks[0][field] = _seal(blocks, 0)
        return blocks

    def body(self, reply: Reply, blocks: list[Json], request: Json) -> Json:
        called = reply.calls and reply.stop == "end"
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": blocks,
            "stop_reason": "tool_use" if called else _STOP[reply.stop],
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    def stream(self, body: Json) -> Iterator[tuple[str, Json]]:
        yield _event("message_start", message={**body, "content": [], "stop_reason": None})
        for index, block in enumerate(body["content"]):
            begun, deltas = _begun(block)
            yield _event("content_block_start", index=index, content_block=begun)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=end, usage={"output_tokens": 5})
        yield _event("message_stop")

    def error(self, refusal: Refusal) -> Json:
        kind = "invalid_request_error" if refusal.status < 500 else "api_error"
        return {"type": "error", "error": {"type": kind, "message": refusal.message}}

    def said(self, request: Json) -> list[Json]:
        messages = [one for one in request["messages"] if one["role"] == "assistant"]
        return [block for message in messages for block in _blocks(message)]

    def plain(self, block: Json) -> Json | None:
        if block["type"] == "text" and block["text"] == NO_CONTENT:
            return None
        added = ("cache_control", "citations")
        return {name: value for name, value in block.items() if name not in added}


def _event(name: str, **fields: object) -> tuple[str, Json]:
    return name, {"type": name, **fields}


def _begun(block: Json) -> tuple[Json, list[Json]]:
    """A block as its stream begins, and what is added to it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] == "tool_use":
        text = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}]
    return block, []
