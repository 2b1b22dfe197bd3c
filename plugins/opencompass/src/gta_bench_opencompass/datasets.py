"""The datasets: a row a task, with the whole record and the folder that its files lie in."""

from pathlib import Path

from opencompass.datasets.base import BaseDataset
from opencompass.registry import LOAD_DATASET

from datasets import Dataset
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset, WorkflowDataset
from gta_bench.datasets.workflow import load_workflow

# The columns that every config's reader_cfg names.
INPUT, OUTPUT = "request", "task"


@LOAD_DATASET.register_module()
class GTAAtomicDataset(BaseDataset):
    """GTA-Atomic in the folder `path`."""

    @staticmethod
    def load(path: str) -> Dataset:
        """One row a task."""
        return _rows(load_atomic(Path(path)))


@LOAD_DATASET.register_module()
class GTAWorkflowDataset(BaseDataset):
    """GTA-Workflow in the folder `path`."""

    @staticmethod
    def load(path: str) -> Dataset:
        """One row a task."""
        return _rows(load_workflow(Path(path)))


def _rows(dataset: AtomicDataset | WorkflowDataset) -> Dataset:
    root = str(dataset.root.resolve())
    return Dataset.from_list(
        [
            {INPUT: task.request, OUTPUT: task.model_dump_json(), "root": root}
            for task in dataset.tasks.values()
        ]
    )
