"""The default agent: the provider's native tool calls."""

import re
from collections.abc import Mapping, Sequence

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ModelOutput,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParam, ToolParams
from inspect_ai.util import JSONType

from gta_bench.agents.arguments import ARGS_ERROR, checked_call, distinct_tools, failed_call
from gta_bench.agents.contract import Decide, Decision, Setup
from gta_bench.agents.files import files_text
from gta_bench.agents.history import History, RefusedTurn, merge_replies, reply_text
from gta_bench.agents.messages import ask_model, attached_images, user_message
from gta_bench.agents.prompts import render
from gta_bench.agents.replies import clean_text, without_thinking
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
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
    """Offers the tools natively; the first call of a reply is the step."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        messages = toolcalling_messages(history, await attached_images(history, setup))
        infos = [tool_info(tool) for tool in distinct_tools(tools)]
        output = await ask_model(setup, messages, infos)
        return read_output(output, tools)

    return decide


def read_output(output: ModelOutput, tools: Sequence[ToolSpec]) -> Decision:
    """The step of a reply: its first call, else its text; neither is malformed."""
    calls = [] if output.empty else output.message.tool_calls or []
    if calls:
        return Decision(step=_call_step(calls[0], tools), output=output, calls=len(calls))
    text = without_thinking(clean_text(output.completion)).strip()
    if not text:
        return Decision(
            step=MalformedStep(content=clean_text(output.completion), reason="the reply is empty"),
            output=output,
        )
    return Decision(step=AnswerStep(content=text), output=output)


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
    history: History, images: Sequence[ContentImage] = ()
) -> list[ChatMessage]:
    """System prompt, files, then the turns, each result tied to its call by an id."""
    messages: list[ChatMessage] = [ChatMessageSystem(content=render("toolcalling.md"))]
    files = files_text(history.attachments)
    if files is not None:
        messages.append(ChatMessageUser(content=files))
    calls = 0
    for said in merge_replies(history):
        if isinstance(said, tuple):
            messages.append(_tool_message(reply_text(said), tool=said[0].tool, call=calls))
        elif isinstance(said, UserTurn):
            messages.append(user_message(said.content, images))
            images = ()
        elif isinstance(said, CallTurn):
            calls += 1
            messages.append(_call_message(said, call=calls))
        elif isinstance(said, AnswerTurn):
            messages.append(ChatMessageAssistant(content=said.content))
        else:
            messages += _refused_messages(said)
    return messages


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


def _call_id(call: int) -> str:
    return f"call_{call}"


def _call_message(turn: CallTurn, *, call: int) -> ChatMessageAssistant:
    made = ToolCall(id=_call_id(call), function=turn.call.name, arguments=dict(turn.call.arguments))
    return ChatMessageAssistant(content=turn.content or turn.thought or "", tool_calls=[made])


def _tool_message(text: str, *, tool: str, call: int) -> ChatMessageTool:
    return ChatMessageTool(content=text, tool_call_id=_call_id(call), function=tool)


def _refused_messages(turn: RefusedTurn) -> list[ChatMessage]:
    return [ChatMessageAssistant(content=turn.reply), ChatMessageUser(content=turn.told)]
