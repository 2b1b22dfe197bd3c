"""The table of checks that `gta data verify` runs over a loaded dataset."""

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from gta_bench.datasets.convert import TOOLMETA
from gta_bench.datasets.files import KIND_OF_SUFFIX, file_kind, sha256
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.pins import PINNED_FILES
from gta_bench.datasets.receipt import changed_files, read_receipt
from gta_bench.errors import counted
from gta_bench.metrics.compat.view import self_rejecting_groups
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn
from gta_bench.records.finding import Finding, Severity
from gta_bench.records.tools import FILE_TYPES, ParameterType, ToolSpec
from gta_bench.records.workflow import Checkpoint


class Spot(NamedTuple):
    """Where something was found and what; `file` is the dataset's main file unless given."""

    message: str
    task: str | None = None
    field: str | None = None
    file: str | None = None


TYPE_OF_KIND = {
    "jpeg": "image",
    "png": "image",
    "webp": "image",
    "gif": "image",
    "wav": "audio",
    "mp3": "audio",
    "mp4": "video",
}
IMAGE_FOLDER = "image"


def missing_attachments(dataset: Dataset) -> Iterator[Spot]:
    """Input files that are not in the dataset's folder."""
    for task in dataset.tasks.values():
        for index, attachment in enumerate(task.attachments):
            if not (dataset.root / attachment.source).is_file():
                yield Spot(f"{attachment.source} is missing.", task.id, f"files.{index}")


def not_the_release(dataset: AtomicDataset) -> Iterator[Spot]:
    """Files whose content is not the published one."""
    for name, published in PINNED_FILES["atomic"].items():
        file = dataset.root / name
        if file.is_file() and sha256(file) != published:
            yield Spot("is not the file of the release (its sha256 differs).", file=name)


def changed_since_fetch(dataset: Dataset) -> Iterator[Spot]:
    """Files that differ from what `gta data fetch` wrote."""
    receipt = read_receipt(dataset.root)
    if receipt is not None:
        for name in changed_files(dataset.root, receipt):
            yield Spot("differs from what was fetched.", file=name)


def bytes_disagree(dataset: Dataset) -> Iterator[Spot]:
    """Files whose bytes are of another kind than their extension says."""
    owners = {item.source: task.id for task in dataset.tasks.values() for item in task.attachments}
    for source in sorted(owners.keys() | _images(dataset.root)):
        file = dataset.root / source
        claimed = KIND_OF_SUFFIX.get(PurePosixPath(source).suffix.lower())
        kind = file_kind(file) if file.is_file() else None
        if claimed is not None and kind is not None and kind != claimed:
            message = f"{source} is {kind} by its bytes, {claimed} by its name."
            owner = owners.get(source)
            yield Spot(message, owner, None if owner is None else "files", source)


def type_disagrees(dataset: Dataset) -> Iterator[Spot]:
    """Files whose declared type is not what their name says."""
    for task in dataset.tasks.values():
        for index, attachment in enumerate(task.attachments):
            suffix = PurePosixPath(attachment.source).suffix.lower()
            expected = TYPE_OF_KIND.get(KIND_OF_SUFFIX.get(suffix, ""), "file")
            if attachment.type not in (None, expected):
                message = f"{attachment.source} is declared {attachment.type!r}, not {expected!r}."
                yield Spot(message, task.id, f"files.{index}.type")


def unused_images(dataset: AtomicDataset) -> Iterator[Spot]:
    """Images of the release that no task has."""
    used = {item.source for task in dataset.tasks.values() for item in task.attachments}
    for source in sorted(_images(dataset.root) - used):
        yield Spot("no task has this file.", file=source)


def _images(root: Path) -> set[str]:
    folder = root / IMAGE_FOLDER
    names = (file.name for file in folder.iterdir() if file.is_file()) if folder.is_dir() else ()
    return {f"{IMAGE_FOLDER}/{name}" for name in names}


RELEASED_TASKS = 132
CATEGORIES = frozenset(
    {
        "Data Analysis & Quantitative Reasoning",
        "Educational & Instructional Content",
        "Planning & Decision Support",
        "Business & Marketing Strategy",
        "Creative Design & Expressive Generation",
        "Information Retrieval & Knowledge QA",
    }
)


def incomplete(dataset: WorkflowDataset) -> Iterator[Spot]:
    """A dataset with fewer tasks than the release."""
    if len(dataset.tasks) != RELEASED_TASKS:
        yield Spot(f"has {counted(len(dataset.tasks), 'task')}; the release has {RELEASED_TASKS}.")


def no_checkpoints(dataset: WorkflowDataset) -> Iterator[Spot]:
    """Tasks that nothing can be judged by."""
    for task in dataset.tasks.values():
        if not task.checkpoints:
            yield Spot("the task has no checkpoint.", task.id, "sub_tasks")


def leaf_without_requirement(dataset: WorkflowDataset) -> Iterator[Spot]:
    """Leaves that say nothing a judge could score."""
    for task in dataset.tasks.values():
        for leaf in task.leaves():
            if not (leaf.requirements or "").strip():
                yield Spot("the leaf has no requirement.", task.id, leaf.id)


def checkpoint_twice(dataset: WorkflowDataset) -> Iterator[Spot]:
    """Ids that two nodes of a task share, so that verdicts could not be told apart."""
    for task in dataset.tasks.values():
        nodes = (node for top in task.checkpoints for node in _nodes(top))
        for name, count in Counter(node.id for node in nodes).items():
            if count > 1:
                yield Spot(f"{count} checkpoints have this id.", task.id, name)


def weight_zero(dataset: WorkflowDataset) -> Iterator[Spot]:
    """Checkpoints that count for nothing."""
    for task in dataset.tasks.values():
        for top in task.checkpoints:
            for node in _nodes(top):
                if node.weight == 0:
                    yield Spot("the checkpoint's weight is 0.", task.id, node.id)


def category_unknown(dataset: WorkflowDataset) -> Iterator[Spot]:
    """Categories outside the six of the release."""
    for task in dataset.tasks.values():
        if task.category not in CATEGORIES:
            message = f"the category {task.category!r} is not one of the release's six."
            yield Spot(message, task.id, "workflow_category_6class")


def _nodes(node: Checkpoint) -> Iterator[Checkpoint]:
    yield node
    for child in node.children:
        yield from _nodes(child)


PYTHON_TYPES: dict[ParameterType, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}
FENCED = re.compile(r"```(?:python)?\s*\n(.*?)```", re.DOTALL)


def no_final_answer(dataset: AtomicDataset) -> Iterator[Spot]:
    """Tasks whose reference does not end with an answer."""
    for task in dataset.tasks.values():
        if not isinstance(task.dialogue[-1], AnswerTurn):
            last = task.dialogue[-1].turn
            yield Spot(f"the reference ends with a {last}, not with an answer.", task.id, "dialogs")


def call_without_reply(dataset: AtomicDataset) -> Iterator[Spot]:
    """Tool calls that no tool message follows."""
    for task, index, call in _calls(dataset):
        following = task.dialogue[index + 1 : index + 2]
        if not (following and isinstance(following[0], ReplyTurn)):
            yield Spot(f"the call of {call.call.name} has no reply.", task.id, _place(index))


def reply_of_another_tool(dataset: AtomicDataset) -> Iterator[Spot]:
    """Replies by a tool other than the one called before them."""
    for task in dataset.tasks.values():
        for index, turn in enumerate(task.dialogue):
            before = task.dialogue[index - 1] if index else None
            if isinstance(turn, ReplyTurn) and not (
                isinstance(before, CallTurn) and before.call.name == turn.tool
            ):
                yield Spot(f"{turn.tool} replies without being called.", task.id, _place(index))


def unequal_replies(dataset: AtomicDataset) -> Iterator[Spot]:
    """Equal calls whose recorded replies differ: a tool's text was edited by hand."""
    replies: dict[str, dict[str, str]] = defaultdict(dict)
    for task, index, call in _calls(dataset):
        following = task.dialogue[index + 1 : index + 2]
        if following and isinstance(following[0], ReplyTurn) and following[0].type == "text":
            key = json.dumps([call.call.name, dict(call.call.arguments)], sort_keys=True)
            replies[key].setdefault(following[0].content, f"{task.id}/{_place(index)}")
    for key, places in replies.items():
        if len(places) > 1:
            first, *others = places.values()
            for other in others:
                task_id, field = other.split("/")
                message = f"{json.loads(key)[0]} replied something else to the same call in {first}"
                yield Spot(f"{message}.", task_id, field)


def tool_differs(dataset: AtomicDataset) -> Iterator[Spot]:
    """Tools whose definition in a task is not the one of toolmeta.json."""
    for task in dataset.tasks.values():
        for index, tool in enumerate(task.tools):
            listed = dataset.tools.get(tool.name)
            if listed is not None and tool != listed:
                yield Spot(
                    f"{tool.name} differs from {TOOLMETA}: {_difference(tool, listed)}.",
                    task.id,
                    f"tools.{index}",
                )


def tool_unknown(dataset: AtomicDataset) -> Iterator[Spot]:
    """Tools of a task that toolmeta.json does not have."""
    for task in dataset.tasks.values():
        for index, tool in enumerate(task.tools):
            if dataset.tools and tool.name not in dataset.tools:
                yield Spot(f"{tool.name} is not in {TOOLMETA}.", task.id, f"tools.{index}")


def tool_twice(dataset: AtomicDataset) -> Iterator[Spot]:
    """Tools that a task lists more than once."""
    for task in dataset.tasks.values():
        for name, count in Counter(tool.name for tool in task.tools).items():
            if count > 1:
                yield Spot(f"{name} is listed {counted(count, 'time')}.", task.id, "tools")


def description_copied(dataset: AtomicDataset) -> Iterator[Spot]:
    """Two tools of toolmeta.json with one description."""
    seen: dict[str, str] = {}
    for tool in dataset.tools.values():
        if tool.description and tool.description in seen:
            other = seen[tool.description]
            yield Spot(
                f"{tool.name} has the description of {other}.",
                field=f"{tool.name}.description",
                file=TOOLMETA,
            )
        seen.setdefault(tool.description, tool.name)


def call_not_offered(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference calls of tools that the task does not offer."""
    for task, index, call in _calls(dataset):
        if call.call.name not in task.offered:
            yield Spot(f"{call.call.name} is not among its tools.", task.id, _place(index))


def arguments_unfit(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference arguments that the task's own definition of the tool does not allow."""
    for task, index, call in _calls(dataset):
        tool = task.offered.get(call.call.name)
        if tool is not None:
            for problem in _argument_problems(call, tool):
                yield Spot(f"{tool.name}: {problem}.", task.id, _place(index))


def arguments_unlisted(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference arguments that toolmeta.json lacks, so that no agent shown it can predict them."""
    for task, index, call in _calls(dataset):
        listed = dataset.tools.get(call.call.name)
        if listed is not None:
            for name in call.call.arguments:
                if listed.input(name) is None:
                    message = f"{listed.name} has no argument {name!r} in {TOOLMETA}."
                    yield Spot(message, task.id, f"{_place(index)}.{name}")


def file_not_attached(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference calls on files that the task does not have."""
    for task, index, call in _calls(dataset):
        tool = task.offered.get(call.call.name)
        present = [*(item.path for item in task.attachments), PLACEHOLDER_IMAGE]
        for name, value in call.call.arguments.items():
            parameter = None if tool is None else tool.input(name)
            if parameter is not None and parameter.type in FILE_TYPES and value not in present:
                message = f"{call.call.name} takes {value!r}, which is not a file of the task."
                yield Spot(message, task.id, f"{_place(index)}.{name}")


def plot_unparsable(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference Plot commands that are not Python."""
    for task, index, call in _calls(dataset):
        command = call.call.arguments.get("command")
        if call.call.name == "Plot" and isinstance(command, str):
            problem = _syntax_problem(command)
            if problem is not None:
                yield Spot(f"the Plot command is not Python: {problem}.", task.id, _place(index))


def whitelist_unmatchable(dataset: AtomicDataset) -> Iterator[Spot]:
    """Whitelists that upstream's rule cannot match, whatever is answered."""
    for task in dataset.tasks.values():
        if isinstance(task.answer, WhitelistAnswer):
            for group in self_rejecting_groups(task.answer):
                aliases = " or ".join(repr(alias) for alias in group)
                message = f"upstream's rule never finds {aliases}: its word edges are not letters."
                yield Spot(message, task.id, "gt_answer.whitelist")


def call_without_thought(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference calls with neither thought nor text."""
    for task, index, call in _calls(dataset):
        if not call.thought and not call.content:
            yield Spot("the call has neither thought nor text.", task.id, _place(index))


def content_beside_call(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference calls that carry a text beside the call."""
    for task, index, call in _calls(dataset):
        if call.content:
            yield Spot("a text stands beside the call.", task.id, f"{_place(index)}.content")


def placeholder_image(dataset: AtomicDataset) -> Iterator[Spot]:
    """Reference calls on the placeholder of an image that an earlier call produced."""
    for task, index, call in _calls(dataset):
        for name, value in call.call.arguments.items():
            if value == PLACEHOLDER_IMAGE:
                message = f"{call.call.name} takes the placeholder of an earlier tool's image."
                yield Spot(message, task.id, f"{_place(index)}.{name}")


def _calls(dataset: AtomicDataset) -> Iterator[tuple[AtomicTask, int, CallTurn]]:
    for task in dataset.tasks.values():
        for index, turn in enumerate(task.dialogue):
            if isinstance(turn, CallTurn):
                yield task, index, turn


def _place(index: int) -> str:
    return f"dialogs.{index}"


def _difference(tool: ToolSpec, listed: ToolSpec) -> str:
    own = {str(parameter.name) for parameter in tool.inputs}
    known = {str(parameter.name) for parameter in listed.inputs}
    parts = [f"adds {name!r}" for name in sorted(own - known)]
    parts += [f"lacks {name!r}" for name in sorted(known - own)]
    return ", ".join(parts) or "other words or types"


def _argument_problems(call: CallTurn, tool: ToolSpec) -> Iterator[str]:
    given = call.call.arguments
    for parameter in tool.inputs:
        name = str(parameter.name)
        if name not in given:
            if not parameter.optional:
                yield f"the required argument {name!r} is missing"
        elif not _fits(given[name], parameter.type):
            yield f"{name!r} is {given[name]!r}, not of type {parameter.type}"
    for name in given:
        if tool.input(name) is None:
            yield f"it has no argument {name!r}"


def _fits(value: JsonValue, kind: ParameterType) -> bool:
    if isinstance(value, bool) and kind != "bool":
        return False
    return isinstance(value, PYTHON_TYPES.get(kind, (str,)))


def _syntax_problem(command: str) -> str | None:
    fenced = FENCED.search(command)
    code = fenced.group(1) if fenced else command
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(code)
    except SyntaxError as exc:
        return f"{exc.msg} at line {exc.lineno}"
    except (ValueError, RecursionError, MemoryError) as exc:
        return str(exc) or type(exc).__name__
    return None


_Checked = TypeVar("_Checked", contravariant=True)


@dataclass(frozen=True)
class Check(Generic[_Checked]):
    """One thing to look for: how grave it is, and the function that finds its places."""

    severity: Severity
    find: Callable[[_Checked], Iterator[Spot]]


ATOMIC_CHECKS: Mapping[str, Check[AtomicDataset]] = {
    "attachment-missing": Check("error", missing_attachments),
    "not-the-release": Check("note", not_the_release),
    "changed-since-fetch": Check("error", changed_since_fetch),
    "bytes-disagree": Check("warning", bytes_disagree),
    "file-unused": Check("note", unused_images),
    "no-final-answer": Check("warning", no_final_answer),
    "call-without-reply": Check("warning", call_without_reply),
    "reply-of-another-tool": Check("warning", reply_of_another_tool),
    "unequal-replies": Check("warning", unequal_replies),
    "tool-differs": Check("warning", tool_differs),
    "tool-unknown": Check("warning", tool_unknown),
    "tool-twice": Check("warning", tool_twice),
    "description-copied": Check("warning", description_copied),
    "call-not-offered": Check("warning", call_not_offered),
    "argument-unfit": Check("warning", arguments_unfit),
    "argument-unlisted": Check("warning", arguments_unlisted),
    "file-not-attached": Check("warning", file_not_attached),
    "plot-unparsable": Check("warning", plot_unparsable),
    "whitelist-unmatchable": Check("warning", whitelist_unmatchable),
    "call-without-thought": Check("note", call_without_thought),
    "content-beside-call": Check("note", content_beside_call),
    "placeholder-image": Check("note", placeholder_image),
}

WORKFLOW_CHECKS: Mapping[str, Check[WorkflowDataset]] = {
    "attachment-missing": Check("error", missing_attachments),
    "changed-since-fetch": Check("error", changed_since_fetch),
    "bytes-disagree": Check("warning", bytes_disagree),
    "type-disagrees": Check("note", type_disagrees),
    "incomplete": Check("note", incomplete),
    "no-checkpoints": Check("error", no_checkpoints),
    "leaf-without-requirement": Check("error", leaf_without_requirement),
    "checkpoint-twice": Check("error", checkpoint_twice),
    "weight-zero": Check("warning", weight_zero),
    "category-unknown": Check("note", category_unknown),
}


class Verified(NamedTuple):
    """What loading and the checks found, in the order of the tasks and checks."""

    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing keeps a task from being measured."""
        return all(finding.severity != "error" for finding in self.findings)


def verify(dataset: Dataset, more: Mapping[str, Check[AtomicDataset]] | None = None) -> Verified:
    """Run every check of the dataset's table, and more that need what lies above this layer."""
    found = list(dataset.findings)
    if isinstance(dataset, AtomicDataset):
        found += _run({**ATOMIC_CHECKS, **(more or {})}, dataset, dataset.file)
    else:
        found += _run(WORKFLOW_CHECKS, dataset, dataset.file)
    return Verified(tuple(found))


def _run(checks: Mapping[str, Check[_Checked]], dataset: _Checked, file: str) -> Iterator[Finding]:
    for name, check in checks.items():
        for spot in check.find(dataset):
            yield Finding(
                check=name,
                severity=check.severity,
                file=spot.file or file,
                task=spot.task,
                field=spot.field,
                message=spot.message,
            )
