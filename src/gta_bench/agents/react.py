"""The agents that speak the ReAct text protocol: `react` and `react-upstream`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    GenerateConfig,
)

from gta_bench.agents.contract import Decide, Decision, Setup
from gta_bench.agents.history import History, Said, files_text, merge_replies, reply_text
from gta_bench.agents.messages import (
    ask_model,
    attached_images,
    chosen_model,
    opening_message,
    user_message,
)
from gta_bench.agents.prompts import render
from gta_bench.agents.published import CHOICES, SAMPLING, PublishedTexts
from gta_bench.agents.react_parser import RESPONSE, parse_upstream, upstream_thought
from gta_bench.agents.react_text import (
    answer_text,
    call_text,
    response_text,
    system_prompt,
    upstream_call_text,
    upstream_system_prompt,
)
from gta_bench.agents.react_tolerant import parse_tolerant
from gta_bench.agents.stops import FINAL, read_stop, stopped
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.steps import AnswerStep
from gta_bench.records.tools import ToolSpec


class Message(NamedTuple):
    """One message; `request` marks what the user asks for."""

    role: Literal["system", "user", "assistant"]
    text: str
    request: bool = False


def upstream_chat(
    history: History, tools: Sequence[ToolSpec], published: PublishedTexts | None = None
) -> list[Message]:
    """Upstream's chat, which differs between the modes in roles, markers and last message."""
    step_mode = history.mode == "step"
    messages = [Message("system", upstream_system_prompt(tools, published))]
    files = files_text(history.attachments, published)
    if files is not None:
        messages.append(Message("system" if step_mode else "user", files))
    for said in merge_replies(history):
        messages += _turn(said, step_mode=step_mode)
    if history.last:
        # Kept for parity: in step mode also where the reference's last turn is a call (16 tasks).
        messages.append(_last_message(published, step_mode=step_mode))
    return messages


def _last_message(published: PublishedTexts | None, *, step_mode: bool) -> Message:
    if step_mode:
        own = render("answer_without_tools.md")
        return Message("user", own if published is None else published.answer_without_tools)
    own = render("answer_now.md")
    return Message("system", own if published is None else published.answer_now)


def _turn(said: Said, *, step_mode: bool) -> list[Message]:
    if isinstance(said, tuple):
        text = reply_text(said)
        return [Message("system", text if step_mode else f"{RESPONSE}{text}\n")]
    if isinstance(said, UserTurn):
        return [Message("user", said.content, request=True)]
    if isinstance(said, CallTurn):
        own_words = None if step_mode else said.content
        return [Message("assistant", own_words or upstream_call_text(said))]
    if isinstance(said, AnswerTurn):
        return [Message("assistant", said.content)]
    return [Message("assistant", said.reply), Message("system", f"{RESPONSE}{said.told}\n")]


ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def react(setup: Setup) -> Decide:
    """The protocol with a tolerant parser and one way to show a history."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        messages = react_messages(history, tools, await attached_images(history, setup))
        output = await ask_model(setup, messages)
        stop, step = read_stop(output), parse_tolerant(output.completion, tools)
        if stop in FINAL or (stop is not None and isinstance(step, AnswerStep)):
            return stopped(output, stop)
        return Decision(step, output, stop=stop)

    return decide


def react_upstream(setup: Setup) -> Decide:
    """The published protocol: its history, its last message and its parser."""
    setup = published_setup(setup)

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        images = await attached_images(history, setup)
        messages = upstream_messages(history, tools, images, setup.published)
        output = await ask_model(setup, messages)
        stop = read_stop(output)
        if stop == "context":  # the engine's words about it are no reply
            return stopped(output, stop)
        # Upstream's model client strips what the parser gets.
        reply = output.completion.strip()
        files = history.files | setup.known_files
        step = parse_upstream(reply, tools, files.__contains__)
        return Decision(step, output, thought=upstream_thought(reply), stop=stop)

    return decide


def react_messages(
    history: History, tools: Sequence[ToolSpec], images: Sequence[ContentImage] = ()
) -> list[ChatMessage]:
    """System prompt, files and request, then the turns.

    Results come from the user, behind `Response:`. Not as system messages: several providers move
    those to the top of the chat.
    """
    messages: list[ChatMessage] = [ChatMessageSystem(content=system_prompt(tools))]
    request, *told = merge_replies(history)
    assert isinstance(request, UserTurn), "a dialogue begins with what the user asks"
    messages.append(opening_message(history, request.content, images))
    for said in told:
        messages += _react_turn(said)
    return messages


def published_setup(setup: Setup) -> Setup:
    """With the published words also the published sampling, where the model's own says nothing."""
    if setup.published is None:
        return setup
    own = chosen_model(setup).config
    unset = {name: value for name, value in SAMPLING.items() if getattr(own, name) is None}
    config = GenerateConfig(num_choices=CHOICES, **unset).merge(setup.config or GenerateConfig())
    return replace(setup, config=config)


def upstream_messages(
    history: History,
    tools: Sequence[ToolSpec],
    images: Sequence[ContentImage] = (),
    published: PublishedTexts | None = None,
) -> list[ChatMessage]:
    """Upstream's chat; pictures go with the first request."""
    messages: list[ChatMessage] = []
    for message in upstream_chat(history, tools, published):
        if message.request:
            messages.append(user_message(message.text, images))
            images = ()
        else:
            messages.append(ROLES[message.role](content=message.text))
    return messages


def _react_turn(said: Said) -> list[ChatMessage]:
    if isinstance(said, tuple):
        return [ChatMessageUser(content=response_text(said))]
    if isinstance(said, UserTurn):
        return [ChatMessageUser(content=said.content)]
    if isinstance(said, CallTurn):
        return [ChatMessageAssistant(content=said.content or call_text(said))]
    if isinstance(said, AnswerTurn):
        return [ChatMessageAssistant(content=answer_text(said))]
    return [
        ChatMessageAssistant(content=said.reply),
        ChatMessageUser(content=f"{RESPONSE} {said.told}"),
    ]
