"""The JSON layouts of the GTA publications, and the tools and attachments in them as records.

Unknown keys are kept and reported as findings; every known key must have its known type.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gta_bench.datasets.files import Location, parse, read_json
from gta_bench.errors import DatasetError
from gta_bench.records.files import Attachment
from gta_bench.records.finding import Finding
from gta_bench.records.run import DatasetName
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec

TOOLMETA = "toolmeta.json"
HOST_PATH = re.compile(r"(/|[A-Za-z]:[\\/]).*")


class Released(BaseModel):
    """Part of a released file; unknown keys are allowed and reported."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class ReleasedParameter(Parameter):
    """An input or output in `toolmeta.json`."""

    model_config = Released.model_config


class ReleasedTool(Released):
    """A tool in `toolmeta.json` or in a task's own list."""

    name: str
    description: str | None = None
    inputs: list[ReleasedParameter] = []
    outputs: list[ReleasedParameter] = []


class ReleasedFile(Released):
    """An input file of a task."""

    type: str | None = None
    path: str
    url: str | None = None


class ReleasedFunction(Released):
    """The function of a tool call; `arguments` is an object, not a JSON string."""

    name: str
    arguments: dict[str, JsonValue]


class ReleasedCall(Released):
    """One entry of `tool_calls`."""

    type: Literal["function"] = "function"
    function: ReleasedFunction


class ReleasedReply(Released):
    """The content of a tool message."""

    type: ParameterType
    content: str


class ReleasedMessage(Released):
    """A message of a dialogue, of any role."""

    role: Literal["user", "assistant", "tool"]
    content: str | ReleasedReply | None = None
    name: str | None = None
    thought: str | None = None
    tool_calls: list[ReleasedCall] | None = Field(None, min_length=1, max_length=1)
    resources: list[ReleasedFile] = []


class ReleasedWhitelist(Released):
    """The accepted and the rejected aliases of an answer."""

    whitelist: list[list[str]]
    blacklist: list[list[str]] | None = None


class ReleasedAtomicTask(Released):
    """An entry of `dataset.json`, or of a `step.json` in the same layout."""

    tools: list[ReleasedTool]
    files: list[ReleasedFile | str]
    dialogs: list[ReleasedMessage] = Field(min_length=1)
    gt_answer: ReleasedWhitelist | list[str] | None = None


class ReleasedCheckpoint(Released):
    """A node of a checkpoint tree."""

    id: str
    requirements: str | None = None
    weight: float = Field(1.0, ge=0, allow_inf_nan=False)
    sub_tasks: list["ReleasedCheckpoint"] = []


class ReleasedWorkflowTask(Released):
    """An entry of `end.json`."""

    tools: list[ReleasedTool | str] = []
    files: list[ReleasedFile | str] = []
    dialogs: list[ReleasedMessage] = Field(min_length=1)
    sub_tasks: list[ReleasedCheckpoint]
    workflow_category_6class: str | None = None


def missing_file(file: Path, dataset: DatasetName) -> DatasetError:
    """The error for a folder without the dataset's main file."""
    return DatasetError(
        f"no such file. Download it with `gta data fetch {dataset}`, or name its folder with "
        "`--data DIR` or the folder above with GTA_DATA.",
        file=str(file),
    )


def load_toolmeta(root: Path) -> tuple[dict[str, ToolSpec], list[Finding]]:
    """The tools of `toolmeta.json`, an object by name or a list; no tools if it is missing."""
    where = Location(TOOLMETA)
    if not (root / TOOLMETA).is_file():
        message = "there is no toolmeta.json; only the tasks' own tool definitions are used."
        return {}, [where.finding("toolmeta-missing", message)]
    raw = read_json(root / TOOLMETA)
    if not isinstance(raw, dict | list):
        kind = type(raw).__name__
        raise where.error(f"must be an object by tool name or a list of tools, not {kind}.")
    tools: dict[str, ToolSpec] = {}
    findings: list[Finding] = []
    for key, entry in raw.items() if isinstance(raw, dict) else ((None, one) for one in raw):
        released = parse(ReleasedTool, entry, file=TOOLMETA)
        name = released.name
        if name in tools:
            raise where.error("the tool is defined twice.", name)
        if key is not None and key != name:
            raise where.error(f"the key and the name {name!r} differ.", key)
        tools[name] = tool_spec(released)
        findings += find_unknown_keys(released, where, f"{name}.")
        for parameter in released.inputs:
            if is_host_path(parameter.default):
                message = (
                    f"the default {parameter.default!r} is a path of the authors' machine; "
                    "it is dropped."
                )
                field = f"{name}.{parameter.name}"
                findings.append(where.finding("host-path-default", message, field=field))
    return tools, findings


def tool_spec(released: ReleasedTool) -> ToolSpec:
    """A released tool definition as a record; defaults that are paths of a host are dropped."""
    return ToolSpec(
        name=released.name,
        description=released.description or "",
        inputs=tuple(
            Parameter(
                type=parameter.type,
                name=parameter.name,
                description=parameter.description,
                optional=parameter.optional,
                default=None if is_host_path(parameter.default) else parameter.default,
                filetype=parameter.filetype,
            )
            for parameter in released.inputs
        ),
        outputs=tuple(
            Parameter(type=output.type, description=output.description, filetype=output.filetype)
            for output in released.outputs
        ),
    )


def read_attachments(
    files: Sequence[ReleasedFile | str], where: Location
) -> tuple[Attachment, ...]:
    """A task's input files under portable names (`inputs/NAME`), numbered where they repeat."""
    found: dict[str, Attachment] = {}
    for index, entry in enumerate(files):
        released = ReleasedFile(path=entry) if isinstance(entry, str) else entry
        source = PurePosixPath(released.path)
        plain = released.path == str(source) and not {"\\", "\0"} & set(released.path)
        if not plain or source.is_absolute() or ".." in source.parts or not source.name:
            problem = f"{released.path!r} is not a relative path inside the dataset."
            raise where.error(problem, f"files.{index}.path")
        path, count = f"inputs/{source.name}", 1
        while path in found:
            count += 1
            path = f"inputs/{source.stem}_{count}{source.suffix}"
        found[path] = Attachment(
            path=path, source=released.path, type=released.type, url=released.url
        )
    return tuple(found.values())


def find_oddities(
    entry: BaseModel, files: Sequence[ReleasedFile | str], where: Location
) -> Iterator[Finding]:
    """Findings about a task: unknown keys, and files given as plain strings.

    The published loader silently drops files that are plain strings.
    """
    for index, file in enumerate(files):
        if isinstance(file, str):
            message = f"{file!r} is a plain string, not an object; it is read as a path."
            yield where.finding("bare-string-file", message, field=f"files.{index}")
    yield from find_unknown_keys(entry, where)


def find_unknown_keys(part: BaseModel, where: Location, prefix: str = "") -> Iterator[Finding]:
    """A finding for every key that is not in the released layout, with its dotted path."""
    for key in part.model_extra or ():
        message = "the key is not part of the released layout and is ignored."
        yield where.finding("unknown-key", message, field=f"{prefix}{key}", severity="note")
    for name in type(part).model_fields:
        value = getattr(part, name)
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, BaseModel):
                step = f"{name}.{index}." if isinstance(value, list) else f"{name}."
                yield from find_unknown_keys(item, where, prefix + step)


def is_host_path(value: JsonValue) -> bool:
    """Whether a value is an absolute path of some machine."""
    return isinstance(value, str) and HOST_PATH.fullmatch(value) is not None
