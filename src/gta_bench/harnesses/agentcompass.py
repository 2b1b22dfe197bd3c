"""Reader of AgentCompass's results: what the plugin stored in the folder of each attempt.

An attempt's folder has `gta/attempt.json`, a `CompassAttempt`, and the deliverables in `gta/files`.
Nothing else of AgentCompass's results is read, so their layout may change.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.files import parse, read_json
from gta_bench.datasets.model import Dataset
from gta_bench.errors import DatasetError
from gta_bench.harnesses import collecting
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.records.finding import Finding
from gta_bench.records.finished import COMPASS_ATTEMPT, COMPASS_FILES, CompassAttempt


def read_agentcompass(
    source: Path, dataset: Dataset, tasks: Collection[str], *, attempt: int = 1
) -> Finished:
    """Read the attempts with that number below a folder: a run of AgentCompass, or a part of it.

    Only attempts of `tasks` must have a result, and be of the tasks as the dataset has them.
    """
    root = source.resolve(strict=True)
    deliveries: dict[str, Delivery] = {}
    findings: list[Finding] = []
    for file in _find_attempts(root):
        name = file.relative_to(root).as_posix()
        found = parse(CompassAttempt, read_json(file), file=name)
        if found.attempt != attempt or (found.task in dataset.tasks and found.task not in tasks):
            continue
        if found.task not in dataset.tasks:
            findings.append(_warn(name, found.task, "is not a task of the dataset."))
            continue
        if found.asks != task_digests(dataset, found.task).asks:
            raise DatasetError(
                "is an attempt of another task with this id: check the dataset and its folder "
                "(--dataset, --data).",
                file=name,
                task=found.task,
            )
        if found.fault:
            raise DatasetError(
                f"has no result: {found.fault} Let AgentCompass run the task again, or leave it "
                "out with --tasks.",
                file=name,
                task=found.task,
            )
        if found.task in deliveries:
            raise DatasetError(
                f"is attempt {attempt} of the task for the second time; import one run at a time.",
                file=name,
                task=found.task,
            )
        else:
            deliveries[found.task] = _deliver(file.parent, found)
    if not deliveries:
        raise DatasetError(
            f"contains no `{COMPASS_ATTEMPT}` of attempt {attempt} of a task of the dataset. The "
            "plugin writes them into AgentCompass's results; see docs/how-to/agentcompass.md.",
            file=str(source),
        )
    return Finished(deliveries, findings=tuple(findings))


def _find_attempts(root: Path) -> Iterator[Path]:
    """Yield the files of attempts; what a harness delivered under that name is none."""
    for file in sorted(root.rglob(COMPASS_ATTEMPT)):
        above = (one for one in file.parents if one.is_relative_to(root))
        if not any(one.name == COMPASS_FILES and _is_attempt(one.parent) for one in above):
            yield file


def _is_attempt(folder: Path) -> bool:
    return (folder.parent / COMPASS_ATTEMPT).is_file()


def _deliver(folder: Path, found: CompassAttempt) -> Delivery:
    listing = collecting.list_files(folder, COMPASS_FILES)
    left_out = (collecting.LeftOut(*one) for one in found.left_out)
    return Delivery(
        trace=found.trace,
        calls=found.calls,
        files=listing.files,
        left_out=(*left_out, *listing.left_out),
        meta=found.meta,
    )


def _warn(file: str, task: str, message: str) -> Finding:
    return Finding(
        check="finished-results", severity="warning", file=file, task=task, message=message
    )
