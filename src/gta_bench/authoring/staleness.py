"""Whether a pilot is still about its task: what verdicts depend on has not changed since."""

from pathlib import Path

from pydantic import ValidationError

from gta_bench.authoring.subject import PILOT_FILE
from gta_bench.checks.decide import VERSION as CHECKS_VERSION
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.judging import prompts
from gta_bench.judging.run_evidence import VERSION as EVIDENCE_VERSION
from gta_bench.records.pilot import Pilot


def reader_versions() -> dict[str, str]:
    """Return the versions of our code that scores depend on."""
    return {"checks": str(CHECKS_VERSION), "evidence": str(EVIDENCE_VERSION)}


def read_pilot(folder: Path) -> Pilot | str:
    """Return the pilot of a task folder, or why there is none."""
    file = folder / PILOT_FILE
    if not file.is_file():
        return "not piloted yet"
    try:
        return Pilot.model_validate_json(file.read_bytes())
    except ValidationError:
        return f"{PILOT_FILE} cannot be read; run `gta task pilot` again"


def find_stale(dataset: WorkflowDataset, task: str, pilot: Pilot) -> list[str]:
    """Return what changed since the pilot."""
    now = task_digests(dataset, task)
    then = pilot.task
    changed = [
        name
        for name, differs in (
            ("request", now.request != then.request),
            ("inputs", now.inputs != then.inputs),
            ("tools", now.tools != then.tools),
            ("leaves", now.leaf != then.leaf),
            ("weights", now.weighs != then.weighs),
            ("gold, wrong or cheat", now.proofs != then.proofs),
            ("readers", dict(pilot.readers) != reader_versions()),
            ("judge's prompts", pilot.prompts not in ("", prompts.digest())),
        )
        if differs
    ]
    if pilot.compute_rows() != pilot.rows:
        changed.append(f"{PILOT_FILE} (edited)")
    return changed
