"""The APIs that a loop has to get along with, by name."""

import pytest

from tests.providers.anthropic_messages import AnthropicMessages
from tests.providers.compatible import Compatible
from tests.providers.core import Api
from tests.providers.gemini import Gemini
from tests.providers.openai_chat import OpenAIChat
from tests.providers.openai_responses import OpenAIResponses

APIS: dict[str, Api] = {
    "openai-chat": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": AnthropicMessages(),
    "gemini": Gemini(),
    "compatible": Compatible(),
}

# What Google's package does as it is compiled, and as it opens a session of aiohttp.
google_warnings = pytest.mark.filterwarnings(
    "ignore:invalid escape sequence", "ignore:Inheritance class:DeprecationWarning"
)
