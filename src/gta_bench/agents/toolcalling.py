"""The default agent, which uses the provider's native tool calls."""

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
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParam, ToolParams
from inspect_ai.util import JSONType
from pydantic import Field, JsonValue, PrivateAttr, ValidationError, model_serializer

from gta_bench.agents import replies
from gta_bench.agents.calling import ARGS_ERROR, deduplicate_tools, read_call, reject_call
from gta_bench.agents.contract import Decide, Decision, History, Setup, merge_replies, reply_text
from gta_bench.agents.loop import IS_FEEDBACK, make_call_id, note_steps
from gta_bench.agents.prompts import render
from gta_bench.agents.provider import Prefix, disable_thinking, find_prefix
from gta_bench.agents.text_calls import ends_with_call
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep, ThoughtStep
from gta_bench.records.tools import FILE_TYPES, Parameter, ParameterType, ToolSpec

# All other types are strings: texts, and files as their paths.
JSON_TYPES: Mapping[ParameterType, JSONType]
JSON_TYPES = {"int": "integer", "float": "number", "bool": "boolean"}
# Inspect keeps text that it could not parse only in this message.
_PARSE_ERROR = re.compile(
    r"Error parsing the following tool call arguments:\n\n(?P<raw>.*)\n\nError details: .*",
    re.DOTALL,
)


def toolcalling(setup: Setup) -> Decide:
    """Make the agent that offers the tools natively; a decision has all calls of a reply."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        model = replies.pick_model(setup)
        config = model.config.merge(setup.config or GenerateConfig())
        prefix = None if history.messages else find_prefix(str(model), config)
        images = await replies.attach_images(history, setup)
        messages = make_toolcalling_messages(history, images, prefix)
        has_calls = any(isinstance(message, ChatMessageTool) for message in messages)
        if prefix is not None and prefix.thinking_off and has_calls:
            model = disable_thinking(model)
        infos = [make_tool_info(tool) for tool in deduplicate_tools(tools)]
        output = await replies.ask_model(replace(setup, model=model), messages, infos)
        return read_output(output, tools)

    return decide


def read_output(output: ModelOutput, tools: Sequence[ToolSpec]) -> Decision:
    """Return the decision of a reply: its calls if it has any, else its text."""
    stop, calls = replies.read_stop(output), output.message.tool_calls or []
    if stop in ("context", "refused", "malformed call") or (stop is not None and not calls):
        return replies.make_stop_decision(output, stop)
    if calls:
        steps = [_call_step(call, tools) for call in calls]
        if stop == "cut off":  # the last call may be half of one
            last = steps[-1]
            steps[-1] = reject_call(last.name, last.arguments, ARGS_ERROR, replies.FEEDBACK[stop])
        return Decision(steps[0], output, more=tuple(steps[1:]), stop=stop)
    text = replies.read_answer(output)
    if ends_with_call(text, tools):
        return replies.make_stop_decision(output, "call as text")
    return Decision(AnswerStep(content=text), output)


class _ServedParams(ToolParams):
    """A tool server's own schema, which Inspect's fields could not express."""

    _schema: dict[str, JsonValue] = PrivateAttr(default_factory=dict)

    @model_serializer
    def _dump(self) -> dict[str, JsonValue]:
        return self._schema


class _ServedInfo(ToolInfo):
    """A tool of a tool server, with its schema unchanged."""

    parameters: _ServedParams = Field(default_factory=_ServedParams)


def _make_served_info(tool: ToolSpec, schema: Mapping[str, JsonValue]) -> ToolInfo:
    """Return the tool with its own schema.

    The fields of Inspect have what they can express of it, for the harnesses that Inspect drives.
    """
    properties = schema.get("properties")
    about = properties if isinstance(properties, dict) else {}
    params = _ServedParams(
        properties={one.name: _make_param(one, about[one.name]) for one in tool.inputs if one.name},
        required=[one.name for one in tool.inputs if one.name and not one.optional],
    )
    params._schema = dict(schema)
    description = tool.description or tool.name
    return _ServedInfo(name=tool.name, description=description, parameters=params)


def _make_param(parameter: Parameter, schema: JsonValue) -> ToolParam:
    try:
        found = ToolParam.model_validate(schema)
    except ValidationError:
        found = ToolParam()
    # Inspect refuses tools with parameters that have no description.
    return found.model_copy(update={"description": found.description or parameter.name})


def make_tool_info(tool: ToolSpec) -> ToolInfo:
    """Return a tool as Inspect offers it to any provider."""
    if tool.served is not None:
        return _make_served_info(tool, tool.served.input_schema)
    named = [(parameter.name, parameter) for parameter in tool.inputs if parameter.name]
    return ToolInfo(
        name=tool.name,
        description=tool.description or tool.name,
        parameters=ToolParams(
            properties={
                name: ToolParam(
                    type=JSON_TYPES.get(parameter.type, "string"),
                    description=_describe(parameter),
                    default=parameter.default if parameter.optional else None,
                )
                for name, parameter in named
            },
            required=[name for name, parameter in named if not parameter.optional],
        ),
    )


def make_toolcalling_messages(
    history: History, images: Sequence[ContentImage] = (), prefix: Prefix | None = None
) -> list[ChatMessage]:
    """Return the system prompt, files and request, then the dialogue as the provider sent it.

    If the history has no messages, as in step mode, they are made from the turns.
    """
    system = ChatMessageSystem(content=render("toolcalling.md"))
    request, *rest = history.messages or make_turn_messages(history, prefix)
    return [system, replies.make_opening_message(history, request.text, images), *rest]


def make_turn_messages(history: History, prefix: Prefix | None = None) -> list[ChatMessage]:
    """Return the turns of a history as native messages; ids connect results with calls."""
    messages: list[ChatMessage] = []
    calls = 0
    for turn in merge_replies(history):
        if isinstance(turn, tuple):
            text, tool = reply_text(turn), turn[0].tool
            result = ChatMessageTool(content=text, tool_call_id=make_call_id(calls), function=tool)
            messages.append(result)
        elif isinstance(turn, UserTurn):
            messages.append(ChatMessageUser(content=turn.content))
        elif isinstance(turn, CallTurn):
            calls += 1
            messages.append(_call_message(turn, make_call_id(calls), prefix))
        elif isinstance(turn, AnswerTurn):
            messages.append(ChatMessageAssistant(content=turn.content))
        else:
            messages.append(ChatMessageAssistant(content=turn.reply))
            messages.append(ChatMessageUser(content=turn.feedback))
    return messages


def make_earlier_messages(history: History, steps: Sequence[PredictedStep]) -> list[ChatMessage]:
    """Return a dialogue that an earlier version stored as turns and steps as messages.

    Each message notes the steps that it represents in the trace, so the dialogue can continue.
    """
    left, made = list(steps), list[PredictedStep]()
    messages: list[ChatMessage] = []
    answered = True
    for message in make_turn_messages(history):
        if isinstance(message, ChatMessageAssistant):
            noted: list[PredictedStep] = []
            while left and isinstance(left[0], ThoughtStep):
                noted.append(left.pop(0))
            made = left[:1]
            del left[:1]
            if not message.tool_calls:
                noted += made
            refused = any(step.step in ("call", "malformed") for step in made)
            answered = bool(message.tool_calls) or not refused
            messages.append(note_steps(message, noted))
        elif isinstance(message, ChatMessageTool):
            messages.append(note_steps(message, [*made, *left[:1]]))
            del left[:1]
        elif isinstance(message, ChatMessageUser) and not answered:
            messages.append(message.model_copy(update={"metadata": {IS_FEEDBACK: True}}))
            answered = True
        else:
            messages.append(message)
    return messages


def _call_message(turn: CallTurn, id: str, prefix: Prefix | None) -> ChatMessageAssistant:
    """Return a call as a message; an empty text is left out, because some models would see it."""
    text = turn.content or turn.thought
    content: list[Content] = [ContentText(text=text)] if text else []
    if prefix is not None and prefix.reasoning is not None:
        content.insert(0, prefix.reasoning)
    made = ToolCall(id=id, function=turn.call.name, arguments=dict(turn.call.arguments))
    return ChatMessageAssistant(content=content, tool_calls=[made])


def _call_step(call: ToolCall, tools: Sequence[ToolSpec]) -> CallStep:
    if call.parse_error is None:
        return read_call(call.function, call.arguments, tools)
    found = _PARSE_ERROR.fullmatch(call.parse_error)
    raw = found["raw"] if found else call.parse_error
    return reject_call(call.function, raw, ARGS_ERROR, call.parse_error)


def _describe(parameter: Parameter) -> str:
    """Describe what the schema's type cannot: the kind of file, and the default."""
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
