"""Proves forged tasks in bulk: the path of a pilot without a judge, in warm processes.

The works, the readers and the checks are those of `gta task pilot --no-judge`. Two things differ,
because everything here was made by the forge and nothing is foreign: Python that a jail would start
anew is forked from this process, and LibreOffice computes the workbooks of a task in one process.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

from gta_bench.authoring.pilot import build_works
from gta_bench.authoring.proofs import AuthoredTask, read_authored
from gta_bench.authoring.readiness import find_dependents
from gta_bench.checks import delivery
from gta_bench.checks.decide import VERSION, decide_leaf
from gta_bench.confine.inside import launch
from gta_bench.confine.jail import Jail
from gta_bench.confine.process import EndedProcess
from gta_bench.confine.walls import Job, find_places
from gta_bench.content.libreoffice import convert_all
from gta_bench.content.office import normalize_package
from gta_bench.content.xlsx import change_cells
from gta_bench.errors import ToolError
from gta_bench.forge.draft import TaskDraft, TaskFamily
from gta_bench.forge.writing import Order, list_files, make_task, name_task, write_draft
from gta_bench.records.checks import XlsxCell
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.records.workflow import WorkflowTask
from gta_bench.running.check_run import open_work
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.tools.contract import Equipment

PASSES: Final = 7.0
FULL: Final = 10.0
OFFICE_SECONDS: Final = 300.0
# What the parsers of files import, which takes longer than most of their work.
PARSERS: Final = ("openpyxl", "PIL.ImageOps", "PIL.IptcImagePlugin", "pdfplumber", "pptx", "pypdf")


class WarmJail(Jail):
    """A jail without walls, whose Python does not start but forks with its imports done."""

    def __init__(self) -> None:
        super().__init__("none", slots=1)
        for name in PARSERS:
            import_module(name)

    def _run(self, job: Job, stdin: bytes, cancelled: threading.Event) -> EndedProcess:
        if job.argv is not None:
            return super()._run(job, stdin, cancelled)
        start = time.monotonic()
        files = {name: job.folder / name for name in ("stdin", "stdout", "stderr")}
        files["stdin"].write_bytes(stdin)
        child = os.fork()
        if child == 0:
            _become_snippet(job, files)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return EndedProcess(
            status=status,
            stdout=files["stdout"].read_bytes(),
            stderr=files["stderr"].read_bytes(),
            seconds=time.monotonic() - start,
            stopped=None,
        )


def _become_snippet(job: Job, files: Mapping[str, Path]) -> None:
    """Do what the launcher of a jail does, in a process that never returns."""
    try:
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.dup2(os.open(files[name], os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        launch._run_snippet(
            {
                "user": None,
                "parent": None,
                "limits": {
                    "cpu_seconds": job.limits.cpu_seconds,
                    "memory_bytes": None,
                    "file_bytes": job.limits.file_bytes,
                    "open_files": job.limits.open_files,
                    "processes": None,
                },
                "landlock": None,
                "profile": None,
                "forks": False,
                "argv": None,
                "environment": {},
                "scratch": find_places("none", job).scratch,
                "reply_bytes": job.limits.reply_bytes,
            }
        )
    finally:
        os._exit(99)


# Workbooks with other numbers in some cells, by the workbook and these numbers.
_Changed = dict[tuple[bytes, tuple[tuple[str, float], ...]], bytes]


class ProvenTask(NamedTuple):
    """What was found about a task; `problems` is empty if everything is as the forge says."""

    task: str
    family: str
    level: int
    version: int
    digest: str
    forging: float
    proving: float
    gold: int
    wrong: int
    needy: int
    nothing: int
    leaves: int
    problems: tuple[str, ...]
    scores: Mapping[str, Mapping[str, float | None]]


class ForgedDraft(NamedTuple):
    """A draft, the digest of its bytes, and the seconds that it took."""

    family: TaskFamily
    order: Order
    name: str
    draft: TaskDraft
    digest: str
    seconds: float


class StoredWorks(NamedTuple):
    """The works of a task as units of a pilot, with their files."""

    forged: ForgedDraft
    authored: AuthoredTask
    store: ArtefactStore
    units: tuple[WorkflowUnit, ...]


def forge_draft(family: TaskFamily, order: Order, number: int) -> ForgedDraft:
    """Make a task and the digest of all its bytes."""
    start = cpu_seconds()
    name = name_task(family, order, number)
    draft = make_task(family, order, number)
    digest = digest_files(draft, name)
    return ForgedDraft(family, order, name, draft, digest, cpu_seconds() - start)


def digest_files(draft: TaskDraft, name: str) -> str:
    """Return a digest of the paths and bytes of a task folder."""
    found = [(path, sha256(data).hexdigest()) for path, data in list_files(draft, name)]
    return sha256(json.dumps(sorted(found)).encode()).hexdigest()


async def prove_group(
    group: Sequence[ForgedDraft], equipment: Equipment
) -> AsyncIterator[ProvenTask]:
    """Check every work of some tasks, and compare what fails with what the forge says."""
    with tempfile.TemporaryDirectory() as name:
        stored = [_store(forged, Path(name)) for forged in group]
        jail, start = equipment.need_jail(), cpu_seconds()
        books = [{*_list_books(one)} for one in stored]
        changed = [
            await _change_books(one, own, jail) for one, own in zip(stored, books, strict=True)
        ]
        wanted = {book for own in books for book in own}
        wanted |= {book for own in changed for book in own.values()}
        computed = await _compute(sorted(wanted), jail)
        share = (cpu_seconds() - start) / max(1, len(wanted))
        for one, own, other in zip(stored, books, changed, strict=True):
            spent = share * (len(own) + len(other))
            yield await _prove(one, equipment, computed, other, spent)


def _store(forged: ForgedDraft, place: Path) -> StoredWorks:
    write_draft(forged.draft, place, forged.name)
    authored = read_authored(place / forged.name)
    store = ArtefactStore(place / f"{forged.name}.store")
    return StoredWorks(forged, authored, store, tuple(build_works(authored, store)))


def _list_books(stored: StoredWorks) -> Iterator[bytes]:
    """Yield the workbooks that may have formulas without values."""
    if "libreoffice" in stored.forged.family.needs:
        for unit in stored.units:
            for file in unit.deliverables:
                if file.path.endswith(".xlsx"):
                    yield stored.store.read(file.digest)


async def _change_books(stored: StoredWorks, books: set[bytes], jail: Jail) -> _Changed:
    """Return these workbooks with every change of numbers that checks of the task make."""
    checks = [check for leaf in stored.authored.task.leaves() for check in leaf.checks]
    changes = [check.change for check in checks if isinstance(check, XlsxCell) and check.change]
    made: _Changed = {}
    for book, change in product(books, changes):
        with suppress(ToolError):  # a wrong work without that sheet
            key = book, tuple(sorted(change.items()))
            if key not in made:
                made[key] = await change_cells(book, jail, change)
    return made


async def _compute(books: Sequence[bytes], jail: Jail) -> dict[bytes, bytes]:
    """Let LibreOffice compute workbooks in one process."""
    clean = {f"{number}.xlsx": normalize_package(one) or one for number, one in enumerate(books)}
    made = await convert_all(jail, clean, to="xlsx", seconds=OFFICE_SECONDS) if clean else {}
    return {books[int(name.partition(".")[0])]: data for name, data in made.items()}


async def _prove(
    stored: StoredWorks,
    equipment: Equipment,
    computed: Mapping[bytes, bytes],
    changed: _Changed,
    spent: float,
) -> ProvenTask:
    forged, start = stored.forged, cpu_seconds()

    async def change(data: bytes, jail: Jail, cells: Mapping[str, float]) -> bytes:
        key = data, tuple(sorted(cells.items()))
        return changed[key] if key in changed else await change_cells(data, jail, cells)

    async def convert(jail: Jail, name: str, data: bytes, *, to: str) -> bytes:
        return computed[data]

    # The workbooks are normalized and computed already.
    with (
        patch.object(delivery, "normalize_package", lambda data: data),
        patch.object(delivery, "convert", convert),
        patch.object(delivery, "change_cells", change),
    ):
        scores = {
            unit.task.id: await _score(unit, stored.store, equipment) for unit in stored.units
        }
    problems, needy = _compare(stored.authored, scores)
    kinds = [name.partition("/")[0] for name in scores]
    return ProvenTask(
        task=forged.name,
        family=forged.family.name,
        level=forged.order.level,
        version=VERSION,
        digest=forged.digest,
        forging=forged.seconds,
        proving=cpu_seconds() - start + spent,
        gold=kinds.count("gold"),
        wrong=kinds.count("wrong"),
        needy=needy,
        nothing=kinds.count("null") + kinds.count("cheat"),
        leaves=len([*stored.authored.task.leaves()]),
        problems=tuple(problems),
        scores=scores,
    )


async def _score(
    unit: WorkflowUnit, store: ArtefactStore, equipment: Equipment
) -> dict[str, float | None]:
    work = open_work(unit, store, equipment)
    found = {leaf.id: await decide_leaf(leaf, work) for leaf in unit.task.leaves()}
    return {leaf: one.value if isinstance(one, Scored) else None for leaf, one in found.items()}


def _compare(
    authored: AuthoredTask, scores: Mapping[str, Mapping[str, float | None]]
) -> tuple[list[str], int]:
    """Return what is not as the forge says, and how many works fail more than they break.

    A work may also fail leaves that need one that it breaks.
    """
    breaks = {proof.name: {*proof.breaks} for proof in authored.of("wrong")}
    task: WorkflowTask = authored.task
    dependents = find_dependents(task)
    problems, needy = [], 0
    for work, values in scores.items():
        failed = {leaf for leaf, value in values.items() if value is not None and value < PASSES}
        unscored = [leaf for leaf, value in values.items() if value is None]
        least = most = {*values}
        if work.startswith("gold/"):
            least, most = set(), set()
            failed = {leaf for leaf, value in values.items() if value != FULL}
        elif work in breaks:
            least = breaks[work]
            most = least.union(*(dependents[leaf] for leaf in least))
            needy += failed != least
        if unscored or not least <= failed <= most:
            said = f"fails {sorted(failed)}, not {sorted(least)}; unscored {unscored}"
            problems.append(f"{work} {said}")
    return problems, needy


def cpu_seconds() -> float:
    """Processor time of this process and of all that have ended."""
    return sum(os.times()[:4])
