"""What the agents' chats have in common: the model, the opening message, attached images."""

from collections.abc import Sequence
from mimetypes import guess_type

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
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
from gta_bench.agents.history import History, files_text
from gta_bench.agents.provider import is_template_error, odd_server, watch_provider
from gta_bench.agents.stops import broken_reply, is_broken
from gta_bench.errors import (
    EnvironmentProblem,
    RequestRefused,
    UsageError,
    fault_status,
    fault_words,
)
from gta_bench.records.files import Attachment

# Statuses by which a provider refuses what is in a request.
_REFUSED = (400, 413, 422)


def chosen_model(setup: Setup) -> Model:
    """The model of the setup, or the one that Inspect is evaluating."""
    return setup.model if setup.model is not None else get_model()


async def ask_model(
    setup: Setup, messages: list[ChatMessage], tools: Sequence[ToolInfo] = ()
) -> ModelOutput:
    """The model's output; one that the provider broke off is asked for once more.

    A dialogue that outgrew the window is an output, too; what gives no output at all is told with
    its place, and the unit has no score.
    """
    model, config = chosen_model(setup), chosen_config(setup)
    output = await _generate(model, messages, tools, config)
    if is_broken(output):
        output = await _generate(model, messages, tools, config)
    if is_broken(output):
        raise broken_reply(output)
    return output


async def _generate(
    model: Model, messages: list[ChatMessage], tools: Sequence[ToolInfo], config: GenerateConfig
) -> ModelOutput:
    watch_provider(model.api)
    where = model.api.base_url or model.name
    try:
        output = await model.generate(messages, tools=list(tools), config=config)
    except Exception as exc:
        told = _explain(exc, where, messages)
        if told is None:
            raise
        raise told from exc
    if output.empty:
        raise EnvironmentProblem(
            f"A reply of the model has no choices ({where}). The same command runs this unit again."
        )
    return output


def _explain(
    raised: Exception, where: str, messages: Sequence[ChatMessage]
) -> EnvironmentProblem | None:
    """What is told of a request that failed; None where the exception says it all."""
    words = fault_words(raised)
    if is_template_error(words):
        return RequestRefused(
            f"The server's chat template refuses the dialogue: {words} ({where}). Start the "
            "server with the model's own template for tools, or use --agent react."
        )
    refused = fault_status(raised) in _REFUSED
    if refused and (twice := _id_given_twice(messages)) is not None:
        sent = f"several calls of one reply with the id {twice!r}, and refuses to have them back"
        return odd_server(sent, where)
    if refused:
        return RequestRefused(
            f"The provider refused a request that our agent composed: {words} ({where}). "
            "Correct the model's options if it names one; otherwise this is a bug of "
            "gta-bench, to be reported with the log."
        )
    if type(raised).__name__ == "RetryError":  # which names nothing itself
        return EnvironmentProblem(f"The model did not reply: {words} ({where})")
    return None


def _id_given_twice(messages: Sequence[ChatMessage]) -> str | None:
    for message in messages:
        calls = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
        ids = [call.id for call in calls]
        if len(set(ids)) < len(ids):
            return next(id for id in ids if ids.count(id) > 1)
    return None


def chosen_config(setup: Setup) -> GenerateConfig:
    """What the setup asks of the model beyond Inspect's own configuration."""
    return setup.config if setup.config is not None else GenerateConfig()


def user_message(text: str, images: Sequence[ContentImage]) -> ChatMessageUser:
    """What the user says, with the pictures where the model is to see them."""
    content: list[Content] = [ContentText(text=text), *images]
    return ChatMessageUser(content=content if images else text)


def opening_message(
    history: History, request: str, images: Sequence[ContentImage]
) -> ChatMessageUser:
    """Files and request in one message: two in a row break templates that alternate roles."""
    said = (files_text(history.attachments), request)
    return user_message("\n\n".join(filter(None, said)), images)


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
