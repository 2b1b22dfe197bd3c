"""The agents that use the ReAct text protocol: `react` and `react-upstream`."""

import json
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

from gta_bench.agents import replies
from gta_bench.agents.calling import deduplicate_tools
from gta_bench.agents.contract import (
    Decide,
    Decision,
    History,
    MergedTurn,
    Setup,
    files_text,
    merge_replies,
    reply_text,
)
from gta_bench.agents.prompts import render
from gta_bench.agents.published import CHOICES, SAMPLING, PublishedTexts
from gta_bench.agents.react_parser import (
    ACTION,
    ACTION_INPUT,
    FINAL_ANSWER,
    RESPONSE,
    THOUGHT,
    cut_invented,
    parse_tolerant,
    parse_upstream,
    read_upstream_thought,
)
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.steps import AnswerStep
from gta_bench.records.tools import Parameter, ToolSpec

ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
UPSTREAM_TYPES = {"int": "NUMBER", "float": "FLOAT", "bool": "BOOLEAN"}  # all others: STRING


class Message(NamedTuple):
    """One message; `request` marks the request of the user."""

    role: Literal["system", "user", "assistant"]
    text: str
    request: bool = False


def react(setup: Setup) -> Decide:
    """Make the agent with a tolerant parser and one way to show a history."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        messages = make_react_messages(history, tools, await replies.attach_images(history, setup))
        output = await replies.ask_model(setup, messages)
        stop, step = replies.read_stop(output), parse_tolerant(output.completion, tools)
        if stop in replies.FINAL or (stop is not None and isinstance(step, AnswerStep)):
            return replies.make_stop_decision(output, stop)
        return Decision(step, output, stop=stop)

    return decide


def react_upstream(setup: Setup) -> Decide:
    """Make the agent with the published protocol: its history, its last message and its parser."""
    setup = add_published_sampling(setup)

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        images = await replies.attach_images(history, setup)
        messages = make_upstream_messages(history, tools, images, setup.published)
        output = await replies.ask_model(setup, messages)
        stop = replies.read_stop(output)
        if stop == "context":  # the text is the engine's, not a reply
            return replies.make_stop_decision(output, stop)
        # Upstream's model client strips the text before the parser gets it.
        reply = output.completion.strip()
        files = history.files | setup.known_files
        step = parse_upstream(reply, tools, files.__contains__)
        return Decision(step, output, thought=read_upstream_thought(reply), stop=stop)

    return decide


def add_published_sampling(setup: Setup) -> Setup:
    """Add the published sampling to the published texts; the model's own options have priority."""
    if setup.published is None:
        return setup
    own = replies.pick_model(setup).config
    unset = {name: value for name, value in SAMPLING.items() if getattr(own, name) is None}
    config = GenerateConfig(num_choices=CHOICES, **unset).merge(setup.config or GenerateConfig())
    return replace(setup, config=config)


def make_react_messages(
    history: History, tools: Sequence[ToolSpec], images: Sequence[ContentImage] = ()
) -> list[ChatMessage]:
    """Return the system prompt, files and request, then the turns.

    Results are user messages after `Response:`. They are not system messages, because several
    providers move those to the top of the chat.
    """
    request, *rest = merge_replies(history)
    assert isinstance(request, UserTurn), "a dialogue begins with the user's request"
    turns = (message for turn in rest for message in _turn_messages(turn, tools))
    return [
        ChatMessageSystem(content=make_system_prompt(tools)),
        replies.make_opening_message(history, request.content, images),
        *(ROLES[message.role](content=message.text) for message in turns),
    ]


def _turn_messages(turn: MergedTurn, tools: Sequence[ToolSpec]) -> list[Message]:
    if isinstance(turn, tuple):
        return [Message("user", f"{RESPONSE} {reply_text(turn)}")]
    if isinstance(turn, UserTurn):
        return [Message("user", turn.content)]
    if isinstance(turn, CallTurn):
        said = cut_invented(turn.content or "", tools)
        return [Message("assistant", said or format_call(turn))]
    if isinstance(turn, AnswerTurn):
        answer = f"{FINAL_ANSWER} {turn.content}"
        return [Message("assistant", "\n".join([*_thought_lines(turn.thought), answer]))]
    said = cut_invented(turn.reply, tools)
    return [Message("assistant", said), Message("user", f"{RESPONSE} {turn.feedback}")]


def make_upstream_messages(
    history: History,
    tools: Sequence[ToolSpec],
    images: Sequence[ContentImage] = (),
    published: PublishedTexts | None = None,
) -> list[ChatMessage]:
    """Return upstream's chat, with the images in the first request."""
    messages: list[ChatMessage] = []
    for message in make_upstream_chat(history, tools, published):
        if message.request:
            messages.append(replies.make_user_message(message.text, images))
            images = ()
        else:
            messages.append(ROLES[message.role](content=message.text))
    return messages


def make_upstream_chat(
    history: History, tools: Sequence[ToolSpec], published: PublishedTexts | None = None
) -> list[Message]:
    """Return upstream's chat; roles, markers and the last message depend on the mode."""
    step_mode = history.mode == "step"
    messages = [Message("system", make_upstream_system_prompt(tools, published))]
    files = files_text(history.attachments, published)
    if files is not None:
        messages.append(Message("system" if step_mode else "user", files))
    for turn in merge_replies(history):
        messages += _upstream_turn(turn, step_mode=step_mode)
    if history.last and step_mode:
        # Kept for parity: also where the reference's last turn is a call (16 tasks).
        own = render("answer_without_tools.md")
        text = own if published is None else published.answer_without_tools
        messages.append(Message("user", text))
    elif history.last:
        text = render("answer_now.md") if published is None else published.answer_now
        messages.append(Message("system", text))
    return messages


def _upstream_turn(turn: MergedTurn, *, step_mode: bool) -> list[Message]:
    if isinstance(turn, tuple):
        text = reply_text(turn)
        return [Message("system", text if step_mode else f"{RESPONSE}{text}\n")]
    if isinstance(turn, UserTurn):
        return [Message("user", turn.content, request=True)]
    if isinstance(turn, CallTurn):
        own_text = None if step_mode else turn.content
        return [Message("assistant", own_text or format_upstream_call(turn))]
    if isinstance(turn, AnswerTurn):
        return [Message("assistant", turn.content)]
    return [Message("assistant", turn.reply), Message("system", f"{RESPONSE}{turn.feedback}\n")]


def make_upstream_system_prompt(
    tools: Sequence[ToolSpec], published: PublishedTexts | None = None
) -> str:
    """Return the system prompt in upstream's form: Python reprs, without defaults."""
    own = render("react_upstream_arguments.md")
    arguments = own if published is None else published.arguments
    offered = deduplicate_tools(tools)
    listed = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": [
                {
                    "name": parameter.name,
                    "description": parameter.description,
                    "type": UPSTREAM_TYPES.get(parameter.type, "STRING"),
                }
                for parameter in tool.inputs
            ],
            "required": [parameter.name for parameter in tool.inputs if not parameter.optional],
            "parameter_description": arguments,
        }
        for tool in offered
    ]
    names = [tool.name for tool in offered]
    if published is None:
        return render("react_upstream.md", tools=repr(listed), names=repr(names))
    return published.protocol.format(
        tool_description=listed,
        action_names=names,
        thought=THOUGHT,
        action=ACTION,
        action_input=ACTION_INPUT,
        response=RESPONSE,
        finish=FINAL_ANSWER,
    )


def make_system_prompt(tools: Sequence[ToolSpec]) -> str:
    """Return the system prompt in our form: one JSON object per tool, with defaults."""
    offered = deduplicate_tools(tools)
    listed = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": _describe_inputs(tool),
        }
        for tool in offered
    ]
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in listed)
    return render("react.md", tools=lines, names=", ".join(tool.name for tool in offered))


def _describe_inputs(tool: ToolSpec) -> object:
    if tool.served is not None:
        return dict(tool.served.input_schema)
    return {one.name: _describe_parameter(one) for one in tool.inputs}


def _describe_parameter(parameter: Parameter) -> dict[str, object]:
    shown: dict[str, object] = {"type": parameter.type}
    if parameter.description:
        shown["description"] = parameter.description
    if parameter.filetype:
        shown["filetype"] = parameter.filetype
    if parameter.optional:
        shown |= {"optional": True, "default": parameter.default}
    return shown


def format_upstream_call(turn: CallTurn) -> str:
    """Return a call as upstream shows it in a history: no thought, no blanks, ASCII only."""
    arguments = json.dumps(dict(turn.call.arguments))
    return f"{ACTION}{turn.call.name}\n{ACTION_INPUT}{arguments}"


def format_call(turn: CallTurn) -> str:
    """Return a call in the form that the prompt asks for, with its thought if it has one."""
    arguments = json.dumps(dict(turn.call.arguments), ensure_ascii=False)
    lines = [f"{ACTION} {turn.call.name}", f"{ACTION_INPUT} {arguments}"]
    return "\n".join(_thought_lines(turn.thought) + lines)


def _thought_lines(thought: str | None) -> list[str]:
    return [f"{THOUGHT} {thought.strip()}"] if thought and thought.strip() else []
