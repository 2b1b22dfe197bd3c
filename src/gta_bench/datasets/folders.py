"""Load task folders: one folder for each task, with `task.toml`, `request.md` and `inputs/`.

They become the same records as GTA-Workflow's released layout.
"""

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import ErrorDetails

from gta_bench.datasets.files import TASK_ID, Location
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.package_checks import explain_unknown, make_package_check
from gta_bench.datasets.released import TOOLMETA, load_toolmeta
from gta_bench.errors import DatasetError, UsageError, suggest_name
from gta_bench.records.checks import (
    CHECKS,
    MOST_REFERENCE,
    OF_PACKAGE,
    OURS,
    AnyCheck,
    Credit,
    DecidedBy,
    LeafCheck,
    PackageCheck,
    PythonCheck,
    TableSame,
)
from gta_bench.records.files import Attachment
from gta_bench.records.workflow import Checkpoint, WorkflowTask

TASK_FILE: Final = "task.toml"
REQUEST_FILE: Final = "request.md"
INPUTS: Final = "inputs"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NUMBER: Final = re.compile(r"(\d+)")

NodeId = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\s\x00-\x1f]")]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
LevelScore = Annotated[str, Field(pattern=r"^(10|[0-9](\.[0-9]+)?)$")]


class TaskTable(BaseModel):
    """A table of `task.toml`: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LeafEntry(TaskTable):
    """A leaf: what it says, what it weighs, and who decides it."""

    id: NodeId = Field(description="Its name, once in a task; verdicts are stored under it.")
    weight: Weight = Field(1.0, description="Its weight among its neighbors.")
    says: str | None = Field(None, description="The requirement, in a sentence.")
    levels: dict[LevelScore, str] = Field(
        {}, description="What a score from 0 to 10 means, for judges."
    )
    by: DecidedBy | None = Field(
        None, description="Who decides; by default `check` if there are checks, else `judge`."
    )
    checks: tuple[LeafCheck, ...] = Field((), description="Conditions that code decides.")
    credit: Credit = Field("all", description="How checks become a score.")
    needs: tuple[str, ...] = Field((), description="Leaves without which this one cannot hold.")

    @model_validator(mode="after")
    def _check_fit(self) -> Self:
        if self.by in ("check", "check-then-judge") and not self.checks:
            raise ValueError(f"`by` is {self.by!r}, but there are no checks")
        if self.credit != "all" and not self.checks:
            raise ValueError(f"`credit` is {self.credit!r}, but there are no checks")
        if self.credit == "linear":
            without = [one.label for one in self.checks if getattr(one, "zero_at", None) is None]
            if without:
                raise ValueError(f'`credit = "linear"` needs `zero_at` in {without[0]}')
        return self


class GroupEntry(TaskTable):
    """A group of leaves and of further groups."""

    id: NodeId = Field(description="Its name, once in a task.")
    weight: Weight = Field(1.0, description="Its weight among its neighbors.")
    says: str | None = Field(None, description="A heading; no score depends on it.")
    order: tuple[str, ...] = Field((), description="Ids of its leaves and groups, if they mix.")
    leaf: tuple[LeafEntry, ...] = Field((), description="Its leaves, in order.")
    group: tuple["GroupEntry", ...] = Field((), description="Its groups, after its leaves.")


class InputEntry(TaskTable):
    """What is known about a file of `inputs/`; most files need no entry."""

    type: str | None = Field(None, description="The type that the released layout states.")
    url: str | None = Field(None, description="Where the file comes from.")
    released: str | None = Field(None, description="Its path in the released layout.")


class TaskFile(TaskTable):
    """`task.toml`: everything about a task besides its request and its files."""

    format: Literal[1] = Field(description="The version of this format.")
    id: str = Field(pattern=rf"^{TASK_ID.pattern}$", description="The name of the task's folder.")
    category: str | None = Field(None, description="A category, for tables and samples.")
    tools: tuple[str, ...] = Field((), description="Names of the offered tools; none means all.")
    license: str | None = Field(None, description="The license of the task, such as CC-BY-4.0.")
    allow: tuple[str, ...] = Field((), description="Waived rules of `gta task lint`, with reasons.")
    deliverables: dict[str, str] = Field(
        {}, description="The files that the request asks for, with their kinds."
    )
    inputs: dict[str, InputEntry] = Field({}, description="What is known about files of inputs/.")
    order: tuple[str, ...] = Field((), description="Ids of leaves and groups here, if they mix.")
    leaf: tuple[LeafEntry, ...] = Field((), description="Leaves outside of groups.")
    group: tuple[GroupEntry, ...] = Field((), description="Groups of leaves, in order.")


def task_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of task.toml, for editors."""
    return {"$schema": DIALECT, **TaskFile.model_json_schema(), "title": TASK_FILE}


def find_task_folders(root: Path) -> list[Path]:
    """Return the folders with a `task.toml`, in natural order (2 before 10)."""
    if not root.is_dir():
        return []
    found = [folder for folder in root.iterdir() if (folder / TASK_FILE).is_file()]
    return sorted(found, key=lambda folder: _natural_order(folder.name))


def _natural_order(name: str) -> list[tuple[int, str]]:
    parts = _NUMBER.split(name)
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]


def load_folders(root: Path) -> WorkflowDataset:
    """Load a folder of task folders. Raises DatasetError with file and key for every mistake."""
    tools, findings = load_toolmeta(root) if (root / TOOLMETA).is_file() else ({}, [])
    tasks = {folder.name: load_task(folder) for folder in find_task_folders(root)}
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and folder.name not in tasks and not folder.name.startswith("."):
            message = f"the folder has no {TASK_FILE}, so it is not a task."
            findings.append(Location(folder.name).finding("not-a-task", message))
    return WorkflowDataset(root, TASK_FILE, tasks, tools, tuple(findings), layout="folders")


def load_task(folder: Path) -> WorkflowTask:
    """Load one task folder."""
    return build_task(folder, read_task_file(folder))


def wrap_task(folder: Path, task: WorkflowTask) -> WorkflowDataset:
    """Return a dataset of one task, with the tools that the folder around it defines."""
    root = folder.parent
    tools = load_toolmeta(root)[0] if (root / TOOLMETA).is_file() else {}
    return WorkflowDataset(root, TASK_FILE, {task.id: task}, tools, (), layout="folders")


def build_task(folder: Path, read: TaskFile) -> WorkflowTask:
    """Load what `task.toml`, which was read before, and the other files of a task folder say."""
    where = Location(f"{folder.name}/{TASK_FILE}")
    if read.id != folder.name:
        raise where.error(f"the id {read.id!r} is not the folder's name {folder.name!r}.", "id")
    task = WorkflowTask(
        id=read.id,
        request=_read_request(folder),
        category=read.category,
        tools=read.tools,
        attachments=tuple(_read_inputs(folder, read.inputs)),
        checkpoints=_read_nodes(folder, read),
    )
    _check_ids(task, where)
    return task


def read_task_file(folder: Path) -> TaskFile:
    """Read and validate `task.toml` of a task folder."""
    read = try_task_file(folder)
    if isinstance(read, TaskFile):
        return read
    raise read[0]


def try_task_file(folder: Path) -> TaskFile | list[DatasetError]:
    """Read `task.toml`; return every mistake in it, with the most likely cause first."""
    name = f"{folder.name}/{TASK_FILE}"
    try:
        raw = tomllib.loads(_read_file(folder, TASK_FILE))
    except tomllib.TOMLDecodeError as exc:
        return [Location(name).error(f"is not valid TOML: {exc}.")]
    except DatasetError as exc:
        return [exc]
    try:
        # As JSON, so that lists are tuples; a date is the text that was written.
        return TaskFile.model_validate_json(json.dumps(raw, default=str))
    except ValidationError as exc:
        # A misspelled key is often the cause of a missing one.
        problems = sorted(
            exc.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden"
        )
        return [Location(name).error(_explain(one), _field(one["loc"], raw)) for one in problems]


def _explain(problem: ErrorDetails) -> str:
    """What is wrong with a key, as one sentence."""
    key, kind = str(problem["loc"][-1]), problem["type"]
    if kind == "extra_forbidden":
        known = _known_keys(problem["loc"])
        return f"unknown key{suggest_name(key, known)} Known keys here: {', '.join(known)}."
    if kind == "missing":
        return "the key is missing."
    if key == "[key]":
        return "a score is a number from 0 to 10."
    if kind == "union_tag_not_found":
        return "a check needs `is`, which names its kind."
    if kind == "union_tag_invalid":
        return explain_unknown(problem["ctx"]["tag"])
    message = problem["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return f"{message}."
    return f"{message[0].lower()}{message[1:]}, got {problem['input']!r}."


def _known_keys(loc: Sequence[int | str]) -> list[str]:
    """The keys that the table of an unknown key may have."""
    model: type[BaseModel] = TaskFile
    for part in loc[:-1]:
        if isinstance(part, str) and part in CHECKS:
            model = CHECKS[part]
        elif isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    named = {"check": "is"} if model in CHECKS.values() else {}
    internal = {"rows"} if model is TableSame else {"source"} if model is PythonCheck else set()
    return sorted(named.get(name, name) for name in model.model_fields if name not in internal)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The record inside a type such as `tuple[GroupEntry, ...]` or `Range | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _field(loc: Sequence[int | str], raw: Any) -> str | None:
    """The path of a key; groups and leaves have their ids instead of numbers."""
    parts: list[str] = []
    at = raw
    for part in loc:
        marks = part in CHECKS or part in (OURS, OF_PACKAGE)
        if part == "[key]" or (marks and isinstance(at, dict) and part not in at):
            continue  # pydantic's marks for a wrong key and for the kind of a check
        at = _step(at, part)
        named = at.get("id") if isinstance(at, dict) and isinstance(part, int) else None
        parts.append(named if isinstance(named, str) else str(part))
    return ".".join(parts) or None


def _step(at: Any, part: int | str) -> Any:
    try:
        return at[part]
    except (KeyError, IndexError, TypeError):
        return None


def _read_file(folder: Path, name: str) -> str:
    """The text of a file of a task folder; links are refused, because they lead out of it."""
    where, file = Location(f"{folder.name}/{name}"), folder / name
    _refuse_links(folder, name, where)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise where.error(f"cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise where.error(f"is not UTF-8 text (byte {exc.start}); save it as UTF-8.") from exc
    return text


def _refuse_links(folder: Path, name: str, where: Location) -> None:
    if folder.is_symlink():
        problem = "is a link; put the task folder itself into the dataset."
        raise Location(folder.name).error(problem)
    file = folder
    for part in PurePosixPath(name).parts:
        file = file / part
        if file.is_symlink():
            raise where.error("is a link; put the file itself into the task folder.")


def _read_request(folder: Path) -> str:
    """The request without the line feed at the end of the file."""
    text = _read_file(folder, REQUEST_FILE).removesuffix("\n")
    if not text.strip():
        problem = "is empty; write what the system is asked to do."
        raise Location(f"{folder.name}/{REQUEST_FILE}").error(problem)
    return text


def _read_inputs(folder: Path, about: Mapping[str, InputEntry]) -> Iterator[Attachment]:
    where = Location(f"{folder.name}/{TASK_FILE}")
    _refuse_links(folder, INPUTS, Location(f"{folder.name}/{INPUTS}"))
    files = sorted((folder / INPUTS).iterdir()) if (folder / INPUTS).is_dir() else []
    names = [file.name for file in files if not file.name.startswith(".")]
    for name, entry in about.items():
        # A converted dataset may lack files that its release lacks; `gta data verify` lists them.
        if name not in names and entry.released is None:
            raise where.error(f"there is no file inputs/{name}.", f"inputs.{name}")
    # In the order of the table, which a converted task needs, and then by name.
    for name in [*about, *(name for name in names if name not in about)]:
        place = Location(f"{folder.name}/{INPUTS}/{name}")
        _refuse_links(folder, f"{INPUTS}/{name}", place)
        if (folder / INPUTS / name).is_dir():
            raise place.error("is a folder; inputs are files directly in inputs/.")
        entry = about.get(name, InputEntry())
        yield Attachment(
            path=f"{INPUTS}/{name}",
            source=f"{folder.name}/{INPUTS}/{name}",
            type=entry.type,
            url=entry.url,
        )


def _read_nodes(folder: Path, level: TaskFile | GroupEntry) -> tuple[Checkpoint, ...]:
    """The leaves and then the groups of a level, or both as `order` says."""
    where = Location(f"{folder.name}/{TASK_FILE}")
    nodes = [_read_leaf(folder, leaf) for leaf in level.leaf]
    for group in level.group:
        if not group.leaf and not group.group:
            problem = "the group has no leaf; add [[group.leaf]] below it."
            raise where.error(problem, f"group.{group.id}")
        nodes.append(
            Checkpoint(
                id=group.id,
                requirements=group.says,
                weight=group.weight,
                children=_read_nodes(folder, group),
            )
        )
    if not level.order:
        return tuple(nodes)
    if sorted(level.order) != sorted(node.id for node in nodes):
        problem = "must name every leaf and group of its level once, or be left out."
        raise where.error(problem, "order" if isinstance(level, TaskFile) else f"{level.id}.order")
    return tuple(sorted(nodes, key=lambda node: level.order.index(node.id)))


def _read_leaf(folder: Path, leaf: LeafEntry) -> Checkpoint:
    return Checkpoint(
        id=leaf.id,
        requirements=leaf.says,
        weight=leaf.weight,
        levels=dict(sorted(leaf.levels.items(), key=lambda level: float(level[0]))),
        by=leaf.by or ("check" if leaf.checks else "judge"),
        checks=tuple(_attach_file(folder, leaf, one) for one in leaf.checks),
        credit=leaf.credit,
        needs=leaf.needs,
    )


def _attach_file(folder: Path, leaf: LeafEntry, check: AnyCheck) -> AnyCheck:
    """The check with the text of the file that it names, so that a stored run can repeat it.

    A check of a package is validated by it.
    """
    where = Location(f"{folder.name}/{TASK_FILE}")
    if isinstance(check, PackageCheck):
        try:
            make_package_check(check)
        except UsageError as exc:
            raise where.error(str(exc), f"{leaf.id}.checks") from exc
    if isinstance(check, PythonCheck):
        name, _, function = check.run.partition(":")
        text = _read_part(folder, name, where, f"{leaf.id}.run")
        _check_function(text, function, Location(f"{folder.name}/{name}"))
        return check.model_copy(update={"source": text})
    if isinstance(check, TableSame):
        path = PurePosixPath(check.reference)
        if path.is_absolute() or ".." in path.parts or path.suffix.lower() != ".csv":
            problem = f"{check.reference!r} is not the path of a CSV file in the task folder."
            raise where.error(problem, f"{leaf.id}.reference")
        text = _read_part(folder, check.reference, where, f"{leaf.id}.reference")
        return check.model_copy(update={"rows": text})
    return check


def _read_part(folder: Path, name: str, where: Location, field: str) -> str:
    if not (folder / name).is_file():
        raise where.error(f"there is no file {folder.name}/{name}.", field)
    text = _read_file(folder, name)
    if len(text) > MOST_REFERENCE:
        raise where.error(f"{name} has more than {MOST_REFERENCE:,} characters.", field)
    return text


def _check_function(source: str, function: str, where: Location) -> None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as exc:
        at = f" in line {exc.lineno}" if isinstance(exc, SyntaxError) else ""
        raise where.error(f"is not valid Python{at}: {exc.args[0]}.") from exc
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if function not in names:
        raise where.error(f"has no function {function!r}{suggest_name(function, names)}")


def _check_ids(task: WorkflowTask, where: Location) -> None:
    """Raise for an id that occurs twice, and for `needs` of a leaf that does not exist."""
    nodes = [*_all_nodes(task.checkpoints)]
    for name, count in Counter(node.id for node in nodes).items():
        if count > 1:
            raise where.error(f"{count} groups or leaves have this id; ids must differ.", name)
    leaves = [leaf.id for leaf in task.leaves()]
    for leaf in task.leaves():
        for name in leaf.needs:
            if name not in leaves:
                problem = f"there is no leaf {name!r}{suggest_name(name, leaves)}"
                raise where.error(problem, f"{leaf.id}.needs")


def _all_nodes(nodes: Sequence[Checkpoint]) -> Iterator[Checkpoint]:
    for node in nodes:
        yield node
        yield from _all_nodes(node.children)


def refuse_single_task(root: Path) -> None:
    """Raise for the folder of one task, where a dataset is needed: the folder above it."""
    if (root / TASK_FILE).is_file():
        problem = (
            f"this is the folder of one task. Use the folder above it: --data {root.parent} "
            f"--tasks {root.name}"
        )
        raise DatasetError(problem, file=str(root))
