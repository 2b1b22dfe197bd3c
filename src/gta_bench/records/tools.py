"""Tool definitions: names, inputs and outputs."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record

ParameterType = Literal["text", "image", "audio", "video", "file", "bool", "int", "float"]
FILE_TYPES: frozenset[ParameterType] = frozenset({"image", "audio", "video", "file"})


# Between the name of a tool server and the name of its tool: `files__read_file`.
SERVER_SEPARATOR: Final = "__"
# In a task's list, all tools of a server: `files__*`.
ALL_TOOLS: Final = f"{SERVER_SEPARATOR}*"


class Parameter(Record):
    """One input of a tool, or one of its outputs (outputs have no name)."""

    type: ParameterType
    name: str | None = None
    description: str | None = None
    optional: bool = False
    default: JsonValue = None
    filetype: str | None = None


class ServedTool(Record):
    """What a tool server says about one of its tools, unchanged."""

    server: str
    input_schema: Mapping[str, JsonValue]
    output_schema: Mapping[str, JsonValue] | None = None
    annotations: Mapping[str, JsonValue] | None = None


class ToolSpec(Record):
    """A tool as it is offered to an agent.

    `served` is set for the tools of a tool server: models and harnesses get its schema, and
    `inputs` is a summary of it.
    """

    name: str
    description: str = ""
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    served: ServedTool | None = Field(default=None, exclude_if=lambda served: served is None)

    def input(self, name: str) -> Parameter | None:
        """The input with that name, or None."""
        return next((parameter for parameter in self.inputs if parameter.name == name), None)


# By JSON Schema's names.
_SCHEMA_TYPES: Final[Mapping[str, ParameterType]] = {
    "boolean": "bool",
    "integer": "int",
    "number": "float",
}


def list_parameters(schema: Mapping[str, JsonValue]) -> Iterator[Parameter]:
    """Summarize the JSON Schema of a tool's arguments, for agents without native tool calls."""
    properties, required = schema.get("properties"), schema.get("required")
    for name, value in properties.items() if isinstance(properties, dict) else ():
        about = value if isinstance(value, dict) else {}
        kind, said = about.get("type"), about.get("description")
        yield Parameter(
            name=name,
            type=_SCHEMA_TYPES.get(kind, "text") if isinstance(kind, str) else "text",
            description=said if isinstance(said, str) else None,
            optional=not (isinstance(required, list) and name in required),
            default=about.get("default"),
        )
