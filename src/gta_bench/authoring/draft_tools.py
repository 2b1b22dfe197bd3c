"""The tools of a trace as a draft offers them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from gta_bench.authoring.draft_notes import shorten
from gta_bench.authoring.traces.observed import ObservedCall, ObservedTool, ObservedTrace
from gta_bench.errors import GtaError, join_first
from gta_bench.records.tool_servers import pin_servers
from gta_bench.records.tools import SERVER_SEPARATOR, ServedTool, ToolSpec, list_parameters
from gta_bench.settings import SERVER_NAME
from gta_bench.tools.catalog import CATALOG, load_tool

_HARNESS_PREFIX: Final = "mcp__"
_JSON_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}


class DraftTools:
    """The tools of a trace as a task offers them, and what was changed about them."""

    def __init__(self, trace: ObservedTrace, server: str) -> None:
        self.names: dict[str, str] = {}
        self.specs: dict[str, ToolSpec] = {}
        self._guessed: list[str] = []
        self._without: list[str] = []
        self._renamed: list[str] = []
        self._server = server
        for tool in trace.tools:
            spec = self._find_ours(tool, trace) or self._make_spec(tool, trace.calls)
            self.names[tool.name] = spec.name
            self.specs[spec.name] = spec
        pins = pin_servers(self.specs.values())
        self.digests = {name: pin.digest for name, pin in pins.items()}

    @property
    def notes(self) -> Iterator[str]:
        """What was inferred."""
        if self._guessed:
            yield (
                f"The trace does not name the tool server of {join_first(self._guessed)}: is it "
                f"{self._server!r}?"
            )
        if self._without:
            names = join_first(self._without)
            yield f"No schema in the trace, made from the calls: {names}."
        if self._renamed:
            yield f"Names that models do not accept were changed: {join_first(self._renamed)}."

    def _find_ours(self, tool: ObservedTool, trace: ObservedTrace) -> ToolSpec | None:
        """Return the definition of a tool of ours, which a harness calls by a longer name."""
        name = tool.name.removeprefix(_HARNESS_PREFIX).removeprefix("gta__")
        if name not in CATALOG or not (trace.is_ours or name != tool.name):
            return None
        try:
            return load_tool(name).spec()
        except (ImportError, GtaError):
            return None

    def _make_spec(self, tool: ObservedTool, calls: Sequence[ObservedCall]) -> ToolSpec:
        server, own = self._split_name(tool.name)
        schema = tool.parameters
        if schema is None:
            self._without.append(shorten(tool.name))
            schema = _infer_schema(call for call in calls if call.tool == tool.name)
        return ToolSpec(
            name=self._find_free(f"{server}{SERVER_SEPARATOR}{own}"),
            description=tool.description,
            inputs=tuple(list_parameters(schema)),
            served=ServedTool(server=server, input_schema=schema),
        )

    def _split_name(self, name: str) -> tuple[str, str]:
        """Return the server and the tool of a name such as `mcp__files__read` or `files__read`."""
        server, separator, own = name.removeprefix(_HARNESS_PREFIX).partition(SERVER_SEPARATOR)
        if not separator or not own or not re.fullmatch(SERVER_NAME, server) or len(server) > 32:
            server, own = self._server, name
            self._guessed.append(shorten(name))
        clean = re.sub(r"[^A-Za-z0-9_-]+", "-", own)[:64].strip("-_") or "tool"
        if clean != own:
            self._renamed.append(shorten(own))
        return server, clean

    def _find_free(self, name: str) -> str:
        free, number = name, 2
        while free in self.specs:
            free, number = f"{name}-{number}", number + 1
        return free


def _infer_schema(calls: Iterable[ObservedCall]) -> dict[str, JsonValue]:
    """Return a schema with the arguments that calls had; nothing is required."""
    properties: dict[str, JsonValue] = {}
    for call in calls:
        for name, value in (call.arguments or {}).items():
            kind = _JSON_TYPES.get(type(value))
            about: dict[str, JsonValue] = {} if kind is None else {"type": kind}
            # Two calls that differ say nothing about the type.
            properties[name] = about if properties.get(name, about) == about else {}
    return {"type": "object", "properties": properties}
