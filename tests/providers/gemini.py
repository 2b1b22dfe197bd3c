"""Gemini 3 with thought signatures, and what it refuses."""

import base64
import re
from collections.abc import Iterator

from tests.providers.core import NO_CONTENT, Api, Json, Refusal, Reply, first_refusal, seal

# What Google documents for calls that no Gemini made.
DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
# What Inspect puts into the model's mouth after calls that could not be read.
_INSPECT = re.compile(r"^\s*I (attempted to call|seem to have had trouble calling) a function")
_FINISH = {
    "end": "STOP",
    "cut off": "MAX_TOKENS",
    "refused": "SAFETY",
    "malformed": "MALFORMED_FUNCTION_CALL",
}


def check(request: Json) -> Refusal | None:
    """What Gemini has against contents."""
    return first_refusal(request, [_parts_are_there, _calls_are_answered, _calls_are_signed])


def _parts_are_there(request: Json) -> Refusal | None:
    for place, content in enumerate(request["contents"]):
        if not content.get("parts"):
            return Refusal(f"GenerateContentRequest.contents[{place}].parts: must not be empty.")
        for number, part in enumerate(content["parts"]):
            if not {"text", "functionCall", "functionResponse", "inlineData"} & {*part}:
                return Refusal(
                    f"GenerateContentRequest.contents[{place}].parts[{number}].data: required "
                    "oneof field 'data' must have one initialized field"
                )
    return None


def _calls_are_answered(request: Json) -> Refusal | None:
    """As many results as calls, at once; and calls only where it is the model's turn."""
    before: Json = {"role": "model", "parts": []}
    for content in [*request["contents"], {"role": "user", "parts": []}]:
        calls, results = _of(before, "functionCall"), _of(content, "functionResponse")
        if results and not calls:
            return Refusal(
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if _ids(calls) != _ids(results):
            return Refusal(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        if _of(content, "functionCall") and before["role"] == "model":
            return Refusal(
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
        before = content
    return None


def _calls_are_signed(request: Json) -> Refusal | None:
    """The first call of every step since the user spoke is signed; no signature is changed."""
    for content, position in _steps(request["contents"]):
        if _of(content, "functionCall"):
            first = next(part for part in content["parts"] if "functionCall" in part)
            if not first.get("thoughtSignature"):
                return Refusal(
                    "Function call is missing a thought_signature in functionCall parts. This is "
                    "required for tools to work correctly, and missing thought_signature may lead "
                    "to degraded model performance. Additional data, function call "
                    f"`default_api:{first['functionCall']['name']}` , position {position}."
                )
    for content in request["contents"]:
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and _decoded(signature) not in (*DUMMIES, _seal(part)):
                return Refusal("Corrupted thought signature.")
    return None


def _steps(contents: list[Json]) -> Iterator[tuple[Json, int]]:
    """The model's contents since the user last said something, with their positions from 1."""
    spoken = [
        place
        for place, one in enumerate(contents)
        if one["role"] == "user" and not _of(one, "functionResponse")
    ]
    begin = spoken[-1] if spoken else 0
    for place, content in enumerate(contents[begin:], start=begin + 1):
        if content["role"] == "model":
            yield content, place


def _seal(part: Json) -> str:
    """Holds for a call or a text alone; arguments come back with other spaces and order."""
    call = part.get("functionCall")
    return seal(call["id"], call["name"], call["args"]) if call else seal(part.get("text"))


def _decoded(signature: str) -> str:
    return base64.b64decode(signature.replace("-", "+").replace("_", "/")).decode("latin-1")


def _of(content: Json, kind: str) -> list[Json]:
    return [part[kind] for part in content["parts"] if kind in part]


def _ids(calls: list[Json]) -> list[str]:
    return sorted(str(call.get("id")) for call in calls)


class Gemini(Api):
    """A model that shows its thoughts and signs the first call of a reply, or its text."""

    model = "google/gemini-3-pro-preview"
    path = ":generateContent"

    def check(self, request: Json) -> Refusal | None:
        return check(request)

    def blocks(self, reply: Reply, number: int) -> list[Json]:
        parts: list[Json] = [{"text": reply.text}] if reply.text else []
        for place, call in enumerate(reply.calls):
            assert not isinstance(call.arguments, str), "arguments are objects here"
            called = {"id": f"fc-{number}-{place}", "name": call.name, "args": dict(call.arguments)}
            parts.append({"functionCall": called})
        for part in parts:
            if "functionCall" in part or not reply.calls:
                part["thoughtSignature"] = base64.b64encode(_seal(part).encode()).decode()
                break
        thought = [{"text": reply.thought, "thought": True}] if reply.thought else []
        return [*thought, *parts]

    def body(self, reply: Reply, blocks: list[Json], request: Json) -> Json:
        candidate: Json = {"index": 0, "finishReason": _FINISH[reply.stop]}
        if reply.stop == "malformed":
            candidate["finishMessage"] = "Malformed function call: call:Calculator{expression:6*7"
            candidate["content"] = {"role": "model"}
        elif reply.stop != "refused":
            candidate["content"] = {"role": "model", "parts": blocks} if blocks else {}
        return {
            "candidates": [candidate],
            "modelVersion": "gemini-3-pro-preview",
            "responseId": "r1",
            "usageMetadata": {
                "promptTokenCount": 10,
                "candidatesTokenCount": 2,
                "thoughtsTokenCount": 3,
                "totalTokenCount": 15,
            },
        }

    def error(self, refusal: Refusal) -> Json:
        status = "INVALID_ARGUMENT" if refusal.status < 500 else "INTERNAL"
        return {"error": {"code": refusal.status, "message": refusal.message, "status": status}}

    def said(self, request: Json) -> list[Json]:
        contents = [one for one in request["contents"] if one["role"] == "model"]
        return [part for content in contents for part in content["parts"]]

    def plain(self, block: Json) -> Json | None:
        # Signatures stand for thoughts; whether their summary is sent back is the client's choice.
        if block.get("thought") or block.get("text") == NO_CONTENT:
            return None
        if _INSPECT.search(block.get("text", "")):
            return None
        signature = block.get("thoughtSignature")
        return {**block, "thoughtSignature": _decoded(signature)} if signature else block
