"""The ReAct protocol as text: the tool list, the system prompt, the turns of a history."""

import json
from collections.abc import Mapping, Sequence

from gta_bench.agents.arguments import distinct_tools
from gta_bench.agents.history import reply_text
from gta_bench.agents.prompts import render
from gta_bench.agents.published import PublishedTexts
from gta_bench.agents.react_parser import ACTION, ACTION_INPUT, FINAL_ANSWER, RESPONSE, THOUGHT
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec

UPSTREAM_TYPES: Mapping[ParameterType, str] = {
    "text": "STRING",
    "image": "STRING",
    "audio": "STRING",
    "video": "STRING",
    "file": "STRING",
    "int": "NUMBER",
    "float": "FLOAT",
    "bool": "BOOLEAN",
}


def upstream_system_prompt(
    tools: Sequence[ToolSpec], published: PublishedTexts | None = None
) -> str:
    """Upstream's form: tools and names as Python's repr, defaults not shown."""
    offered = distinct_tools(tools)
    words = render("react_upstream_arguments.md") if published is None else published.arguments
    listed = [_upstream_tool(tool, words) for tool in offered]
    names = [tool.name for tool in offered]
    if published is not None:
        return published.protocol.format(
            tool_description=listed,
            action_names=names,
            thought=THOUGHT,
            action=ACTION,
            action_input=ACTION_INPUT,
            response=RESPONSE,
            finish=FINAL_ANSWER,
        )
    return render("react_upstream.md", tools=repr(listed), names=repr(names))


def system_prompt(tools: Sequence[ToolSpec]) -> str:
    """Our form: one JSON object per tool, optional parameters with their defaults."""
    offered = distinct_tools(tools)
    listed = [json.dumps(_tool(tool), ensure_ascii=False) for tool in offered]
    names = ", ".join(tool.name for tool in offered)
    return render("react.md", tools="\n".join(listed), names=names)


def upstream_call_text(turn: CallTurn) -> str:
    """A call as upstream shows it in a history: no thought, no blanks, ASCII only."""
    arguments = json.dumps(dict(turn.call.arguments))
    return f"{ACTION}{turn.call.name}\n{ACTION_INPUT}{arguments}"


def call_text(turn: CallTurn) -> str:
    """A call in the form that the prompt asks for; a thought only where there is one."""
    arguments = json.dumps(dict(turn.call.arguments), ensure_ascii=False)
    lines = [f"{ACTION} {turn.call.name}", f"{ACTION_INPUT} {arguments}"]
    return "\n".join(_thought_lines(turn.thought) + lines)


def answer_text(turn: AnswerTurn) -> str:
    """An answer in the form that the prompt asks for."""
    return "\n".join([*_thought_lines(turn.thought), f"{FINAL_ANSWER} {turn.content}"])


def response_text(replies: tuple[ReplyTurn, ...]) -> str:
    """A tool's result behind its marker."""
    return f"{RESPONSE} {reply_text(replies)}"


def _thought_lines(thought: str | None) -> list[str]:
    return [f"{THOUGHT} {thought.strip()}"] if thought and thought.strip() else []


def _upstream_tool(tool: ToolSpec, arguments: str) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": [
            {
                "name": parameter.name,
                "description": parameter.description,
                "type": UPSTREAM_TYPES[parameter.type],
            }
            for parameter in tool.inputs
        ],
        "required": [parameter.name for parameter in tool.inputs if not parameter.optional],
        "parameter_description": arguments,
    }


def _tool(tool: ToolSpec) -> dict[str, object]:
    parameters = {parameter.name: _parameter(parameter) for parameter in tool.inputs}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _parameter(parameter: Parameter) -> dict[str, object]:
    shown: dict[str, object] = {"type": parameter.type}
    if parameter.description:
        shown["description"] = parameter.description
    if parameter.filetype:
        shown["filetype"] = parameter.filetype
    if parameter.optional:
        shown |= {"optional": True, "default": parameter.default}
    return shown
