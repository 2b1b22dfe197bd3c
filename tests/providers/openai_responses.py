"""OpenAI's responses, with nothing stored at OpenAI, and what they refuse."""

from tests.providers.core import (
    NO_CONTENT,
    Api,
    Json,
    Refusal,
    Reply,
    first_refusal,
    read_arguments,
    seal,
)

CALL, OUTPUT, REASONING, MESSAGE = "function_call", "function_call_output", "reasoning", "message"
_PREFIX = {CALL: "fc", REASONING: "rs", MESSAGE: "msg"}


def check(request: Json) -> Refusal | None:
    """What OpenAI has against the input of a response."""
    rules = [_ids_fit, _reasoning_is_sealed, _reasoning_is_followed, _calls_have_their_reasoning]
    return first_refusal(request, [*rules, _calls_are_answered])


def _ids_fit(request: Json) -> Refusal | None:
    for place, item in enumerate(request["input"]):
        prefix = _PREFIX.get(item.get("type", ""))
        if prefix and "id" in item and not str(item["id"]).startswith(prefix):
            return Refusal(
                f"Invalid 'input[{place}].id': '{item['id']}'. Expected an ID that begins with "
                f"'{prefix}'.",
                code="invalid_value",
            )
    return None


def _reasoning_is_sealed(request: Json) -> Refusal | None:
    """Reasoning comes back in its encrypted form, or cannot be found."""
    for item in request["input"]:
        if item.get("type") != REASONING:
            continue
        if item.get("content"):
            return Refusal(
                "Invalid 'content': array too long. Expected an array with maximum length 0.",
                code="array_above_max_length",
            )
        if not item.get("encrypted_content"):
            return Refusal(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` "
                "is set to false.",
                status=404,
            )
        if item["encrypted_content"] != encrypted(item["id"], _followers(item)):
            return Refusal(
                f"The encrypted content for item {item['id']} could not be verified. Reason: "
                "Encrypted content could not be decrypted or parsed.",
                code="invalid_encrypted_content",
            )
    return None


def _reasoning_is_followed(request: Json) -> Refusal | None:
    items = request["input"]
    for item, after in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") != REASONING:
            continue
        wanted = _followers(item)
        alone = after.get("type") not in (CALL, MESSAGE) or after.get("role") == "user"
        if alone or (wanted and _name(after) != wanted[0]):
            return Refusal(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                "following item."
            )
    return None


def _calls_have_their_reasoning(request: Json) -> Refusal | None:
    """Asked only of calls that are sent with an id of their own."""
    there = {item.get("id") for item in request["input"]}
    for item in request["input"]:
        call, _, reasoning = str(item.get("id", "")).partition("-")
        if item.get("type") == CALL and reasoning and reasoning not in there:
            return Refusal(
                f"Item '{call}' of type 'function_call' was provided without its required "
                f"'reasoning' item: '{reasoning}'."
            )
    return None


def _calls_are_answered(request: Json) -> Refusal | None:
    """Every call is answered once, before anything else is said."""
    waiting: list[str] = []
    answering = False
    for item in request["input"]:
        kind = item.get("type")
        if kind == OUTPUT and item["call_id"] not in waiting:
            return Refusal(
                f"No tool call found for function call output with call_id {item['call_id']}."
            )
        if kind == OUTPUT:
            waiting.remove(item["call_id"])
        elif waiting and (answering or kind != CALL):
            break
        elif kind == CALL:
            waiting.append(item["call_id"])
        answering = kind == OUTPUT
    return Refusal(f"No tool output found for function call {waiting[0]}.") if waiting else None


def encrypted(name: str, followers: list[str]) -> str:
    """What stands for reasoning: it names the items that came with it, and holds for no others."""
    return ".".join(["gAAA", *followers, seal(name, followers)])


def _followers(item: Json) -> list[str]:
    return str(item["encrypted_content"]).split(".")[1:-1]


def _name(item: Json) -> str:
    return str(item.get("call_id") or item.get("id"))


class OpenAIResponses(Api):
    """A model that shows a summary of its reasoning and sends the rest encrypted."""

    model = "openai/gpt-5"
    base = "/v1"
    path = "/responses"

    def check(self, request: Json) -> Refusal | None:
        return check(request)

    def blocks(self, reply: Reply, number: int) -> list[Json]:
        items: list[Json] = []
        if reply.text:
            kind, field = ("refusal",) * 2 if reply.stop == "refused" else ("output_text", "text")
            part = {"type": kind, field: reply.text, "annotations": []}
            items.append(
                {
                    "type": MESSAGE,
                    "id": f"msg_{number}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        name = f"rs_{number}"
        items += [
            {
                "type": CALL,
                # An id says with which reasoning the call came.
                "id": f"fc_{number}_{place}" + (f"-{name}" if reply.thought else ""),
                "call_id": f"call_{number}_{place}",
                "name": call.name,
                "arguments": call.text,
                "status": "completed",
            }
            for place, call in enumerate(reply.calls)
        ]
        if reply.stop == "cut off" and items:
            items[-1]["status"] = "incomplete"
        if not reply.thought:
            return items
        reasoning = {
            "type": REASONING,
            "id": name,
            "summary": [{"type": "summary_text", "text": reply.thought}],
            "encrypted_content": encrypted(name, [_name(item) for item in items]),
        }
        return [reasoning, *items]

    def body(self, reply: Reply, blocks: list[Json], request: Json) -> Json:
        cut = reply.stop == "cut off"
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": request["model"],
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "error": None,
            "output": blocks,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 3 if reply.thought else 0},
                "total_tokens": 15,
            },
        }

    def error(self, refusal: Refusal) -> Json:
        kind = "invalid_request_error" if refusal.status < 500 else "server_error"
        return {
            "error": {"message": refusal.message, "type": kind, "param": None, "code": refusal.code}
        }

    def said(self, request: Json) -> list[Json]:
        return [
            item
            for item in request["input"]
            if item.get("role") == "assistant" or item.get("type") in (CALL, REASONING)
        ]

    def plain(self, block: Json) -> Json | None:
        if block["type"] == CALL:
            return {"call": _name(block), "arguments": read_arguments(block["arguments"])}
        if block["type"] == REASONING:
            return {"reasoning": block["encrypted_content"]}
        text = "".join(part.get("text") or part.get("refusal") for part in block["content"])
        return {"text": text} if text != NO_CONTENT else None
