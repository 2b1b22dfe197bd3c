"""Finds answers and deliverables of a stored run that contain a canary of its dataset."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.checks.delivery import CheckedWork
from gta_bench.confine.jail import Jail
from gta_bench.content.kinds import KINDS
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable
from gta_bench.records.base import Record
from gta_bench.records.files import Deliverable
from gta_bench.records.units import WorkflowUnit
from gta_bench.running.stopping import run_apart
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import read_manifest, read_record, write_record
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings
from gta_bench.tasks.judging import find_judgeable_units
from gta_bench.tools.equipment import use_equipment

SCANNED: Final = "canaries.json"
# Readers whose files have a text that their bytes do not show.
_READERS: Final = frozenset({"docx", "pptx", "xlsx", "pdf"})


class Leak(NamedTuple):
    """Where a canary was found: in the answer or in a deliverable of a unit."""

    task: str
    epoch: int
    place: str


class ScannedFiles(Record):
    """`canaries.json`: which files of a run were searched for which canaries, with the outcome."""

    canaries: tuple[str, ...] = ()
    files: Mapping[str, bool] = {}


def find_leaks(
    run: StorePath, settings: Settings, tasks: Collection[str] | None = None
) -> list[Leak]:
    """Search the answers and files of a run for its dataset's canaries; each file once."""
    canaries = read_manifest(run).canaries
    if not canaries:
        return []
    units = list(find_judgeable_units(run, tasks).values())
    known = _read_scanned(run, canaries)
    files = {file.digest: file for unit in units for file in unit.deliverables}
    fresh = [file for digest, file in files.items() if digest not in known]
    found: dict[str, bool | None] = {**known}
    if fresh:
        store = ArtefactStore(run / ARTEFACTS)
        found |= run_apart(_scan_files(store, fresh, canaries, settings))
        # What could not be read here is searched again next time.
        decided = {digest: one for digest, one in sorted(found.items()) if one is not None}
        write_record(run / SCANNED, ScannedFiles(canaries=canaries, files=decided))
    return [leak for unit in units for leak in _list_leaks(unit, canaries, found)]


def _read_scanned(run: StorePath, canaries: Sequence[str]) -> Mapping[str, bool]:
    if not (run / SCANNED).is_file():
        return {}
    scanned = read_record(run / SCANNED, ScannedFiles, "Remove it; it is written again.")
    return scanned.files if scanned.canaries == tuple(canaries) else {}


def _list_leaks(
    unit: WorkflowUnit, canaries: Sequence[str], found: Mapping[str, bool | None]
) -> Iterator[Leak]:
    if any(canary in unit.answer.lower() for canary in canaries):
        yield Leak(unit.task.id, unit.epoch, "the answer")
    for file in unit.deliverables:
        if found.get(file.digest):
            yield Leak(unit.task.id, unit.epoch, file.path)


async def _scan_files(
    store: ArtefactStore, files: Sequence[Deliverable], canaries: Sequence[str], settings: Settings
) -> dict[str, bool | None]:
    found: dict[str, bool | None] = {}
    async with use_equipment(settings) as equipment:
        for file in files:
            data = store.read(file.digest)
            if any(canary.encode() in data.lower() for canary in canaries):
                found[file.digest] = True
                continue
            try:
                found[file.digest] = await _scan_text(file, data, canaries, equipment.need_jail())
            except (ToolUnavailable, ConfinedError):
                found[file.digest] = None
            except ToolError:  # a broken file, whose bytes have no canary
                found[file.digest] = False
    return found


async def _scan_text(file: Deliverable, data: bytes, canaries: Sequence[str], jail: Jail) -> bool:
    """Whether the text of a document has a canary."""
    work = CheckedWork("", {file.path: lambda: data}, jail)
    opened = work.open(work.paths[0])
    if KINDS[opened.identity.kind].reader not in _READERS:
        return False
    text = (await work.whole_text(opened)).lower()
    return any(canary in text for canary in canaries)
