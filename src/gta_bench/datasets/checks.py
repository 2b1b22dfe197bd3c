"""The checks that `gta data verify` runs over a loaded dataset."""

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from gta_bench.datasets.files import KIND_OF_SUFFIX, Location, file_kind, sha256
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.pinned import PINNED_FILES, find_changes, read_receipt
from gta_bench.datasets.released import TOOLMETA
from gta_bench.errors import format_count
from gta_bench.metrics.compat.view import self_rejecting_groups
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn
from gta_bench.records.finding import Finding, Severity
from gta_bench.records.tools import FILE_TYPES, ParameterType, ToolSpec
from gta_bench.records.workflow import Checkpoint, WorkflowTask


class Spot(NamedTuple):
    """What a check found, and where; `file` defaults to the dataset's main file."""

    message: str
    task: str | None = None
    field: str | None = None
    file: str | None = None


class _Call(NamedTuple):
    """A tool call of a reference dialogue, with the reply that follows it."""

    task: AtomicTask
    field: str
    turn: CallTurn
    reply: ReplyTurn | None

    @property
    def name(self) -> str:
        return self.turn.call.name

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        return self.turn.call.arguments


_Checked = TypeVar("_Checked", contravariant=True)
_DatasetT = TypeVar("_DatasetT", AtomicDataset, WorkflowDataset)
_AnyTask = AtomicTask | WorkflowTask
# Messages with the field that each is about.
_Found = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Check(Generic[_Checked]):
    """A check: the severity of its findings, and the function that finds them."""

    severity: Severity
    find: Callable[[_Checked], Iterator[Spot]]


def _by_task(
    find: Callable[[_DatasetT, Any], _Found],
) -> Callable[[_DatasetT], Iterator[Spot]]:
    """A check of a dataset from a check of one task."""

    def find_all(dataset: _DatasetT) -> Iterator[Spot]:
        for task in dataset.tasks.values():
            yield from (Spot(message, task.id, field) for message, field in find(dataset, task))

    return find_all


def _by_call(
    find: Callable[[AtomicDataset, _Call], _Found],
) -> Callable[[AtomicDataset], Iterator[Spot]]:
    """A check of a dataset from a check of one call in the references."""

    def find_all(dataset: AtomicDataset) -> Iterator[Spot]:
        for call in _list_calls(dataset):
            yield from (
                Spot(message, call.task.id, field) for message, field in find(dataset, call)
            )

    return find_all


def _list_calls(dataset: AtomicDataset) -> Iterator[_Call]:
    for task in dataset.tasks.values():
        for index, turn in enumerate(task.dialogue):
            if isinstance(turn, CallTurn):
                after = next(iter(task.dialogue[index + 1 :]), None)
                reply = after if isinstance(after, ReplyTurn) else None
                yield _Call(task, f"dialogs.{index}", turn, reply)


# Files

TYPE_OF_KIND = {
    **dict.fromkeys(("jpeg", "png", "webp", "gif"), "image"),
    **dict.fromkeys(("wav", "mp3"), "audio"),
    "mp4": "video",
}
IMAGE_FOLDER = "image"


def find_missing_attachments(dataset: Dataset, task: _AnyTask) -> _Found:
    """Input files that are not in the dataset's folder."""
    for index, attachment in enumerate(task.attachments):
        if not (dataset.root / attachment.source).is_file():
            yield f"{attachment.source} is missing.", f"files.{index}"


def find_unpublished(dataset: AtomicDataset) -> Iterator[Spot]:
    """Files whose content is not the published one."""
    for name, published in PINNED_FILES["atomic"].items():
        file = dataset.root / name
        if file.is_file() and sha256(file) != published:
            yield Spot("is not the file of the release (its sha256 differs).", file=name)


def find_changed_files(dataset: Dataset) -> Iterator[Spot]:
    """Files that differ from what `gta data fetch` wrote."""
    receipt = read_receipt(dataset.root)
    if receipt is not None:
        for name in find_changes(dataset.root, receipt):
            yield Spot("differs from what was fetched.", file=name)


def find_wrong_suffixes(dataset: Dataset) -> Iterator[Spot]:
    """Files whose bytes are of another kind than their extension says."""
    owners = {item.source: task.id for task in dataset.tasks.values() for item in task.attachments}
    for source in sorted(owners.keys() | _list_images(dataset.root)):
        file = dataset.root / source
        claimed = KIND_OF_SUFFIX.get(PurePosixPath(source).suffix.lower())
        kind = file_kind(file) if file.is_file() else None
        if claimed is not None and kind is not None and kind != claimed:
            message = f"{source} is {kind} by its bytes, {claimed} by its name."
            owner = owners.get(source)
            yield Spot(message, owner, None if owner is None else "files", source)


def find_wrong_types(_: Dataset, task: _AnyTask) -> _Found:
    """Files whose declared type is not what their name says."""
    for index, attachment in enumerate(task.attachments):
        suffix = PurePosixPath(attachment.source).suffix.lower()
        expected = TYPE_OF_KIND.get(KIND_OF_SUFFIX.get(suffix, ""), "file")
        if attachment.type not in (None, expected):
            message = f"{attachment.source} is declared {attachment.type!r}, not {expected!r}."
            yield message, f"files.{index}.type"


def find_unused_images(dataset: AtomicDataset) -> Iterator[Spot]:
    """Images of the release that no task uses."""
    used = {item.source for task in dataset.tasks.values() for item in task.attachments}
    for source in sorted(_list_images(dataset.root) - used):
        yield Spot("no task uses this file.", file=source)


def _list_images(root: Path) -> set[str]:
    files = (root / IMAGE_FOLDER).glob("*")
    return {f"{IMAGE_FOLDER}/{file.name}" for file in files if file.is_file()}


# GTA-Workflow

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


def find_missing_tasks(dataset: WorkflowDataset) -> Iterator[Spot]:
    """A dataset with another number of tasks than the release."""
    if len(dataset.tasks) != RELEASED_TASKS:
        yield Spot(
            f"has {format_count(len(dataset.tasks), 'task')}; the release has {RELEASED_TASKS}."
        )


def find_no_checkpoints(_: WorkflowDataset, task: WorkflowTask) -> _Found:
    """Tasks that cannot be judged."""
    if not task.checkpoints:
        yield "the task has no checkpoint.", "sub_tasks"


def find_empty_leaves(_: WorkflowDataset, task: WorkflowTask) -> _Found:
    """Leaves without a requirement that a judge could score."""
    for leaf in task.leaves():
        if not (leaf.requirements or "").strip():
            yield "the leaf has no requirement.", leaf.id


def find_shared_ids(_: WorkflowDataset, task: WorkflowTask) -> _Found:
    """Ids that two nodes of a task share, so that verdicts could not be told apart."""
    for name, count in Counter(node.id for node in _list_nodes(task.checkpoints)).items():
        if count > 1:
            yield f"{count} checkpoints have this id.", name


def find_zero_weights(_: WorkflowDataset, task: WorkflowTask) -> _Found:
    """Checkpoints that do not count."""
    for node in _list_nodes(task.checkpoints):
        if node.weight == 0:
            yield "the checkpoint's weight is 0.", node.id


def find_unknown_category(_: WorkflowDataset, task: WorkflowTask) -> _Found:
    """Categories other than the six of the release."""
    if task.category not in CATEGORIES:
        message = f"the category {task.category!r} is not one of the release's six."
        yield message, "workflow_category_6class"


def _list_nodes(nodes: Iterable[Checkpoint]) -> Iterator[Checkpoint]:
    for node in nodes:
        yield node
        yield from _list_nodes(node.children)


# GTA-Atomic

PYTHON_TYPES: dict[ParameterType, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}
FENCED = re.compile(r"```(?:python)?\s*\n(.*?)```", re.DOTALL)


def find_no_final_answer(_: AtomicDataset, task: AtomicTask) -> _Found:
    """Tasks whose reference does not end with an answer."""
    last = task.dialogue[-1]
    if not isinstance(last, AnswerTurn):
        yield f"the reference ends with a {last.turn}, not with an answer.", "dialogs"


def find_unanswered_calls(_: AtomicDataset, call: _Call) -> _Found:
    """Tool calls without a tool message after them."""
    if call.reply is None:
        yield f"the call of {call.name} has no reply.", call.field


def find_misplaced_replies(_: AtomicDataset, task: AtomicTask) -> _Found:
    """Replies by a tool other than the one called before them."""
    for index, (before, turn) in enumerate(pairwise((None, *task.dialogue))):
        called = before.call.name if isinstance(before, CallTurn) else None
        if isinstance(turn, ReplyTurn) and turn.tool != called:
            yield f"{turn.tool} replies without being called.", f"dialogs.{index}"


def find_unequal_replies(dataset: AtomicDataset) -> Iterator[Spot]:
    """Equal calls with different recorded replies: a reply was edited by hand."""
    replies: dict[str, dict[str, _Call]] = defaultdict(dict)
    for call in _list_calls(dataset):
        if call.reply is not None and call.reply.type == "text":
            key = json.dumps([call.name, dict(call.arguments)], sort_keys=True)
            replies[key].setdefault(call.reply.content, call)
    for calls in replies.values():
        first, *others = calls.values()
        for other in others:
            source = f"{first.task.id}/{first.field}"
            message = f"{other.name} gave another reply to the same call in {source}."
            yield Spot(message, other.task.id, other.field)


def find_changed_tools(dataset: AtomicDataset, task: AtomicTask) -> _Found:
    """Tools whose definition in a task differs from toolmeta.json."""
    for index, tool in enumerate(task.tools):
        listed = dataset.tools.get(tool.name)
        if listed is not None and tool != listed:
            own = {str(parameter.name) for parameter in tool.inputs}
            known = {str(parameter.name) for parameter in listed.inputs}
            parts = [f"adds {name!r}" for name in sorted(own - known)]
            parts += [f"lacks {name!r}" for name in sorted(known - own)]
            difference = ", ".join(parts) or "other descriptions or types"
            yield f"{tool.name} differs from {TOOLMETA}: {difference}.", f"tools.{index}"


def find_unknown_tools(dataset: AtomicDataset, task: AtomicTask) -> _Found:
    """Tools of a task that toolmeta.json does not have."""
    for index, tool in enumerate(task.tools):
        if dataset.tools and tool.name not in dataset.tools:
            yield f"{tool.name} is not in {TOOLMETA}.", f"tools.{index}"


def find_repeated_tools(_: AtomicDataset, task: AtomicTask) -> _Found:
    """Tools that a task lists more than once."""
    for name, count in Counter(tool.name for tool in task.tools).items():
        if count > 1:
            yield f"{name} is listed {format_count(count, 'time')}.", "tools"


def find_copied_descriptions(dataset: AtomicDataset) -> Iterator[Spot]:
    """Tools of toolmeta.json with the description of another tool."""
    seen: dict[str, str] = {}
    for tool in dataset.tools.values():
        if tool.description and tool.description in seen:
            message = f"{tool.name} has the description of {seen[tool.description]}."
            yield Spot(message, field=f"{tool.name}.description", file=TOOLMETA)
        seen.setdefault(tool.description, tool.name)


def find_calls_not_offered(_: AtomicDataset, call: _Call) -> _Found:
    """Reference calls of tools that the task does not offer."""
    if call.name not in call.task.offered:
        yield f"{call.name} is not among its tools.", call.field


def find_unfit_arguments(_: AtomicDataset, call: _Call) -> _Found:
    """Reference arguments that the task's own definition of the tool does not allow."""
    tool = call.task.offered.get(call.name)
    if tool is not None:
        for problem in _list_argument_problems(call.arguments, tool):
            yield f"{tool.name}: {problem}.", call.field


def _list_argument_problems(given: Mapping[str, JsonValue], tool: ToolSpec) -> Iterator[str]:
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


def find_unlisted_arguments(dataset: AtomicDataset, call: _Call) -> _Found:
    """Reference arguments that toolmeta.json lacks, so that no agent shown it can predict them."""
    listed = dataset.tools.get(call.name)
    for name in call.arguments:
        if listed is not None and listed.input(name) is None:
            message = f"{listed.name} has no argument {name!r} in {TOOLMETA}."
            yield message, f"{call.field}.{name}"


def find_unattached_files(_: AtomicDataset, call: _Call) -> _Found:
    """Reference calls on files that the task does not have."""
    tool = call.task.offered.get(call.name)
    present = [*(item.path for item in call.task.attachments), PLACEHOLDER_IMAGE]
    for name, value in call.arguments.items():
        parameter = None if tool is None else tool.input(name)
        if parameter is not None and parameter.type in FILE_TYPES and value not in present:
            message = f"{call.name} takes {value!r}, which is not a file of the task."
            yield message, f"{call.field}.{name}"


def find_broken_plots(_: AtomicDataset, call: _Call) -> _Found:
    """Reference Plot commands that are not Python."""
    command = call.arguments.get("command")
    if call.name == "Plot" and isinstance(command, str):
        fenced = FENCED.search(command)
        try:
            with warnings.catch_warnings(action="ignore"):
                ast.parse(fenced.group(1) if fenced else command)
        except SyntaxError as exc:
            problem = f"{exc.msg} at line {exc.lineno}"
            yield f"the Plot command is not Python: {problem}.", call.field
        except (ValueError, RecursionError, MemoryError) as exc:
            problem = str(exc) or type(exc).__name__
            yield f"the Plot command is not Python: {problem}.", call.field


def find_unmatchable_answers(_: AtomicDataset, task: AtomicTask) -> _Found:
    """Whitelists that upstream's rule cannot match, whatever the answer is."""
    if isinstance(task.answer, WhitelistAnswer):
        for group in self_rejecting_groups(task.answer):
            aliases = " or ".join(repr(alias) for alias in group)
            message = f"upstream's rule never matches {aliases}, because of its word boundaries."
            yield message, "gt_answer.whitelist"


def find_missing_thoughts(_: AtomicDataset, call: _Call) -> _Found:
    """Reference calls with neither thought nor text."""
    if not call.turn.thought and not call.turn.content:
        yield "the call has neither thought nor text.", call.field


def find_text_with_calls(_: AtomicDataset, call: _Call) -> _Found:
    """Reference calls in a message that also has text."""
    if call.turn.content:
        yield "the message has a text besides the call.", f"{call.field}.content"


def find_placeholder_images(_: AtomicDataset, call: _Call) -> _Found:
    """Reference calls on the placeholder for an image that an earlier call produced."""
    for name, value in call.arguments.items():
        if value == PLACEHOLDER_IMAGE:
            message = f"{call.name} takes the placeholder for an earlier tool's image."
            yield message, f"{call.field}.{name}"


ATOMIC_CHECKS: Mapping[str, Check[AtomicDataset]] = {
    "attachment-missing": Check("error", _by_task(find_missing_attachments)),
    "not-the-release": Check("note", find_unpublished),
    "changed-since-fetch": Check("error", find_changed_files),
    "bytes-disagree": Check("warning", find_wrong_suffixes),
    "file-unused": Check("note", find_unused_images),
    "no-final-answer": Check("warning", _by_task(find_no_final_answer)),
    "call-without-reply": Check("warning", _by_call(find_unanswered_calls)),
    "reply-of-another-tool": Check("warning", _by_task(find_misplaced_replies)),
    "unequal-replies": Check("warning", find_unequal_replies),
    "tool-differs": Check("warning", _by_task(find_changed_tools)),
    "tool-unknown": Check("warning", _by_task(find_unknown_tools)),
    "tool-twice": Check("warning", _by_task(find_repeated_tools)),
    "description-copied": Check("warning", find_copied_descriptions),
    "call-not-offered": Check("warning", _by_call(find_calls_not_offered)),
    "argument-unfit": Check("warning", _by_call(find_unfit_arguments)),
    "argument-unlisted": Check("warning", _by_call(find_unlisted_arguments)),
    "file-not-attached": Check("warning", _by_call(find_unattached_files)),
    "plot-unparsable": Check("warning", _by_call(find_broken_plots)),
    "whitelist-unmatchable": Check("warning", _by_task(find_unmatchable_answers)),
    "call-without-thought": Check("note", _by_call(find_missing_thoughts)),
    "content-beside-call": Check("note", _by_call(find_text_with_calls)),
    "placeholder-image": Check("note", _by_call(find_placeholder_images)),
}

WORKFLOW_CHECKS: Mapping[str, Check[WorkflowDataset]] = {
    "attachment-missing": Check("error", _by_task(find_missing_attachments)),
    "changed-since-fetch": Check("error", find_changed_files),
    "bytes-disagree": Check("warning", find_wrong_suffixes),
    "type-disagrees": Check("note", _by_task(find_wrong_types)),
    "incomplete": Check("note", find_missing_tasks),
    "no-checkpoints": Check("error", _by_task(find_no_checkpoints)),
    "leaf-without-requirement": Check("error", _by_task(find_empty_leaves)),
    "checkpoint-twice": Check("error", _by_task(find_shared_ids)),
    "weight-zero": Check("warning", _by_task(find_zero_weights)),
    "category-unknown": Check("note", _by_task(find_unknown_category)),
}
# What only the release has: its number of tasks and its categories.
RELEASE_ONLY = ("incomplete", "category-unknown")


class Verified(NamedTuple):
    """The findings of loading and of the checks, in the order of the checks and tasks."""

    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether every task can be measured: no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)


def verify(dataset: Dataset, more: Mapping[str, Check[AtomicDataset]] | None = None) -> Verified:
    """Run every check for the dataset, and `more` that need modules above this layer."""
    found = list(dataset.findings)
    if isinstance(dataset, AtomicDataset):
        found += _run({**ATOMIC_CHECKS, **(more or {})}, dataset, dataset.file)
    else:
        skipped = RELEASE_ONLY if dataset.layout == "folders" else ()
        chosen = {name: one for name, one in WORKFLOW_CHECKS.items() if name not in skipped}
        found += _run(chosen, dataset, dataset.file)
    return Verified(tuple(found))


def _run(checks: Mapping[str, Check[_Checked]], dataset: _Checked, file: str) -> Iterator[Finding]:
    for name, check in checks.items():
        for spot in check.find(dataset):
            where = Location(spot.file or file, spot.task)
            yield where.finding(name, spot.message, field=spot.field, severity=check.severity)
