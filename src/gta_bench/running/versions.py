"""Versions of a dataset and the runs that have to follow: what each task and each run needs."""

from collections.abc import Sequence

from gta_bench.datasets.canary import read_canaries
from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.model import Dataset, WorkflowDataset
from gta_bench.errors import UsageError
from gta_bench.metrics.versions import TaskVersion, plan_task
from gta_bench.records.versions import DatasetDiff
from gta_bench.runs.directory import read_manifest
from gta_bench.runs.store import StorePath
from gta_bench.runs.versions import NewVersion, read_needs


def describe_version(dataset: Dataset) -> NewVersion:
    """Return the tasks of a dataset with their digests."""
    tasks = {
        name: TaskVersion(task, task_digests(dataset, name)) for name, task in dataset.tasks.items()
    }
    return NewVersion(dataset_digest(dataset), tasks, read_canaries(dataset.root))


def diff_datasets(old: Dataset, new: Dataset, runs: Sequence[StorePath] = ()) -> DatasetDiff:
    """Compare two versions of a dataset, and find what each run needs for the new one."""
    if type(old) is not type(new):
        raise UsageError("A GTA-Atomic and a GTA-Workflow dataset have no tasks in common.")
    kind = "workflow" if isinstance(new, WorkflowDataset) else "atomic"
    for run in runs:
        if (found := read_manifest(run).spec.dataset) != kind:
            raise UsageError(f"{run} is a run of {found}, but the datasets are of {kind}.")
    version = describe_version(new)
    before = {name: task_digests(old, name) for name in old.tasks}
    names = dict.fromkeys((*before, *version.tasks))
    return DatasetDiff(
        old=dataset_digest(old),
        new=version.digest,
        tasks=tuple(plan_task(name, before.get(name), version.tasks.get(name)) for name in names),
        runs=tuple(read_needs(run, version, before) for run in runs),
    )
