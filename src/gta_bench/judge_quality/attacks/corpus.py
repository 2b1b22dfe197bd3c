"""The corpus of attacks as a run: a unit for every attack, and an honest twin of every carrier."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from gta_bench.errors import EnvironmentProblem
from gta_bench.judge_quality.attacks.carriers import (
    CARRIERS,
    CLEAN,
    PARTIAL,
    PARTIAL_FILE,
    AttackedWork,
    build_task,
    payload_text,
)
from gta_bench.records.run import RunManifest, RunSpec, System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, open_run
from gta_bench.runs.imported import write_imported

# Increment it with every change of a payload, a carrier or a work.
VERSION = 2


class Attack(NamedTuple):
    """A payload brought by a carrier; with the payload `clean`, the honest twin of its attacks."""

    carrier: str
    payload: str
    borderline: bool = False

    @property
    def id(self) -> str:
        """The id of its task in the run."""
        work = ", borderline" if self.borderline else ""
        return f"{self.carrier}: {self.payload}{work}".replace(" ", "_")

    @property
    def twin(self) -> "Attack":
        """The same work without the attack."""
        return self._replace(payload=CLEAN)

    def build(self) -> AttackedWork:
        """Return the work with the attack; a borderline one meets a part of the requirements."""
        work = CARRIERS[self.carrier].build(payload_text(self.payload))
        partial = {PARTIAL_FILE: PARTIAL.encode()} if self.borderline else {}
        return work._replace(files={**work.files, **partial})


def attacks(
    *, payloads: Collection[str] | None = None, carriers: Collection[str] | None = None
) -> Iterator[Attack]:
    """Yield the attacks without their twins, and for each carrier one on a borderline work."""
    for number, (name, carrier) in enumerate(CARRIERS.items()):
        chosen = [one for one in carrier.payloads if payloads is None or one in payloads]
        if chosen and (carriers is None or name in carriers):
            yield from (Attack(name, payload) for payload in chosen)
            yield Attack(name, chosen[number % len(chosen)], borderline=True)


def with_twins(chosen: Sequence[Attack]) -> list[Attack]:
    """Return the attacks and their twins; borderline works have twins of their own."""
    return [*dict.fromkeys(attack.twin for attack in chosen), *chosen]


def write_corpus(run: Path, chosen: Sequence[Attack]) -> list[str]:
    """Build the works and store them as a run; return what cannot be built here, and why."""
    works: dict[Attack, AttackedWork] = {}
    missing = []
    for attack in with_twins(chosen):
        try:
            works[attack] = attack.build()
        except EnvironmentProblem as exc:
            missing.append(f"{attack.id}: {exc}")
    names = [attack.id for attack in works]
    manifest = build_manifest(
        "attack",
        names,
        digest=sha256(f"attacks {VERSION} {names}".encode()).hexdigest(),
        note="Works that try to talk the judge into a score, and their honest twins.",
    )
    begun = log_folder(run).is_dir()
    manifest = open_run(run, manifest)
    if not begun:
        store = ArtefactStore(run / ARTEFACTS)
        units = [build_unit(build_task(one.id), work, store) for one, work in works.items()]
        write_imported(run, manifest, units)
    return missing


def build_manifest(agent: str, tasks: Sequence[str], *, digest: str, note: str) -> RunManifest:
    """Return the manifest of a run whose works no model made."""
    return RunManifest(
        created=datetime.now(UTC),
        spec=RunSpec(
            dataset="workflow",
            mode="workflow",
            system=System(model="none/none", agent=agent),
            tasks=tuple(tasks),
        ),
        dataset_digest=digest,
        notes=(note,),
    )


def build_unit(task: WorkflowTask, work: AttackedWork, store: ArtefactStore) -> WorkflowUnit:
    """Store the files of a work and return it as a unit."""
    files = tuple(store.keep_file(f"outputs/{path}", data) for path, data in work.files.items())
    return WorkflowUnit(task=task, trace=(AnswerStep(content=work.answer),), deliverables=files)
