"""The tools of tool servers as a run pins them, what changed since, and the state of servers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import Field

from gta_bench.records.base import Record
from gta_bench.records.digests import content_digest
from gta_bench.records.files import Deliverable
from gta_bench.records.tools import ToolSpec


class ToolPin(Record):
    """Digests of a tool: of its schemas and annotations, and of its description."""

    interface: str
    description: str


class ServerPin(Record):
    """The tools of one server when a run began, by name."""

    tools: Mapping[str, ToolPin]

    @property
    def digest(self) -> str:
        """One digest for all tools of the server."""
        return content_digest(self.model_dump(mode="json"))


def pin_servers(specs: Iterable[ToolSpec]) -> dict[str, ServerPin]:
    """Pin the tools of each server among these tools.

    >>> from gta_bench.records.tools import ServedTool, ToolSpec
    >>> served = ServedTool(server="clock", input_schema={"type": "object"})
    >>> pin_servers([ToolSpec(name="clock__now", served=served), ToolSpec(name="OCR")]).keys()
    dict_keys(['clock'])
    """
    found: dict[str, dict[str, ToolPin]] = {}
    for spec in specs:
        if spec.served is not None:
            said = spec.served.model_dump(mode="json", exclude={"server"})
            pin = ToolPin(
                interface=content_digest(said), description=content_digest(spec.description)
            )
            found.setdefault(spec.served.server, {})[spec.name] = pin
    return {server: ServerPin(tools=tools) for server, tools in sorted(found.items())}


class ToolChange(NamedTuple):
    """How the definition of a tool changed; the tool and the change are a sentence."""

    tool: str
    change: str


def compare_servers(
    then: Mapping[str, ServerPin], now: Mapping[str, ServerPin]
) -> Iterator[ToolChange]:
    """Yield how each tool changed, for the servers that both have."""
    for server in sorted({*then} & {*now}):
        yield from _compare_tools(then[server].tools, now[server].tools)


def describe_drift(then: Mapping[str, ServerPin], now: Mapping[str, ServerPin]) -> list[str]:
    """Describe how each tool changed, for the servers that both have."""
    return [f"{one.tool} {one.change}" for one in compare_servers(then, now)]


def _compare_tools(then: Mapping[str, ToolPin], now: Mapping[str, ToolPin]) -> Iterator[ToolChange]:
    for name in sorted({*then, *now}):
        if name not in now:
            yield ToolChange(name, "is gone")
        elif name not in then:
            yield ToolChange(name, "is new")
        elif then[name].interface != now[name].interface:
            yield ToolChange(name, "has another schema")
        elif then[name] != now[name]:
            yield ToolChange(name, "has another description")


class StateSnapshot(Record):
    """The files of a tool server at one time; `strays` are names that are not regular files."""

    files: tuple[Deliverable, ...] = ()
    strays: tuple[str, ...] = ()


class ServerState(Record):
    """The state of a tool server before the first call of a unit and after the last one.

    `unknown` says why neither is known, `excess` why the second is too large to be kept.
    """

    server: str
    before: StateSnapshot = StateSnapshot()
    after: StateSnapshot = StateSnapshot()
    unknown: str = Field(default="", exclude_if=lambda unknown: not unknown)
    excess: str = Field(default="", exclude_if=lambda excess: not excess)

    @property
    def files(self) -> tuple[Deliverable, ...]:
        """All files of both times."""
        return (*self.before.files, *self.after.files)

    def untouched(self) -> "ServerState":
        """Return the state that a system without any call would have left."""
        return self.model_copy(update={"after": self.before})
