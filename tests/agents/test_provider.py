"""What servers say through Inspect's real provider for them, over HTTP."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    Model,
    get_model,
)
from inspect_ai.tool import ToolCall

from gta_bench.agents.contract import Decision, History, Setup
from gta_bench.agents.loop import dump_messages
from gta_bench.agents.provider import watch_provider
from gta_bench.agents.toolcalling import toolcalling
from gta_bench.errors import EnvironmentProblem, RequestRefused
from gta_bench.records.steps import AnswerStep, CallStep
from tests.agents.builders import HISTORIES, TOOLS, inspect_warnings
from tests.chat_server import ChatServer, Refusal, chat_server
from tests.conftest import REPOSITORY

pytestmark = [inspect_warnings, pytest.mark.usefixtures("loopback")]

VLLM = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
LLAMA = "the request exceeds the available context size, try increasing it"
LLAMA_500 = "Context size has been exceeded."
TOO_LARGE = (
    "'max_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your "
    "request has 100 input tokens."
)
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."


def model(server: ChatServer) -> Model:
    return get_model(
        "openai-api/local/any",
        base_url=server.url,
        api_key="none",
        config=GenerateConfig(max_retries=3),
        memoize=False,
    )


def decided(server: ChatServer, history: History = HISTORIES[-1]) -> Decision:
    async def ask() -> Decision:
        asked = model(server)
        try:
            return await toolcalling(Setup(model=asked))(history, TOOLS)
        finally:
            await asked.api.aclose()

    return asyncio.run(ask())


class Refusing:
    """Refuses everything in the same words, and counts."""

    def __init__(self, status: int, words: str) -> None:
        self.refusal: Refusal = (status, words)
        self.asked = 0

    def __call__(self, *_: object) -> Refusal:
        self.asked += 1
        return self.refusal


@pytest.mark.parametrize(
    ("status", "words"), [(400, VLLM), (400, LLAMA), (500, LLAMA_500), (400, TOO_LARGE)]
)
def test_an_overflow_is_how_the_reply_ended_and_is_not_tried_again(
    status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was raised, and the unit stayed unscored; with status 500 it was tried again before."""
    refusing = Refusing(status, words)
    with chat_server() as server:
        monkeypatch.setattr(server, "refusal", refusing)
        assert decided(server).stop == "context"
    assert refusing.asked == 1


def test_a_reply_limit_that_never_fits_is_a_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server() as server:
        monkeypatch.setattr(server, "refusal", Refusing(400, TOO_LARGE))
        with pytest.raises(RequestRefused, match="'max_tokens' is too large"):
            decided(server, HISTORIES[0])


def test_a_history_that_the_template_refuses_is_named_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """llama.cpp says it with status 500, and every retry is refused alike."""
    refusing = Refusing(500, ALTERNATE)
    with chat_server() as server:
        monkeypatch.setattr(server, "refusal", refusing)
        with pytest.raises(RequestRefused, match=r"chat template .*--agent react"):
            decided(server)
    assert refusing.asked == 1


def test_a_request_that_is_refused_is_our_fault_and_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with chat_server() as server:
        monkeypatch.setattr(server, "refusal", Refusing(400, "Unknown field 'tools'."))
        with pytest.raises(RequestRefused, match=r"that gta-bench sent: .*Unknown field"):
            decided(server)


def test_a_reply_that_is_broken_off_is_asked_for_once_more() -> None:
    reasons = ["abort", "stop"]

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": "It costs"}
        return {"message": message, "finish_reason": reasons.pop(0)}

    with chat_server(reply) as server:
        decision = decided(server)
    assert decision.step == AnswerStep(content="It costs")
    assert reasons == []


def test_a_reply_that_is_broken_off_twice_has_no_score() -> None:
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": "It"}, "finish_reason": "abort"}

    with chat_server(reply) as server:
        with pytest.raises(EnvironmentProblem, match=r"aborted the reply twice .*'abort'"):
            decided(server)
        assert server.asked == 2


def test_reasoning_of_no_words_is_kept_with_its_call() -> None:
    """Inspect drops an empty `reasoning_content`, which DeepSeek and Kimi want back."""

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        call = {"name": "OCR", "arguments": json.dumps({"image": "inputs/menu.jpg"})}
        calls = [{"id": "call-1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": calls}
        return {"message": message, "finish_reason": "tool_calls"}

    with chat_server(reply) as server:
        decision = decided(server, HISTORIES[0])
    assert isinstance(decision.step, CallStep)
    assert decision.output is not None
    reasoning = decision.output.message.content[0]
    assert isinstance(reasoning, ContentReasoning)
    assert (reasoning.reasoning, reasoning.internal) == ("", "reasoning_content")


@pytest.mark.parametrize(
    "half",
    [
        {"content": "half \ud83d"},
        {"content": "", "reasoning_content": "half \ud83d"},
        {"content": "", "arguments": '{"image": "half \\ud83d"}'},
        {"content": "", "arguments": '{"\\ud83d": {"a": ["\\ud83d"]}}'},
        {"content": "", "arguments": '{"image": "\ud83d'},
    ],
)
def test_half_a_character_is_replaced_before_anybody_keeps_it(half: dict[str, str]) -> None:
    """No file could hold the dialogue: no unit of the run finished, then and later."""
    given = {"image": "inputs/menu.jpg"}
    call = {"name": "OCR", "arguments": half.pop("arguments", json.dumps(given))}
    calls = [{"id": "call-1", "type": "function", "function": call}]

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", **half, "tool_calls": calls}
        return {"message": message, "finish_reason": "tool_calls"}

    with chat_server(reply) as server:
        decision = decided(server, HISTORIES[0])
    assert decision.output is not None
    kept = dump_messages([decision.output.message])
    assert "\ufffd" in json.dumps(kept, ensure_ascii=False)
    decision.output.model_dump_json()


def calling(*calls: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    made = [{"type": "function", "id": f"call-{n}", **call} for n, call in enumerate(calls)]
    message = {"role": "assistant", "content": "", "tool_calls": made}
    return lambda request: {"message": message, "finish_reason": "tool_calls"}


@pytest.mark.parametrize("raw", ["inputs/menu.jpg", '["inputs/menu.jpg"]', '"inputs/menu.jpg"'])
def test_arguments_that_are_no_object_are_no_arguments(raw: str) -> None:
    """Inspect takes them for the value of the first parameter, and the call was right."""
    with chat_server(calling({"function": {"name": "OCR", "arguments": raw}})) as server:
        step = decided(server, HISTORIES[0]).step
    assert isinstance(step, CallStep)
    assert step.error is not None
    assert (step.error.type, step.arguments) == ("ARGS_ERROR", raw)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            {"function": {"name": "OCR", "arguments": {"image": "a"}}},
            "the arguments of a tool call as dict instead of a string",
        ),
        ({"function": {"name": "OCR", "arguments": "{}"}, "id": None}, "whose id is null"),
    ],
)
def test_a_call_that_no_client_can_read_is_reported(
    call: dict[str, Any], said: str, recwarn: pytest.WarningsRecorder
) -> None:
    """The cause of the unit was an AttributeError, and a warning was printed for every reply."""
    with (
        chat_server(calling(call)) as server,
        pytest.raises(EnvironmentProblem, match=f"The server sent .*{said} .*--agent react"),
    ):
        decided(server, HISTORIES[0])
    assert [str(one.message) for one in recwarn if one.category is UserWarning] == []


def test_a_server_that_rejects_its_own_ids_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was reported as a bug of ours."""
    twice = [ToolCall(id="same", function="OCR", arguments={}) for _ in range(2)]
    results = [ChatMessageTool(content="7", tool_call_id="same") for _ in twice]
    asked = ChatMessageUser(content="What does it cost?")
    messages = (asked, ChatMessageAssistant(content="", tool_calls=twice), *results)
    history = HISTORIES[0].model_copy(update={"messages": messages})
    with chat_server() as server:
        monkeypatch.setattr(server, "refusal", Refusing(400, "Duplicate tool_call ids"))
        with pytest.raises(
            EnvironmentProblem, match="several calls in one reply with the same id 's"
        ):
            decided(server, history)


@pytest.mark.parametrize("name", ["openai/gpt-5", "openai-api/local/any"])
def test_openais_clients_have_the_private_attribute_that_we_hook_into(name: str) -> None:
    """If this fails, a new version of openai needs a change in `watch_provider`."""
    api = get_model(name, base_url="http://127.0.0.1:9/v1", api_key="none", memoize=False).api
    watch_provider(api)
    hooks = getattr(api, "client")._client.event_hooks["response"]  # noqa: B009
    assert [hook.__module__ for hook in hooks].count("gta_bench.agents.provider") == 1


def test_private_names_of_inspect_are_imported_in_two_modules() -> None:
    found = {
        file.name
        for file in (REPOSITORY / "src" / "gta_bench").rglob("*.py")
        if re.search(r"(from|import) inspect_\w+(\.\w+)*\._", file.read_text(encoding="utf-8"))
    }
    assert found == {"log_layout.py", "stopping.py"}
