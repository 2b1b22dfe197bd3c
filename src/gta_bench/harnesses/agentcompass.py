"""Reader of AgentCompass's results: what the plugin stored in the folder of each attempt.

An attempt's folder has `gta/attempt.json`, a `CompassAttempt`, and the deliverables in `gta/files`.
Nothing else of AgentCompass's results is read, so their layout may change.
"""

from collections.abc import Iterable
from pathlib import Path

from gta_bench.datasets.files import parse, read_json
from gta_bench.errors import DatasetError
from gta_bench.harnesses import collecting
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.records.finding import Finding
from gta_bench.records.finished import COMPASS_ATTEMPT, COMPASS_FILES, CompassAttempt


def read_agentcompass(source: Path, tasks: Iterable[str], *, attempt: int = 1) -> Finished:
    """Read the attempts with that number below a folder: a run of AgentCompass, or a part of it."""
    root, known = source.resolve(strict=True), frozenset(tasks)
    deliveries: dict[str, Delivery] = {}
    findings: list[Finding] = []
    for file in sorted(root.rglob(f"{COMPASS_ATTEMPT}")):
        name = file.relative_to(root).as_posix()
        found = parse(CompassAttempt, read_json(file), file=name)
        if found.attempt != attempt:
            continue
        if found.task not in known:
            findings.append(_warn(name, found.task, "is not a task of the dataset."))
        elif found.task in deliveries:
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
