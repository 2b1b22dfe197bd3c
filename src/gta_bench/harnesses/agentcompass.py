"""Reader of AgentCompass's results: what the plugin stored in the folder of each attempt.

An attempt's folder has `gta/attempt.json`, a `CompassAttempt`, and the deliverables in `gta/files`.
Of AgentCompass's own layout only the names of folders are used, `TASK--DIGEST/attempt-N`, to find
attempts of which nothing was stored.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.files import parse, read_json
from gta_bench.datasets.model import Dataset
from gta_bench.errors import DatasetError, join_first
from gta_bench.harnesses import collecting
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.records.finding import Finding
from gta_bench.records.finished import COMPASS_ATTEMPT, COMPASS_FILES, CompassAttempt

_FOLDER = re.compile(r"attempt[-_]([1-9]\d*)")
_NOTHING_STORED = "AgentCompass began this attempt, but nothing of it was stored."


def read_agentcompass(
    source: Path, dataset: Dataset, tasks: Collection[str], *, attempt: int = 1
) -> Finished:
    """Read the attempts with that number below a folder: a run of AgentCompass, or a part of it.

    Only attempts of `tasks` must have a result, and be of the tasks as the dataset has them.
    """
    root = source.resolve(strict=True)
    deliveries: dict[str, Delivery] = {}
    findings: list[Finding] = []
    lost: dict[str, DatasetError] = {}
    for file, found in _find_attempts(root, dataset.tasks):
        name = file.relative_to(root).as_posix()
        if found.attempt != attempt or (found.task in dataset.tasks and found.task not in tasks):
            continue
        if found.task not in dataset.tasks:
            findings.append(_warn(name, found.task, "is not a task of the dataset."))
        elif found.fault:
            lost[found.task] = DatasetError(found.fault, file=name, task=found.task)
        elif found.asks != task_digests(dataset, found.task).asks:
            raise DatasetError(
                "is an attempt of another task with this id: check the dataset and its folder "
                "(--dataset, --data).",
                file=name,
                task=found.task,
            )
        elif found.task in deliveries:
            raise DatasetError(
                f"is attempt {attempt} of the task for the second time; import one run at a time.",
                file=name,
                task=found.task,
            )
        else:
            deliveries[found.task] = _deliver(file.parent, found)
    # AgentCompass starts a task again in the folder of another run, which may be beside this one.
    _refuse_lost([one for task, one in lost.items() if task not in deliveries])
    if not deliveries:
        raise DatasetError(
            f"contains no `{COMPASS_ATTEMPT}` of attempt {attempt} of a task of the dataset. The "
            "plugin writes them into AgentCompass's results; see docs/how-to/agentcompass.md.",
            file=str(source),
        )
    return Finished(deliveries, findings=tuple(findings))


def _refuse_lost(lost: Sequence[DatasetError]) -> None:
    if lost:
        first, others = lost[0], [str(one.task) for one in lost[1:]]
        also = f" (The same is true of {join_first(others)}.)" if others else ""
        raise DatasetError(
            f"has no result: {first.problem} Let AgentCompass run the task again, or leave it out "
            f"with --tasks.{also}",
            file=first.file,
            task=first.task,
        )


def _find_attempts(root: Path, tasks: Collection[str]) -> Iterator[tuple[Path, CompassAttempt]]:
    """Yield the file of each attempt and what it says; a folder without a file is a fault.

    Folders of attempts are not searched: they have what a harness delivered.
    """
    ids = {sha256(task.encode()).hexdigest(): task for task in tasks} | {one: one for one in tasks}
    for place, folders, _ in os.walk(root):
        folders.sort()
        file = Path(place, COMPASS_ATTEMPT)
        if file.is_file():
            name = file.relative_to(root).as_posix()
            found: CompassAttempt | None = parse(CompassAttempt, read_json(file), file=name)
        else:
            file = Path(place)
            found = _find_lost(file, ids)
        if found is not None:
            folders.clear()
            yield file, found


def _find_lost(folder: Path, ids: Mapping[str, str]) -> CompassAttempt | None:
    """Return the attempt that AgentCompass made this folder for, by its name."""
    number, above = _FOLDER.fullmatch(folder.name), folder.parent.name
    readable, _, digest = above.rpartition("--")
    task = ids.get(above) or ids.get(digest) or ids.get(readable)
    if number is None or task is None:
        return None
    return CompassAttempt(task=task, asks=None, fault=_NOTHING_STORED, attempt=int(number[1]))


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
