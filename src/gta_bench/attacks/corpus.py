"""The corpus as a run: a unit for every attack, and one for the honest twin of every carrier."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from gta_bench.attacks.carriers import CARRIERS, Work
from gta_bench.attacks.payloads import CLEAN, attacked_task, words
from gta_bench.errors import EnvironmentProblem
from gta_bench.records.run import RunManifest, RunSpec, System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, open_run
from gta_bench.runs.imported import write_imported

# Raised by every change of a payload or a carrier.
VERSION = 1


class Attack(NamedTuple):
    """Words on their way to the judge; without any, the honest twin of the carrier's attacks."""

    carrier: str
    payload: str

    @property
    def id(self) -> str:
        """The name of its task in the run."""
        return f"{self.carrier}: {self.payload}".replace(" ", "_")


def attacks(
    *, payloads: Collection[str] | None = None, carriers: Collection[str] | None = None
) -> Iterator[Attack]:
    """The attacks, without the twins."""
    for name, carrier in CARRIERS.items():
        for payload in carrier.payloads:
            chosen = payloads is None or payload in payloads
            if chosen and (carriers is None or name in carriers):
                yield Attack(name, payload)


def with_twins(chosen: Sequence[Attack]) -> list[Attack]:
    """The attacks and the twin of each of their carriers."""
    twins = dict.fromkeys(attack.carrier for attack in chosen)
    return [*(Attack(carrier, CLEAN) for carrier in twins), *chosen]


def write_corpus(run: Path, chosen: Sequence[Attack]) -> list[str]:
    """Build the works and store them as a run; what cannot be built here, and why."""
    works: dict[Attack, Work] = {}
    missing = []
    for attack in with_twins(chosen):
        try:
            works[attack] = CARRIERS[attack.carrier].build(words(attack.payload))
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


def _unit(attack: Attack, work: Work, store: ArtefactStore) -> WorkflowUnit:
    files = tuple(store.keep_file(f"outputs/{path}", data) for path, data in work.files.items())
    return WorkflowUnit(
        task=attacked_task(attack.id),
        trace=(AnswerStep(content=work.answer),),
        deliverables=files,
    )
