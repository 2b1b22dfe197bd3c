"""Tools as JSON Schema, for OpenAPI and for MCP."""

from pydantic import JsonValue

from gta_bench.records.tools import FILE_TYPES, Parameter, ParameterType, ToolSpec

JSON_TYPES: dict[ParameterType, str] = {"bool": "boolean", "int": "integer", "float": "number"}


def input_schema(spec: ToolSpec) -> dict[str, JsonValue]:
    """The arguments of a tool; files are portable paths of the workspace."""
    named = [(entry.name, entry) for entry in spec.inputs if entry.name]
    return {
        "type": "object",
        "properties": {name: _property(entry) for name, entry in named},
        "required": [name for name, entry in named if not entry.optional],
        "additionalProperties": False,
    }


def _property(entry: Parameter) -> dict[str, JsonValue]:
    schema: dict[str, JsonValue] = {"type": JSON_TYPES.get(entry.type, "string")}
    if entry.type in FILE_TYPES:
        path = f"Path of the {entry.type}, such as `inputs/NAME`."
        schema["description"] = f"{entry.description} {path}" if entry.description else path
    elif entry.description:
        schema["description"] = entry.description
    if entry.optional and entry.default is None:
        schema["type"] = [str(schema["type"]), "null"]
    if entry.default is not None:
        schema["default"] = entry.default
    return schema
