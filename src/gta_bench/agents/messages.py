"""What the agents' chats have in common: the model, the file message, attached images."""

from collections.abc import Sequence
from mimetypes import guess_type

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import materialize_media

from gta_bench.agents.contract import Setup
from gta_bench.agents.history import History
from gta_bench.errors import EnvironmentProblem, UsageError, fault_words
from gta_bench.records.attachment import Attachment


def chosen_model(setup: Setup) -> Model:
    """The model of the setup, or the one that Inspect is evaluating."""
    return setup.model if setup.model is not None else get_model()


async def ask_model(
    setup: Setup, messages: list[ChatMessage], tools: Sequence[ToolInfo] = ()
) -> ModelOutput:
    """The model's output; after the engine's retries, what failed last is told with its place."""
    model = chosen_model(setup)
    try:
        return await model.generate(messages, tools=list(tools), config=chosen_config(setup))
    except Exception as exc:
        if type(exc).__name__ != "RetryError":  # which names nothing itself
            raise
        where = model.api.base_url or model.name
        raise EnvironmentProblem(f"The model did not reply: {fault_words(exc)} ({where})") from exc


def chosen_config(setup: Setup) -> GenerateConfig:
    """What the setup asks of the model beyond Inspect's own configuration."""
    return setup.config if setup.config is not None else GenerateConfig()


def user_message(text: str, images: Sequence[ContentImage]) -> ChatMessageUser:
    """What the user says, with the pictures where the model is to see them."""
    content: list[Content] = [ContentText(text=text), *images]
    return ChatMessageUser(content=content if images else text)


async def attached_images(history: History, setup: Setup) -> list[ContentImage]:
    """The task's images as data URIs; none where the model is told their paths only.

    Inspect sends no file that it has not been handed as data, and a host's path must not
    reach a log.
    """
    if setup.images == "path":
        return []
    if setup.image_source is None:
        raise UsageError("images='attached' needs an `image_source` that finds a task's files.")
    pictures = [item for item in history.attachments if _is_image(item)]
    return [
        ContentImage(image=await materialize_media(setup.image_source(item))) for item in pictures
    ]


def _is_image(item: Attachment) -> bool:
    kind, _ = guess_type(item.path)
    return kind.startswith("image/") if kind else item.type == "image"
