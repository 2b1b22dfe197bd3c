"""Step mode's prefix per provider, as Inspect's own providers send it."""

import asyncio
from base64 import b64decode
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, GenerateConfig, get_model
from inspect_ai.model._openai import messages_to_openai

from gta_bench.agents.contract import Setup
from gta_bench.agents.provider import disable_thinking, find_prefix
from gta_bench.agents.toolcalling import make_toolcalling_messages, toolcalling
from tests.agents.builders import HISTORIES, TOOLS, inspect_warnings
from tests.chat_server import chat_server

pytestmark = [inspect_warnings, pytest.mark.usefixtures("loopback")]

NOTHING = GenerateConfig()
BUDGET = GenerateConfig(reasoning_tokens=2048)
EFFORT = GenerateConfig(reasoning_effort="high")


@pytest.mark.parametrize(
    ("model", "config", "word"),
    [
        ("google/gemini-3-pro-preview", NOTHING, "skip_thought_signature_validator"),
        ("google/gemini-2.5-pro", NOTHING, None),
        ("anthropic/claude-opus-4-5-20251101", BUDGET, "thinking was off"),
        ("anthropic/claude-sonnet-4-20250514", EFFORT, "thinking was off"),
        ("anthropic/claude-3-7-sonnet-20250219", BUDGET, "thinking was off"),
        ("anthropic/claude-opus-4-6", BUDGET, "thinking was off"),
        ("anthropic/claude-opus-4-6", EFFORT, None),
        ("anthropic/claude-opus-4-8", EFFORT, None),
        ("anthropic/claude-3-5-sonnet-20241022", BUDGET, None),
        ("anthropic/claude-opus-4-5-20251101", NOTHING, None),
        ("anthropic/claude-sonnet-4-5", GenerateConfig(reasoning_effort="none"), None),
        ("deepseek/deepseek-reasoner", NOTHING, "reasoning_content"),
        ("openai-api/moonshot/kimi-k2-thinking", NOTHING, "reasoning_content"),
        ("openai/gpt-5", EFFORT, None),
        ("openai-api/local/Qwen/Qwen3-8B", NOTHING, None),
    ],
)
def test_what_a_provider_demands_is_named(
    model: str, config: GenerateConfig, word: str | None
) -> None:
    found = find_prefix(model, config)
    assert (found is None) == (word is None)
    if found is not None and word is not None:
        assert word in found.note


def sent_by_openai(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    return [dict(one) for one in asyncio.run(messages_to_openai(messages))]


def test_most_providers_get_bare_calls_with_ids_that_mistral_takes() -> None:
    messages = make_toolcalling_messages(HISTORIES[-1])
    roles = [message.role for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    calls = [one for one in sent_by_openai(messages) if one["role"] == "assistant"]
    assert [one["tool_calls"][0]["id"] for one in calls] == ["gta000001", "gta000002"]
    assert all(one["content"] == "" and "reasoning_content" not in one for one in calls)


def test_deepseek_gets_an_empty_reasoning_with_every_call() -> None:
    prefix = find_prefix("deepseek/deepseek-reasoner", NOTHING)
    calls = sent_by_openai(make_toolcalling_messages(HISTORIES[-1], (), prefix))
    said = [one.get("reasoning_content") for one in calls if one["role"] == "assistant"]
    assert said == ["", ""]


def test_gemini_gets_googles_placeholder_on_every_call() -> None:
    prefix = find_prefix("google/gemini-3-pro-preview", NOTHING)
    messages = make_toolcalling_messages(HISTORIES[-1], (), prefix)
    parts = [message.content[0] for message in messages if message.role == "assistant"]
    words = [b64decode(part.reasoning) for part in parts if not isinstance(part, str)]  # type: ignore[union-attr]
    assert words == [b"skip_thought_signature_validator"] * 2


@pytest.mark.parametrize("config", [BUDGET, EFFORT])
def test_thinking_is_off_in_the_whole_configuration_of_the_model(config: GenerateConfig) -> None:
    """Inspect merges the options of a request into the model's: a budget cannot be taken back."""
    model = get_model("mockllm/model", config=config.merge(GenerateConfig(temperature=0.5)))
    off = disable_thinking(model)
    assert (off.config.reasoning_tokens, off.config.reasoning_effort) == (None, "none")
    assert off.config.temperature == 0.5
    assert off.api is model.api


def test_the_prefix_of_a_served_deepseek_reaches_the_server() -> None:
    asked: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        asked.append(request)
        return "It costs 7."

    async def ask(url: str) -> None:
        name = "openai-api/local/deepseek-v4"
        model = get_model(name, base_url=url, api_key="none", memoize=False)
        try:
            await toolcalling(Setup(model=model))(HISTORIES[-1], TOOLS)
        finally:
            await model.api.aclose()

    with chat_server(reply) as server:
        asyncio.run(ask(server.url))
    sent = [one for one in asked[0]["messages"] if one["role"] == "assistant"]
    assert [one["reasoning_content"] for one in sent] == ["", ""]
    assert [one["role"] for one in asked[0]["messages"][:2]] == ["system", "user"]
