"""What a system did, step by step: the one form in which traces are scored."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.tools import ParameterType


class StepError(Record):
    """Why a call did not give a result; `type` is upstream's word where it has one."""

    type: str
    message: str = ""


class CallStep(Record):
    """A tool call; `arguments` is the raw text where it could not be read as an object.

    Arguments that are null have no key in a log, because Inspect writes records without nulls.
    `others` counts the further calls of the same reply where only the first one is a step, as in
    step mode; no metric reads it.
    """

    step: Literal["call"] = "call"
    name: str
    arguments: JsonValue = None
    error: StepError | None = None
    others: int = 0


class AnswerStep(Record):
    """A text for the user; `error` marks upstream's crash texts that pose as answers."""

    step: Literal["answer"] = "answer"
    content: str
    error: StepError | None = None


class ThoughtStep(Record):
    """A thought that upstream records as a step of its own."""

    step: Literal["thought"] = "thought"
    content: str


class MalformedStep(Record):
    """A reply that is neither a call nor an answer: empty, or against the protocol."""

    step: Literal["malformed"] = "malformed"
    content: str
    reason: str


class ReplyPart(Record):
    """A piece of a tool's result; for files `content` is a path."""

    type: ParameterType
    content: str


class ReplyStep(Record):
    """What a tool gave back; no parts where the call failed."""

    step: Literal["reply"] = "reply"
    parts: tuple[ReplyPart, ...] = ()


PredictedStep = Annotated[
    CallStep | AnswerStep | ThoughtStep | MalformedStep | ReplyStep, Field(discriminator="step")
]
Trace = tuple[PredictedStep, ...]
