"""What the strict servers refuse: each rule of an API by a history that breaks it alone."""

from typing import Any, NamedTuple

import pytest

from tests.providers.apis import APIS, google_warnings
from tests.providers.core import Json, Refusal, Reply, strict_server
from tests.providers.histories import Damage, add, drop, legal_request, move, put

pytestmark = google_warnings


class Case(NamedTuple):
    api: str
    # The first word says what happens to a block: dropped, moved, changed, added.
    what: str
    damage: Damage
    told: str


CHAT = [
    ("dropped: a result", drop("messages.3"), "did not have response messages: call00101"),
    ("dropped: the last result", drop("messages.5"), "did not have response messages: call00200"),
    ("dropped: a call", drop("messages.1.tool_calls.1"), "must be a response to a preceeding"),
    ("dropped: all calls", drop("messages.1.tool_calls"), "must be a response to a preceeding"),
    ("moved: a result", move("messages.3", 5), "did not have response messages: call00101"),
    ("moved: a result before its call", move("messages.2", 1), "must be a response to a preceed"),
    ("changed: a call's id", put("messages.4.tool_calls.0.id", "call99999"), "must be a response"),
    ("changed: a result's id", put("messages.2.tool_call_id", "call00101"), "must be a response"),
    (
        "changed: a result to a picture",
        put("messages.2.content", [{"type": "image_url", "image_url": {"url": "data:"}}]),
        "Image URLs are only allowed for messages with role 'user'",
    ),
    (
        "added: a user's message between results",
        lambda request: request["messages"].insert(3, {"role": "user", "content": "Look."}),
        "did not have response messages: call00101",
    ),
    (
        "added: a reply without content",
        add("messages", {"role": "assistant", "content": None}),
        "expected a string, got null",
    ),
    ("changed: no calls", put("messages.4.tool_calls", []), "empty array"),
    ("changed: a long id", put("messages.4.tool_calls.0.id", "c" * 41), "string too long"),
]
COMPATIBLE = [
    ("dropped: reasoning", drop("messages.1.reasoning_content"), "Missing `reasoning_content`"),
    ("changed: reasoning to null", put("messages.4.reasoning_content", None), "message index 4"),
    (
        "changed: arguments to broken JSON",
        put("messages.1.tool_calls.0.function.arguments", '{"expression": '),
        "Expecting value",
    ),
    (
        "changed: arguments to a list",
        put("messages.1.tool_calls.0.function.arguments", "[]"),
        "from a mapping",
    ),
    (
        "added: a user's message after results",
        add("messages", {"role": "user", "content": "Look."}),
        "Unexpected role 'user' after role 'tool'",
    ),
    (
        "added: a second user's message",
        lambda request: request["messages"].insert(1, {"role": "user", "content": "Look."}),
        "conversation roles must alternate",
    ),
]
RESPONSES = [
    ("dropped: reasoning", drop("input.1"), "without its required 'reasoning' item"),
    ("dropped: a result", drop("input.6"), "No tool output found for function call call_1_1"),
    ("dropped: a call", drop("input.4"), "No tool call found for function call output with call_"),
    ("dropped: what reasoning led to", drop("input.2"), "without its required following item"),
    ("dropped: encrypted content", drop("input.1.encrypted_content"), "not found. Items are not"),
    ("moved: reasoning", move("input.1", 3), "without its required following item"),
    ("moved: reasoning to the end", move("input.1", 10), "without its required following item"),
    ("moved: a result before its call", move("input.5", 1), "No tool call found for function"),
    ("moved: a result behind the next call", move("input.6", 9), "No tool output found for"),
    (
        "changed: encrypted content",
        put("input.1.encrypted_content", "gAAA.msg_1.call_1_0.call_1_1.0"),
        "could not be verified",
    ),
    ("changed: a call's id", put("input.3.id", "call_1_0"), "Expected an ID that begins with 'fc'"),
    ("changed: a result's id", put("input.5.call_id", "call_9_9"), "No tool call found for"),
    (
        "added: reasoning in clear text",
        put("input.1.content", [{"type": "reasoning_text", "text": "Both are needed."}]),
        "array too long",
    ),
]
MESSAGES = [
    (
        "dropped: thinking",
        drop("messages.3.content.0"),
        "Expected `thinking` or `redacted_thinking",
    ),
    ("dropped: a result", drop("messages.2.content.1"), "immediately after: toolu_1_1"),
    ("dropped: all results", drop("messages.4"), "immediately after: toolu_2_0"),
    ("dropped: the only call", drop("messages.3.content.1"), "cannot be `thinking`"),
    ("dropped: an earlier call", drop("messages.1.content.3"), "unexpected `tool_use_id` found"),
    ("moved: thinking", move("messages.1.content.0", 1), "Invalid `signature` in `thinking` block"),
    ("moved: thinking to the end", move("messages.3.content.0", 1), "cannot be `thinking`"),
    ("moved: a result", move("messages.4", 2), "unexpected `tool_use_id` found"),
    ("changed: thinking", put("messages.3.content.0.thinking", "No."), "cannot be modified"),
    ("changed: a signature", put("messages.3.content.0.signature", "x"), "cannot be modified"),
    (
        "changed: earlier thinking",
        put("messages.1.content.0.thinking", "No."),
        "Invalid `signature",
    ),
    ("changed: a call's id", put("messages.3.content.1.id", "toolu_1_0"), "ids must be unique"),
    ("changed: to an odd id", put("messages.3.content.1.id", "call:1"), "should match pattern"),
    (
        "changed: a result's id",
        put("messages.4.content.0.tool_use_id", "x"),
        "unexpected `tool_use",
    ),
    ("changed: a text to nothing", put("messages.1.content.1.text", ""), "must be non-empty"),
    ("changed: a message to nothing", put("messages.0.content", []), "non-empty content"),
    (
        "changed: a result to an error without words",
        put("messages.4.content.0", {"type": "tool_result", "is_error": True, "tool_use_id": "x"}),
        "content cannot be empty if `is_error` is true",
    ),
    (
        "added: text before results",
        lambda request: request["messages"][2]["content"].insert(0, {"type": "text", "text": "Hm"}),
        "immediately after: toolu_1_1",
    ),
    (
        "added: a second result",
        add("messages.4.content", {"type": "tool_result", "tool_use_id": "toolu_2_0"}),
        "must have a single result",
    ),
    (
        "added: a reply that only thinks",
        add("messages", {"role": "assistant", "content": [{"type": "thinking", "thinking": "."}]}),
        "cannot be `thinking`",
    ),
    ("added: a forced choice", put("tool_choice", {"type": "any"}), "forces tool use"),
    ("changed: the budget", put("max_tokens", 1024), "must be greater than"),
]
CONTENTS = [
    ("dropped: a signature", drop("contents.3.parts.1.thoughtSignature"), "missing a thought_sig"),
    ("dropped: the first call", drop("contents.1.parts.2"), "number of function response parts"),
    ("dropped: a result", drop("contents.2.parts.1"), "number of function response parts"),
    ("dropped: all results", drop("contents.4"), "number of function response parts"),
    ("dropped: the results between", drop("contents.2"), "number of function response parts"),
    ("moved: the signed call", move("contents.1.parts.2", 3), "missing a thought_signature"),
    ("moved: results", move("contents.2", 1), "comes immediately after a function call turn"),
    (
        "changed: a signature",
        put("contents.1.parts.2.thoughtSignature", "bm8="),
        "Corrupted thought signature",
    ),
    (
        "changed: a signed call",
        put("contents.3.parts.1.functionCall.args", {"expression": "1+1"}),
        "Corrupted thought signature",
    ),
    (
        "changed: a result's id",
        put("contents.4.parts.0.functionResponse.id", "x"),
        "number of func",
    ),
    (
        "added: a model's turn before a call",
        lambda request: request["contents"].insert(1, {"role": "model", "parts": [{"text": "Hm"}]}),
        "function call turn comes immediately after a user turn",
    ),
    ("changed: a turn to nothing", put("contents.0.parts", []), "must not be empty"),
    ("changed: a part to nothing", put("contents.0.parts.0", {}), "required oneof field 'data'"),
]
TABLES = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": MESSAGES,
    "gemini": CONTENTS,
    "compatible": [*CHAT, *COMPATIBLE],
}
CASES = [Case(api, *row) for api, rows in TABLES.items() for row in rows]


def refused(api: str, damage: Damage) -> Refusal | None:
    request = legal_request(api)
    damage(request)
    return APIS[api].check(request)


@pytest.mark.parametrize("api", APIS)
def test_a_history_that_is_whole_is_taken(api: str) -> None:
    assert APIS[api].check(legal_request(api)) is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.api}: {case.what}")
def test_a_history_that_breaks_a_rule_is_refused(case: Case) -> None:
    refusal = refused(case.api, case.damage)
    assert refusal is not None
    assert case.told in refusal.message


@pytest.mark.parametrize(
    ("api", "damage"),
    [
        # DeepSeek's way out for calls that it did not make itself
        ("compatible", put("messages.1.reasoning_content", "")),
        ("openai-chat", put("messages.1.tool_calls.0.function.arguments", "{")),
        # calls without ids of their own, as Inspect sends them, want no reasoning
        ("openai-responses", lambda request: _without_reasoning(request)),
        # thinking that is off wants no thinking blocks, and neither does adaptive thinking
        ("anthropic", lambda request: _without_thinking(request, "disabled")),
        ("anthropic", lambda request: _without_thinking(request, "adaptive")),
        ("anthropic", drop("messages.1.content.0")),
        # Google's way out for calls that no Gemini made
        (
            "gemini",
            put(
                "contents.3.parts.1.thoughtSignature",
                "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
            ),
        ),
        ("gemini", drop("contents.1.parts.0")),
    ],
)
def test_what_an_api_is_known_to_take_is_taken(api: str, damage: Damage) -> None:
    assert refused(api, damage) is None


def _without_reasoning(request: Json) -> None:
    kept = [item for item in request["input"] if item["type"] != "reasoning"]
    request["input"] = [
        {name: value for name, value in item.items() if name != "id"} for item in kept
    ]


def _without_thinking(request: Json, kind: str) -> None:
    request["thinking"] = {"type": kind}
    for message in request["messages"][1:]:
        message["content"] = [one for one in message["content"] if one["type"] != "thinking"]


def test_signatures_are_asked_for_only_since_the_user_spoke() -> None:
    request = legal_request("gemini")
    del request["contents"][1]["parts"][2]["thoughtSignature"]
    assert APIS["gemini"].check(request) is not None
    answer = {"role": "model", "parts": [{"text": "It is 42."}]}
    request["contents"] += [answer, {"role": "user", "parts": [{"text": "Thanks."}]}]
    assert APIS["gemini"].check(request) is None


def ask_openai(api: str, url: str, request: Json) -> Any:
    from openai import APIStatusError, OpenAI

    with OpenAI(api_key="none", base_url=url, max_retries=0) as client:
        create: Any = client.responses if api == "openai-responses" else client.chat.completions
        try:
            return create.create(**request)
        except APIStatusError as exc:
            raise Refused(str(exc)) from exc


def ask_anthropic(_: str, url: str, request: Json) -> Any:
    from anthropic import Anthropic, APIStatusError

    with Anthropic(api_key="none", base_url=url, max_retries=0) as client:
        try:
            return client.messages.create(**request)
        except APIStatusError as exc:
            raise Refused(str(exc)) from exc


def ask_google(_: str, url: str, request: Json) -> Any:
    from google.genai import Client
    from google.genai.errors import APIError

    plain: Any = {"base_url": url, "client_args": {"verify": False}}
    tools: Any = {"tools": request["tools"]}
    with Client(api_key="none", http_options=plain) as client:
        try:
            return client.models.generate_content(
                model="gemini-3-pro-preview", contents=request["contents"], config=tools
            )
        except APIError as exc:
            raise Refused(str(exc)) from exc


class Refused(Exception):
    """What a vendor's package raised, in its words."""


# The packages are imported where they are used: they take seconds.
ASK = dict.fromkeys(APIS, ask_openai) | {"anthropic": ask_anthropic, "gemini": ask_google}
FIRST = {
    (case.api, what): case
    for case in reversed(CASES)
    for what in ("dropped", "moved", "changed")
    if case.what.startswith(what)
}


@pytest.mark.parametrize("api", APIS)
def test_the_vendors_package_reads_a_reply(api: str, loopback: None) -> None:
    with strict_server(APIS[api], {"": [Reply("It is 42.", thought="Done.")]}) as server:
        assert "It is 42." in repr(ASK[api](api, server.url, legal_request(api)))
    assert server.conversations[""].refusals == []


@pytest.mark.parametrize("case", FIRST.values(), ids=lambda case: f"{case.api}: {case.what}")
def test_the_vendors_package_raises_what_is_refused(case: Case, loopback: None) -> None:
    request = legal_request(case.api)
    case.damage(request)
    with (
        strict_server(APIS[case.api], {"": [Reply("never said")]}) as server,
        pytest.raises(Refused) as raised,
    ):
        ASK[case.api](case.api, server.url, request)
    assert case.told in str(raised.value)
    assert len(server.conversations[""].refusals) == 1
