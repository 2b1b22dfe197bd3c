"""The contract of a tool: a typed input, an async `apply`, a typed result, and a check."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.fields import FieldInfo

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec
from gta_bench.settings import Settings, read_key
from gta_bench.weights import weights_folder

MOST_CHARACTERS = 20_000


def truncate_text(text: str, *, length: int | None = None) -> str:
    """Return the text, or its beginning and a line with its full length (`length`, if given)."""
    whole = len(text) if length is None else length
    if whole <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[The first {MOST_CHARACTERS} of {whole} characters.]"


Parameters = ParamSpec("Parameters")
CallValue = TypeVar("CallValue")


class FileKind(NamedTuple):
    """Marks an input that is the path of a file in the workspace."""

    type: ParameterType


ImagePath = Annotated[str, FileKind("image")]
AudioPath = Annotated[str, FileKind("audio")]
VideoPath = Annotated[str, FileKind("video")]
FilePath = Annotated[str, FileKind("file")]

PLAIN_TYPES: Mapping[type, ParameterType] = {str: "text", bool: "bool", int: "int", float: "float"}


class ToolInput(BaseModel):
    """The arguments of one tool; agents see every field, its type and its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Input = TypeVar("Input", bound=ToolInput)


class Available(NamedTuple):
    """The tool works here, with this backend."""

    backend: str


class Unavailable(NamedTuple):
    """The tool does not work here: the reason, and the command or setting that fixes it."""

    reason: str
    fix: str


Availability = Available | Unavailable
Found = TypeVar("Found")

NO_JAIL_SOUGHT = Unavailable("No jail was looked for.", "Run `gta doctor`.")


def require(found: Found | Unavailable) -> Found:
    """Return what was found; raises ToolUnavailable with the reason if it is unavailable."""
    if isinstance(found, Unavailable):
        raise ToolUnavailable(found.reason, fix=found.fix)
    return found


@dataclass(frozen=True)
class Equipment:
    """What tools need: settings, keys, a jail, weights, and threads for slow work.

    `jail` is None if no jail works here; `no_jail` then says why.
    """

    settings: Settings
    jail: Jail | None = None
    no_jail: Unavailable = NO_JAIL_SOUGHT
    weights: Path = field(default_factory=weights_folder)
    threads: Executor | None = None
    key: Callable[[str], str | None] = read_key

    def need_jail(self) -> Jail:
        """Return the jail; raises ToolUnavailable if none works here."""
        return require(self.jail or self.no_jail)

    async def in_thread(
        self,
        work: Callable[Parameters, CallValue],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> CallValue:
        """Run slow work in a thread, so that the event loop stays free."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: work(*args, **kwargs))


@dataclass(frozen=True)
class Made:
    """The result of `apply` and the backend that made it; see `ToolResult`."""

    parts: tuple[ReplyPart, ...]
    backend: str
    jail: str | None = None


class Tool(ABC, Generic[Input]):
    """Base class of a tool: a subclass has its metadata and implements `check` and `apply`.

    An instance is created once and serves many calls at the same time, so it keeps no state of a
    call. `category` is perception, operation, logic, creativity, or one of your own; reports group
    by it. Raise `ToolError` for failures that an agent can act on, and `ToolUnavailable` if
    something is missing on this machine.
    """

    name: ClassVar[str]
    category: ClassVar[str]
    description: ClassVar[str]
    version: ClassVar[str]
    input_type: ClassVar[type[ToolInput]]
    outputs: ClassVar[tuple[Parameter, ...]] = (Parameter(type="text"),)

    def __init__(self, equipment: Equipment) -> None:
        self.equipment = equipment

    @abstractmethod
    def check(self) -> Availability:
        """Return whether the tool works here and with which backend; fast, no network calls."""

    @abstractmethod
    async def apply(self, workspace: Workspace, given: Input) -> Made:
        """Do the work."""

    @classmethod
    def spec(cls) -> ToolSpec:
        """Return the definition for agents, toolmeta.json and other protocols."""
        return ToolSpec(
            name=cls.name,
            description=cls.description,
            inputs=tuple(
                _parameter(name, info) for name, info in cls.input_type.model_fields.items()
            ),
            outputs=cls.outputs,
        )


def text(content: str) -> ReplyPart:
    """Return a text as a part of a result."""
    return ReplyPart(type="text", content=content)


def file_part(kind: ParameterType, output: OutputFile) -> ReplyPart:
    """Return an output file as a part of a result."""
    return ReplyPart(type=kind, content=output.path)


def _parameter(name: str, info: FieldInfo) -> Parameter:
    default: JsonValue = None if info.is_required() else info.get_default()
    marked = [mark.type for mark in info.metadata if isinstance(mark, FileKind)]
    # `str` of `str | None`
    members = [kind for kind in get_args(info.annotation) if kind is not type(None)]
    plain = cast(type, members[0] if members else info.annotation)
    return Parameter(
        name=name,
        type=marked[0] if marked else PLAIN_TYPES[plain],
        description=info.description,
        optional=not info.is_required(),
        default=default,
    )
