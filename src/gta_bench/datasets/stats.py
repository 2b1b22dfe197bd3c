"""Counts of what a dataset contains."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from gta_bench.datasets.model import AtomicDataset, WorkflowDataset
from gta_bench.records.atomic import Answer, WhitelistAnswer
from gta_bench.records.base import Record
from gta_bench.records.dialogue import AnswerTurn, ReplyTurn

_Counts = dict[str, int]


class AtomicStats(Record):
    """Counts of GTA-Atomic; the names follow the released files."""

    dataset: Literal["atomic"] = "atomic"
    tasks: int
    tools: int
    tools_per_task: _Counts
    attachments: int
    steps: int
    tool_calls: int
    tool_messages: int
    answers: int
    gt_answer: _Counts
    calls_per_tool: _Counts


class WorkflowStats(Record):
    """Counts of GTA-Workflow."""

    dataset: Literal["workflow"] = "workflow"
    tasks: int
    tools: int
    attachments: int
    top_level_checkpoints: int
    leaves: int
    leaves_per_task: _Counts
    tasks_per_category: _Counts


def atomic_stats(dataset: AtomicDataset) -> AtomicStats:
    """Count the contents of GTA-Atomic's tasks."""
    tasks = dataset.tasks.values()
    turns = [turn for task in tasks for turn in task.dialogue]
    calls = [call for task in tasks for call in task.calls]
    return AtomicStats(
        tasks=len(tasks),
        tools=len(dataset.tools),
        tools_per_task=_count_sizes(len(task.tools) for task in tasks),
        attachments=sum(len(task.attachments) for task in tasks),
        steps=sum(len(task.steps) for task in tasks),
        tool_calls=len(calls),
        tool_messages=sum(isinstance(turn, ReplyTurn) for turn in turns),
        answers=sum(isinstance(turn, AnswerTurn) for turn in turns),
        gt_answer=dict(Counter(_answer_kind(task.answer) for task in tasks)),
        calls_per_tool=dict(Counter(call.call.name for call in calls).most_common()),
    )


def workflow_stats(dataset: WorkflowDataset) -> WorkflowStats:
    """Count the contents of GTA-Workflow's tasks."""
    tasks = dataset.tasks.values()
    leaves = [len(list(task.leaves())) for task in tasks]
    return WorkflowStats(
        tasks=len(tasks),
        tools=len(dataset.tools),
        attachments=sum(len(task.attachments) for task in tasks),
        top_level_checkpoints=sum(len(task.checkpoints) for task in tasks),
        leaves=sum(leaves),
        leaves_per_task=_count_sizes(leaves),
        tasks_per_category=dict(Counter(str(task.category) for task in tasks).most_common()),
    )


def _answer_kind(answer: Answer | None) -> str:
    """The JSON type of `gt_answer` in the released file."""
    if answer is None:
        return "null"
    return "dict" if isinstance(answer, WhitelistAnswer) else "list"


def _count_sizes(sizes: Iterable[int]) -> _Counts:
    return {str(size): count for size, count in sorted(Counter(sizes).items())}
