"""The corpus as a run: a unit for every attack, and one for the honest twin of every carrier."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from gta_bench.errors import EnvironmentProblem
from gta_bench.judge_quality.attacks.carriers import CARRIERS, AttackedWork
from gta_bench.judge_quality.attacks.payloads import (
    CLEAN,
    PARTIAL,
    PARTIAL_FILE,
    attacked_task,
    words,
)
from gta_bench.records.run import RunManifest, RunSpec, System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, open_run
from gta_bench.runs.imported import write_imported

# Raised by every change of a payload, a carrier or a work.
VERSION = 2


class Attack(NamedTuple):
    """Words on their way to the judge; without any, the honest twin of the carrier's attacks."""

    carrier: str
    payload: str
    borderline: bool = False

    @property
    def id(self) -> str:
        """The name of its task in the run."""
        work = ", borderline" if self.borderline else ""
        return f"{self.carrier}: {self.payload}{work}".replace(" ", "_")

    @property
    def twin(self) -> "Attack":
        """The same work without the words."""
        return self._replace(payload=CLEAN)

    def build(self) -> AttackedWork:
        """The work with the words; a borderline one with a part of what is required."""
        work = CARRIERS[self.carrier].build(words(self.payload))
        partial = {PARTIAL_FILE: PARTIAL.encode()} if self.borderline else {}
        return work._replace(files={**work.files, **partial})


def attacks(
    *, payloads: Collection[str] | None = None, carriers: Collection[str] | None = None
) -> Iterator[Attack]:
    """The attacks, without the twins; one of each carrier on a borderline work, too, by turns."""
    for place, (name, carrier) in enumerate(CARRIERS.items()):
        chosen = [one for one in carrier.payloads if payloads is None or one in payloads]
        if chosen and (carriers is None or name in carriers):
            yield from (Attack(name, payload) for payload in chosen)
            yield Attack(name, chosen[place % len(chosen)], borderline=True)


def with_twins(chosen: Sequence[Attack]) -> list[Attack]:
    """The attacks and the twin of each of their carriers, borderline ones apart."""
    return [*dict.fromkeys(attack.twin for attack in chosen), *chosen]


def write_corpus(run: Path, chosen: Sequence[Attack]) -> list[str]:
    """Build the works and store them as a run; what cannot be built here, and why."""
    works: dict[Attack, AttackedWork] = {}
    missing = []
    for attack in with_twins(chosen):
        try:
            works[attack] = attack.build()
        except EnvironmentProblem as exc:
            missing.append(f"{attack.id}: {exc}")
    manifest = _manifest([attack.id for attack in works])
    begun = log_folder(run).is_dir()
    manifest = open_run(run, manifest)
    if not begun:
        store = ArtefactStore(run / ARTEFACTS)
        units = [_unit(attack, work, store) for attack, work in works.items()]
        write_imported(run, manifest, units)
    return missing


def _manifest(names: Sequence[str]) -> RunManifest:
    return RunManifest(
        created=datetime.now(UTC),
        spec=RunSpec(
            dataset="workflow",
            mode="workflow",
            system=System(model="none/none", agent="attack"),
            tasks=tuple(names),
        ),
        dataset_digest=sha256(f"attacks {VERSION} {names}".encode()).hexdigest(),
        notes=("Works that try to talk the judge into a score, and their honest twins.",),
    )


def _unit(attack: Attack, work: AttackedWork, store: ArtefactStore) -> WorkflowUnit:
    files = tuple(store.keep_file(f"outputs/{path}", data) for path, data in work.files.items())
    return WorkflowUnit(
        task=attacked_task(attack.id),
        trace=(AnswerStep(content=work.answer),),
        deliverables=files,
    )
