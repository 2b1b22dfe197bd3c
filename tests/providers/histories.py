"""A legal request of every API after two replies, to be damaged in one place."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.providers.apis import APIS
from tests.providers.core import Call, Json, Reply

_CALLS = (Call({"expression": "6*7"}), Call({"expression": "42+1"}))
# Two calls at once, then one more.
REPLIES = (
    Reply("Two at once.", thought="Both are needed.", calls=_CALLS),
    Reply(thought="One more.", calls=_CALLS[:1]),
)
QUESTION = "What is 6 times 7, and one more?"
_SCHEMA = {"type": "object", "properties": {"expression": {"type": "string"}}}


def legal_request(name: str) -> Json:
    """What a client sends after both replies, with a result for every call."""
    said = [APIS[name].blocks(reply, number) for number, reply in enumerate(REPLIES, start=1)]
    return deepcopy(_REQUESTS[name](said))


def _chat(said: list[list[Json]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": QUESTION}]
    for (message,) in said:
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "42"}
            for call in message["tool_calls"]
        ]
        messages += [message, *results]
    function = {"name": "Calculator", "parameters": _SCHEMA}
    return {
        "model": "m",
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
    }


def _responses(said: list[list[Json]]) -> Json:
    items: list[Json] = [{"type": "message", "role": "user", "content": QUESTION}]
    for blocks in said:
        items += blocks
        items += [
            {"type": "function_call_output", "call_id": block["call_id"], "output": "42"}
            for block in blocks
            if block["type"] == "function_call"
        ]
    tool = {"type": "function", "name": "Calculator", "parameters": _SCHEMA, "strict": False}
    return {"model": "m", "store": False, "input": items, "tools": [tool]}


def _messages(said: list[list[Json]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": QUESTION}]
    for blocks in said:
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "42"}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        messages += [
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
    return {
        "model": "m",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "messages": messages,
        "tools": [{"name": "Calculator", "input_schema": _SCHEMA}],
    }


def _contents(said: list[list[Json]]) -> Json:
    contents: list[Json] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    for parts in said:
        results = [
            {"functionResponse": {**_name(part["functionCall"]), "response": {"output": "42"}}}
            for part in parts
            if "functionCall" in part
        ]
        contents += [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
    declared = {"name": "Calculator", "parametersJsonSchema": _SCHEMA}
    return {"contents": contents, "tools": [{"functionDeclarations": [declared]}]}


def _name(call: Json) -> Json:
    return {"id": call["id"], "name": call["name"]}


_REQUESTS: dict[str, Callable[[list[list[Json]]], Json]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _messages,
    "gemini": _contents,
    "compatible": _chat,
}

Damage = Callable[[Json], None]


def drop(path: str) -> Damage:
    """Takes away what is at the path, such as `messages.1.content.0`."""

    def damage(request: Json) -> None:
        holder, key = _holder(request, path)
        del holder[key]

    return damage


def move(path: str, place: int) -> Damage:
    """Takes what is at the path out of its list and puts it elsewhere."""

    def damage(request: Json) -> None:
        holder, key = _holder(request, path)
        holder.insert(place, holder.pop(key))

    return damage


def put(path: str, value: Any) -> Damage:
    """Writes something else at the path."""

    def damage(request: Json) -> None:
        holder, key = _holder(request, path)
        holder[key] = value

    return damage


def add(path: str, value: Any) -> Damage:
    """Adds something at the end of the list at the path."""

    def damage(request: Json) -> None:
        holder, key = _holder(request, path)
        holder[key].append(value)

    return damage


def _holder(request: Json, path: str) -> tuple[Any, Any]:
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    holder: Any = request
    for key in way:
        holder = holder[key]
    return holder, last
