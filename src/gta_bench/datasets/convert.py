"""What both datasets share: tools and attachments of the released layouts as records."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, JsonValue

from gta_bench.datasets.files import check_source, parse, read_json
from gta_bench.datasets.released import ReleasedFile, ReleasedTool, unknown_keys
from gta_bench.errors import DatasetError
from gta_bench.records.files import Attachment
from gta_bench.records.finding import Finding
from gta_bench.records.tools import Parameter, ToolSpec

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
