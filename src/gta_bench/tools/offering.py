"""Which tools a task is told of."""

from collections.abc import Mapping

from gta_bench.datasets.model import Dataset
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.catalog import tool_names


def own_tools(dataset: Dataset, task: AtomicTask | WorkflowTask) -> dict[str, ToolSpec | None]:
    """The task's own tools with the dataset's definitions, where it has them.

    A Workflow task that lists none has all of the dataset's; else all of the catalog.
    """
    if isinstance(task, AtomicTask):
        return dict(task.offered)
    names = task.tools or tuple(dataset.tools) or tool_names()
    return {name: dataset.tools.get(name) for name in names}


def offered_tools(
    own: Mapping[str, ToolSpec | None], known: Mapping[str, ToolSpec]
) -> list[ToolSpec]:
    """Each tool as the source defines it, or as the dataset does where the source has none."""
    found = [known.get(name) or spec for name, spec in own.items()]
    return [spec for spec in found if spec is not None]
