"""Checks of GTA-Atomic's tasks: dialogues, tools, arguments, recorded replies."""

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator

from pydantic import JsonValue

from gta_bench.datasets.convert import TOOLMETA
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.spot import Spot
from gta_bench.errors import counted
from gta_bench.metrics.compat.whitelist import self_rejecting_groups
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn
from gta_bench.records.tools import FILE_TYPES, ParameterType, ToolSpec

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
