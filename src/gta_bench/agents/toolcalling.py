"""The default agent: the provider's native tool calls."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    ModelOutput,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParam, ToolParams
from inspect_ai.util import JSONType

from gta_bench.agents.arguments import ARGS_ERROR, checked_call, distinct_tools, failed_call
from gta_bench.agents.contract import Decide, Decision, Setup
from gta_bench.agents.dialogue import call_id
from gta_bench.agents.history import History, merge_replies, reply_text
from gta_bench.agents.messages import (
    ask_model,
    attached_images,
    chosen_config,
    chosen_model,
    opening_message,
)
from gta_bench.agents.prefix import Prefix, not_thinking, prefix_for
from gta_bench.agents.prompts import render
from gta_bench.agents.stops import TOLD, read_stop, reply_words, stopped
from gta_bench.agents.text_calls import holds_call
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import FILE_TYPES, Parameter, ParameterType, ToolSpec

JSON_TYPES: Mapping[ParameterType, JSONType] = {
    "text": "string",
    "image": "string",
    "audio": "string",
    "video": "string",
    "file": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
}
# Inspect keeps the text that it could not parse only inside this message.
_PARSE_ERROR = re.compile(
    r"Error parsing the following tool call arguments:\n\n(?P<raw>.*)\n\nError details: .*",
    re.DOTALL,
)


def toolcalling(setup: Setup) -> Decide:
    """Offers the tools natively; all calls of a reply are its decision."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        model = chosen_model(setup)
        config = model.config.merge(chosen_config(setup))
        prefix = None if history.messages else prefix_for(str(model), config)
        images = await attached_images(history, setup)
        messages = toolcalling_messages(history, images, prefix)
        if prefix is not None and prefix.thinking_off and _has_calls(messages):
            model = not_thinking(model)
        infos = [tool_info(tool) for tool in distinct_tools(tools)]
        output = await ask_model(replace(setup, model=model), messages, infos)
        return read_output(output, tools)

    return decide


def read_output(output: ModelOutput, tools: Sequence[ToolSpec]) -> Decision:
    """What a reply comes to: its calls whatever it ended with, else its text."""
    stop, calls = read_stop(output), output.message.tool_calls or []
    if stop in ("context", "refused", "malformed call") or (stop is not None and not calls):
        return stopped(output, stop)
    if calls:
        steps = [_call_step(call, tools) for call in calls]
        if stop == "cut off":  # the last call may be half of one
            last = steps[-1]
            steps[-1] = failed_call(last.name, last.arguments, ARGS_ERROR, TOLD[stop])
        return Decision(steps[0], output, more=tuple(steps[1:]), stop=stop)
    text = reply_words(output)
    if holds_call(text, tools):
        return stopped(output, "call as text")
    return Decision(AnswerStep(content=text), output)


def tool_info(tool: ToolSpec) -> ToolInfo:
    """A tool as Inspect offers it to any provider."""
    named = [(parameter.name, parameter) for parameter in tool.inputs if parameter.name]
    return ToolInfo(
        name=tool.name,
        description=tool.description or tool.name,
        parameters=ToolParams(
            properties={name: _param(parameter) for name, parameter in named},
            required=[name for name, parameter in named if not parameter.optional],
        ),
    )


def toolcalling_messages(
    history: History, images: Sequence[ContentImage] = (), prefix: Prefix | None = None
) -> list[ChatMessage]:
    """System prompt, files and request, then the dialogue as the provider gave it.

    Where nobody kept its messages, as in step mode, they are made from the turns.
    """
    told = list(history.messages) or turn_messages(history, prefix)
    system = ChatMessageSystem(content=render("toolcalling.md"))
    request, *rest = told
    return [system, opening_message(history, request.text, images), *rest]


def turn_messages(history: History, prefix: Prefix | None = None) -> list[ChatMessage]:
    """The turns of a history as native messages, each result tied to its call by an id."""
    messages: list[ChatMessage] = []
    calls = 0
    for said in merge_replies(history):
        if isinstance(said, tuple):
            text, tool = reply_text(said), said[0].tool
            result = ChatMessageTool(content=text, tool_call_id=call_id(calls), function=tool)
            messages.append(result)
        elif isinstance(said, UserTurn):
            messages.append(ChatMessageUser(content=said.content))
        elif isinstance(said, CallTurn):
            calls += 1
            messages.append(_call_message(said, call_id(calls), prefix))
        elif isinstance(said, AnswerTurn):
            messages.append(ChatMessageAssistant(content=said.content))
        else:
            messages.append(ChatMessageAssistant(content=said.reply))
            messages.append(ChatMessageUser(content=said.told))
    return messages


def _call_message(turn: CallTurn, id: str, prefix: Prefix | None) -> ChatMessageAssistant:
    """No text is not an empty text, which some providers are shown as words."""
    words = turn.content or turn.thought
    content: list[Content] = [ContentText(text=words)] if words else []
    if prefix is not None and prefix.reasoning is not None:
        content.insert(0, prefix.reasoning)
    made = ToolCall(id=id, function=turn.call.name, arguments=dict(turn.call.arguments))
    return ChatMessageAssistant(content=content, tool_calls=[made])


def _has_calls(messages: Sequence[ChatMessage]) -> bool:
    return any(isinstance(message, ChatMessageTool) for message in messages)


def _call_step(call: ToolCall, tools: Sequence[ToolSpec]) -> CallStep:
    if call.parse_error is None:
        return checked_call(call.function, call.arguments, tools)
    told = _PARSE_ERROR.fullmatch(call.parse_error)
    raw = told["raw"] if told else call.parse_error
    return failed_call(call.function, raw, ARGS_ERROR, call.parse_error)


def _param(parameter: Parameter) -> ToolParam:
    return ToolParam(
        type=JSON_TYPES[parameter.type],
        description=_description(parameter),
        default=parameter.default if parameter.optional else None,
    )


def _description(parameter: Parameter) -> str:
    """All that the schema's type cannot say: which kind of file, and what leaving it out means."""
    parts = [parameter.description.rstrip(".")] if parameter.description else []
    if parameter.type in FILE_TYPES:
        article = "an" if parameter.type in ("image", "audio") else "a"
        kind = "file" if parameter.type == "file" else f"{parameter.type} file"
        parts.append(f"Path of {article} {kind}")
    if parameter.filetype:
        parts.append(f"File type: {parameter.filetype}")
    if parameter.optional:
        default = "" if parameter.default is None else f", by default {parameter.default!r}"
        parts.append(f"Optional{default}")
    return ". ".join(parts) + "." if parts else parameter.name or ""
