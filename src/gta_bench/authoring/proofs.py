"""The examples in a task folder: right work in gold/, wrong work in wrong/, cheats in cheat/.

Every folder in them is one work, laid out like finished results: `final.txt` has the answer, and
all other files are deliverables. A wrong work also has `wrong.toml`, which names the leaves that it
`breaks`, and the gold work that it was made `from`.

If checks of the task look at the state of tool servers, a work has that state in
`states/SERVER/before` and `states/SERVER/after`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from gta_bench.authoring.declared import (
    WRONG_FILE,
    Waiver,
    WrongFile,
    read_waiver,
    try_wrong_file,
)
from gta_bench.datasets.files import Location
from gta_bench.datasets.folders import (
    TASK_FILE,
    build_task,
    find_task_folders,
    read_task_file,
    wrap_task,
)
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.errors import UsageError
from gta_bench.harnesses.collecting import FoundFile, list_files
from gta_bench.harnesses.delivery import Delivery
from gta_bench.harnesses.finished import FINAL_NAMES, read_folder
from gta_bench.records.checks import SqliteQuery, StateFile
from gta_bench.records.workflow import WorkflowTask

ProofKind = Literal["gold", "wrong", "cheat"]
KINDS: Final[tuple[ProofKind, ...]] = ("gold", "wrong", "cheat")
STATES: Final = "states"
STATE_FILE: Final = re.compile(r"(?P<server>[^/]+)/(?P<when>before|after)/(?P<path>.+)")


class Proof(NamedTuple):
    """One work of a task folder, whose value is known."""

    kind: ProofKind
    folder: str
    delivery: Delivery
    breaks: tuple[str, ...] = ()
    origin: str | None = None
    states: tuple[FoundFile, ...] = ()

    @property
    def name(self) -> str:
        """Its path in the task folder."""
        return f"{self.kind}/{self.folder}"


class AuthoredTask(NamedTuple):
    """A task folder with everything that a pilot needs."""

    folder: Path
    dataset: WorkflowDataset
    task: WorkflowTask
    waived: frozenset[str]
    proofs: tuple[Proof, ...]

    def of(self, kind: ProofKind) -> list[Proof]:
        """Its works of one kind."""
        return [proof for proof in self.proofs if proof.kind == kind]


def find_tasks(places: tuple[Path, ...]) -> list[Path]:
    """Return task folders, and those in folders of tasks."""
    found: list[Path] = []
    for place in places:
        tasks = [place] if (place / TASK_FILE).is_file() else find_task_folders(place)
        if not tasks:
            raise UsageError(f"{place} is not a task folder and has none in it: no {TASK_FILE}.")
        found += tasks
    return found


def read_authored(folder: Path) -> AuthoredTask:
    """Read a task folder and its works. Raises DatasetError with the file for every mistake."""
    folder = folder.resolve()
    written = read_task_file(folder)
    task = build_task(folder, written)
    waivers = map(read_waiver, written.allow)
    waived = frozenset(one.rule for one in waivers if isinstance(one, Waiver))
    proofs = tuple(proof for kind in KINDS for proof in _read_kind(folder, kind, task))
    _check_answers(folder, proofs, written.deliverables)
    return AuthoredTask(folder, wrap_task(folder, task), task, waived, proofs)


def _read_kind(folder: Path, kind: ProofKind, task: WorkflowTask) -> Iterator[Proof]:
    place = folder / kind
    where = Location(f"{folder.name}/{kind}")
    if place.is_symlink():
        raise where.error("is a link; put the folder itself into the task folder.")
    if not place.is_dir():
        return
    names = _list_works(place)
    found = read_folder(place, names).deliveries if names else {}
    for name in names:
        if name not in found:
            raise Location(f"{folder.name}/{kind}/{name}").error("has neither answer nor file.")
        states = _list_states(place, name, where) if has_state_checks(task) else ()
        files = tuple(
            one
            for one in found[name].files
            if one.parts[1:] != (WRONG_FILE,) and not (states and one.parts[1] == STATES)
        )
        delivery = found[name]._replace(files=files)
        for file, reason in delivery.left_out:
            if file != WRONG_FILE and not (states and file.startswith(f"{STATES}/")):
                raise Location(f"{folder.name}/{kind}/{name}/{file}").error(f"{reason}.")
        if kind == "wrong":
            leaves = [leaf.id for leaf in task.leaves()]
            golds = _list_works(folder / "gold")
            about = _read_wrong(place / name, f"{folder.name}/{kind}/{name}", leaves, golds)
            yield Proof(kind, name, delivery, about.breaks, about.origin, states)
        else:
            yield Proof(kind, name, delivery, states=states)


def has_state_checks(task: WorkflowTask) -> bool:
    """Whether checks of the task look at the state of tool servers."""
    checks = (check for leaf in task.leaves() for check in leaf.checks)
    return any(isinstance(check, StateFile | SqliteQuery) for check in checks)


def _list_states(place: Path, name: str, where: Location) -> tuple[FoundFile, ...]:
    """The files in the folder `states` of a work, by server and time."""
    if not (place / name / STATES).is_dir():
        return ()
    found = list_files(place, name, STATES)
    bad = [file.name for file in found.files if not STATE_FILE.fullmatch(file.name)]
    for file in (*bad, *(one.name for one in found.left_out)):
        shown = f"{where.file}/{name}/{STATES}/{file}"
        raise Location(shown).error(f"is not a file of {STATES}/SERVER/before or /after.")
    return found.files


def _list_works(place: Path) -> list[str]:
    """The names of the folders in gold/, wrong/ or cheat/, none if there is no such folder."""
    found = sorted(place.iterdir()) if place.is_dir() else []
    works = [one for one in found if one.is_dir() and not one.is_symlink()]
    return [one.name for one in works if not one.name.startswith(".")]


def _read_wrong(folder: Path, name: str, leaves: Sequence[str], golds: Sequence[str]) -> WrongFile:
    file = folder / WRONG_FILE
    data = file.read_bytes() if file.is_file() and not file.is_symlink() else None
    read = try_wrong_file(data, f"{name}/{WRONG_FILE}", leaves=leaves, golds=golds)
    if isinstance(read, WrongFile):
        return read
    raise read[0]


def _check_answers(folder: Path, proofs: tuple[Proof, ...], deliverables: Iterable[str]) -> None:
    """Raise for a deliverable that would be read as the answer because of its name."""
    for proof in proofs:
        for name in deliverables:
            if name in FINAL_NAMES and (folder / proof.name / name).is_file():
                problem = "has the name of an answer; move the deliverables to a folder files/."
                raise Location(f"{folder.name}/{proof.name}/{name}").error(problem)
