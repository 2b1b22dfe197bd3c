"""Tool definitions: names, inputs and outputs."""

from typing import Literal

from pydantic import JsonValue

from gta_bench.records.base import Record

ParameterType = Literal["text", "image", "audio", "video", "file", "bool", "int", "float"]
FILE_TYPES: frozenset[ParameterType] = frozenset({"image", "audio", "video", "file"})


class Parameter(Record):
    """One input of a tool, or one of its outputs (outputs have no name)."""

    type: ParameterType
    name: str | None = None
    description: str | None = None
    optional: bool = False
    default: JsonValue = None
    filetype: str | None = None


class ToolSpec(Record):
    """A tool as it is offered to an agent."""

    name: str
    description: str = ""
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()

    def input(self, name: str) -> Parameter | None:
        """The input with that name, or None."""
        return next((parameter for parameter in self.inputs if parameter.name == name), None)
