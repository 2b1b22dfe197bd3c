"""The JSON layouts of the GTA publications, and the tools and attachments in them as records.

Unknown keys are kept and reported as findings; every known key must have its known type.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gta_bench.datasets.files import check_source, parse, read_json
from gta_bench.errors import DatasetError
from gta_bench.records.files import Attachment
from gta_bench.records.finding import Finding
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec


class Released(BaseModel):
    """Part of a released file; unknown keys are allowed and reported."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class ReleasedParameter(Released):
    """An input or output in `toolmeta.json`."""

    type: ParameterType
    name: str | None = None
    description: str | None = None
    optional: bool = False
    default: JsonValue = None
    filetype: str | None = None


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
    """What a tool message holds."""

    type: ParameterType
    content: str


class ReleasedMessage(Released):
    """A message of a dialogue, whatever its role."""

    role: Literal["user", "assistant", "tool"]
    content: str | ReleasedReply | None = None
    name: str | None = None
    thought: str | None = None
    tool_calls: list[ReleasedCall] | None = Field(None, min_length=1, max_length=1)
    resources: list[ReleasedFile] = []


class ReleasedWhitelist(Released):
    """The accepted and the refused aliases of an answer."""

    whitelist: list[list[str]]
    blacklist: list[list[str]] | None = None


class ReleasedAtomicTask(Released):
    """An entry of `dataset.json`, or of a `step.json` of the same shape."""

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


def unknown_keys(part: BaseModel, where: str = "") -> Iterator[str]:
    """The dotted places of keys that the released layout does not have."""
    yield from (f"{where}{key}" for key in part.model_extra or ())
    for name in type(part).model_fields:
        value = getattr(part, name)
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, BaseModel):
                step = f"{name}.{index}." if isinstance(value, list) else f"{name}."
                yield from unknown_keys(item, where + step)


TOOLMETA = "toolmeta.json"
HOST_PATH = re.compile(r"(/|[A-Za-z]:[\\/]).*")


def load_toolmeta(root: Path) -> tuple[dict[str, ToolSpec], list[Finding]]:
    """The tools of `toolmeta.json`, an object by name or a list; none where there is no file."""
    file = root / TOOLMETA
    if not file.is_file():
        return {}, [
            Finding(
                check="toolmeta-missing",
                severity="warning",
                file=TOOLMETA,
                message="there is no toolmeta.json: only the tasks' own definitions hold.",
            )
        ]
    tools: dict[str, ToolSpec] = {}
    findings: list[Finding] = []
    for key, entry in _tool_entries(read_json(file)):
        released = parse(ReleasedTool, entry, file=TOOLMETA, task=None)
        if released.name in tools:
            raise DatasetError("the tool stands twice.", file=TOOLMETA, field=released.name)
        if key is not None and key != released.name:
            raise DatasetError(
                f"the key and the name {released.name!r} differ.", file=TOOLMETA, field=key
            )
        tools[released.name] = tool_spec(released)
        findings += unknown_key_findings(released, file=TOOLMETA, where=f"{released.name}.")
        findings += _host_path_findings(released)
    return tools, findings


def tool_spec(released: ReleasedTool) -> ToolSpec:
    """A released tool definition as a record; defaults that are a host's paths are dropped."""
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


def attachments(
    files: Sequence[ReleasedFile | str], *, file: str, task: str
) -> tuple[Attachment, ...]:
    """A task's input files under portable, distinct names."""
    taken: set[str] = set()
    result = []
    for index, entry in enumerate(files):
        released = ReleasedFile(path=entry) if isinstance(entry, str) else entry
        check_source(released.path, file=file, task=task, field=f"files.{index}.path")
        path = _distinct(PurePosixPath(released.path), taken)
        taken.add(path)
        result.append(
            Attachment(path=path, source=released.path, type=released.type, url=released.url)
        )
    return tuple(result)


def bare_string_findings(
    files: Iterable[ReleasedFile | str], *, file: str, task: str
) -> Iterator[Finding]:
    """Files given as bare strings, which the published loader drops in silence."""
    for index, entry in enumerate(files):
        if isinstance(entry, str):
            yield Finding(
                check="bare-string-file",
                severity="warning",
                file=file,
                task=task,
                field=f"files.{index}",
                message=f"{entry!r} is a bare string, not an object; it is read as a path.",
            )


def unknown_key_findings(
    released: BaseModel, *, file: str, task: str | None = None, where: str = ""
) -> Iterator[Finding]:
    """Keys that the released layout does not have."""
    for field in unknown_keys(released, where):
        yield Finding(
            check="unknown-key",
            severity="note",
            file=file,
            task=task,
            field=field,
            message="the key is not part of the released layout and is ignored.",
        )


def is_host_path(value: JsonValue) -> bool:
    """Whether a value is an absolute path of some machine."""
    return isinstance(value, str) and HOST_PATH.fullmatch(value) is not None


def _tool_entries(raw: JsonValue) -> Iterable[tuple[str | None, JsonValue]]:
    if isinstance(raw, dict):
        return [(key, entry) for key, entry in raw.items()]
    if isinstance(raw, list):
        return [(None, entry) for entry in raw]
    raise DatasetError(
        f"must be an object by tool name or a list of tools, not {type(raw).__name__}.",
        file=TOOLMETA,
    )


def _host_path_findings(released: ReleasedTool) -> Iterator[Finding]:
    for parameter in released.inputs:
        if is_host_path(parameter.default):
            yield Finding(
                check="host-path-default",
                severity="warning",
                file=TOOLMETA,
                field=f"{released.name}.{parameter.name}",
                message=f"the default {parameter.default!r} is a path of the authors' machine; "
                "it is dropped.",
            )


def _distinct(source: PurePosixPath, taken: set[str]) -> str:
    """`inputs/<name>`, numbered where the task already has a file of that name."""
    path, count = f"inputs/{source.name}", 1
    while path in taken:
        count += 1
        path = f"inputs/{source.stem}_{count}{source.suffix}"
    return path
