"""What a tool is: a typed input, an async `apply`, a typed result, and where it can run."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar, cast

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


def bounded(text: str, *, length: int | None = None) -> str:
    """The text, or its beginning and a line that says how much there was (`length`)."""
    whole = len(text) if length is None else length
    if whole <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[The first {MOST_CHARACTERS} of {whole} characters.]"


Parameters = ParamSpec("Parameters")
CallValue = TypeVar("CallValue")


class FileKind(NamedTuple):
    """Marks an input that names a file of the workspace."""

    type: ParameterType


ImagePath = Annotated[str, FileKind("image")]
AudioPath = Annotated[str, FileKind("audio")]
VideoPath = Annotated[str, FileKind("video")]
FilePath = Annotated[str, FileKind("file")]

PLAIN_TYPES: Mapping[type, ParameterType] = {str: "text", bool: "bool", int: "int", float: "float"}


class ToolInput(BaseModel):
    """The arguments of one tool; agents are told of every field, its type and its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Input = TypeVar("Input", bound=ToolInput)


class Available(NamedTuple):
    """The tool works here, with this backend."""

    backend: str


class Unavailable(NamedTuple):
    """The tool does not work here: why, and the line that mends it."""

    reason: str
    mend: str


Availability = Available | Unavailable


NO_JAIL_SOUGHT = Unavailable("No jail was looked for.", "Run `gta doctor`.")


@dataclass(frozen=True)
class Equipment:
    """What tools work with: settings, keys, a jail, weights, and threads for slow work.

    `jail` is None where no jail works here; `no_jail` then says why.
    """

    settings: Settings
    jail: Jail | None = None
    no_jail: Unavailable = NO_JAIL_SOUGHT
    weights: Path = field(default_factory=weights_folder)
    threads: Executor | None = None
    key: Callable[[str], str | None] = read_key

    def need_jail(self) -> Jail:
        """The jail, or a ToolUnavailable that says why there is none."""
        if self.jail is None:
            raise ToolUnavailable(self.no_jail.reason, mend=self.no_jail.mend)
        return self.jail

    async def in_thread(
        self,
        work: Callable[Parameters, CallValue],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> CallValue:
        """Slow work off the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: work(*args, **kwargs))


@dataclass(frozen=True)
class Made:
    """What `apply` came to, and what ran to make it; see `ToolResult`."""

    parts: tuple[ReplyPart, ...]
    backend: str
    jail: str | None = None


class Tool(ABC, Generic[Input]):
    """One tool. A subclass states its metadata and implements `check` and `apply`.

    Tools are made once and used for many calls at the same time, so they keep no state of a call.
    `category` is perception, operation, logic, creativity, or one of your own; reports group by it.
    Failures an agent can act on are `ToolError`s; what is missing here is `ToolUnavailable`.
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
        """Whether the tool works here and with what; cheap, and without a network call."""

    @abstractmethod
    async def apply(self, workspace: Workspace, given: Input) -> Made:
        """Do the work."""

    @classmethod
    def spec(cls) -> ToolSpec:
        """The tool as agents, upstream's toolmeta.json and other protocols describe it."""
        return ToolSpec(
            name=cls.name,
            description=cls.description,
            inputs=tuple(
                _parameter(name, info) for name, info in cls.input_type.model_fields.items()
            ),
            outputs=cls.outputs,
        )


def text(content: str) -> ReplyPart:
    """A part of a result that is text."""
    return ReplyPart(type="text", content=content)


def file_part(kind: ParameterType, output: OutputFile) -> ReplyPart:
    """A part of a result that is a file of the workspace."""
    return ReplyPart(type=kind, content=output.path)


def _parameter(name: str, info: FieldInfo) -> Parameter:
    default: JsonValue = None if info.is_required() else info.get_default()
    return Parameter(
        name=name,
        type=_type(info),
        description=info.description,
        optional=not info.is_required(),
        default=default,
    )


def _type(info: FieldInfo) -> ParameterType:
    kind = next((mark.type for mark in info.metadata if isinstance(mark, FileKind)), None)
    return kind or PLAIN_TYPES[_plain(info.annotation)]


def _plain(annotation: Any) -> type:
    """`str` of `str | None`."""
    members = [member for member in getattr(annotation, "__args__", ()) if member is not type(None)]
    return cast(type, members[0] if members else annotation)
