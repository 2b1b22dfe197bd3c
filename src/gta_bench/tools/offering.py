"""Which tools are offered for a task."""

from collections.abc import Mapping

from gta_bench.datasets.model import Dataset
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.catalog import tool_names


def list_own_tools(dataset: Dataset, task: AtomicTask | WorkflowTask) -> dict[str, ToolSpec | None]:
    """Return the tools of a task, with the dataset's definitions if it has any.

    A Workflow task that lists none gets those of the dataset, or all of the catalog.
    """
    if isinstance(task, AtomicTask):
        return dict(task.offered)
    names = task.tools or tuple(dataset.tools) or tool_names()
    return {name: dataset.tools.get(name) for name in names}


def list_offered_tools(
    own: Mapping[str, ToolSpec | None], known: Mapping[str, ToolSpec]
) -> list[ToolSpec]:
    """Return each tool as the source defines it, or else as the dataset does."""
    found = [known.get(name) or spec for name, spec in own.items()]
    return [spec for spec in found if spec is not None]
