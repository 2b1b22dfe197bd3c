"""Turns of a reference dialogue, by the user, the assistant and the tools."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.tools import ParameterType


class ToolCall(Record):
    """A tool's name and the arguments of the call."""

    name: str
    arguments: Mapping[str, JsonValue] = {}


class UserTurn(Record):
    """A message of the user."""

    turn: Literal["user"] = "user"
    content: str


class CallTurn(Record):
    """An assistant step that calls exactly one tool."""

    turn: Literal["call"] = "call"
    call: ToolCall
    thought: str | None = None
    content: str | None = None


class AnswerTurn(Record):
    """An assistant step that answers the user."""

    turn: Literal["answer"] = "answer"
    content: str
    thought: str | None = None


class ReplyTurn(Record):
    """What a tool returned; for files, `content` is a portable path."""

    turn: Literal["reply"] = "reply"
    tool: str
    type: ParameterType
    content: str


Turn = Annotated[UserTurn | CallTurn | AnswerTurn | ReplyTurn, Field(discriminator="turn")]
Step = CallTurn | AnswerTurn
