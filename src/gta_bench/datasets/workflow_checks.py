"""Checks of GTA-Workflow's tasks and checkpoint trees."""

from collections import Counter
from collections.abc import Iterator

from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.spot import Spot
from gta_bench.errors import counted
from gta_bench.records.workflow import Checkpoint

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
