"""The evidence of a run's units: what a judge is shown of every file, made once for all judges."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Final, Protocol

from gta_bench.confine.names import is_plain
from gta_bench.content.browser import find_browser
from gta_bench.content.identify import identify
from gta_bench.content.kinds import KIND_OF_SUFFIX
from gta_bench.content.libreoffice import find_libreoffice
from gta_bench.content.links import (
    find_css_references,
    find_html_references,
    find_markdown_references,
    resolve_reference,
)
from gta_bench.content.needs import describe_versions, read_program_version
from gta_bench.content.text import read_text
from gta_bench.errors import EvidenceFailed, GtaError, ToolError, format_count
from gta_bench.judging.evidence_store import EVIDENCE, EvidenceStore, evidence_key
from gta_bench.judging.known_good import failures_here
from gta_bench.judging.showing.catalog import show_file
from gta_bench.judging.showing.draft import (
    Draft,
    EvidenceLimits,
    ShowFailure,
    Subject,
    clean,
    quote,
)
from gta_bench.judging.showing.pages import Document, Print, start_printing, to_document
from gta_bench.records.evidence import Evidence, FileEvidence
from gta_bench.records.files import Deliverable
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.speech import local_recognizer

# Increment it with every change of our own code that changes how a file is shown.
VERSION: Final = 4
PACKAGES: Final = ("pypandoc-binary", "pypdf", "pypdfium2", "python-pptx", "openpyxl", "pillow")
MOST_TEXT: Final = 4 << 20  # bytes of a page that are searched for references
MOST_BESIDE: Final = 32 << 20  # bytes of files that a page loads
AT_ONCE: Final = 4  # files in memory for each slot of the jail


class EvidenceSource(Protocol):
    """Provides a judge with evidence."""

    async def evidence(self, unit: WorkflowUnit) -> Evidence:
        """Return the evidence of a unit; raise GtaError if it cannot be made."""

    def picture(self, digest: str) -> bytes:
        """Return a picture of the evidence."""


class RunEvidence:
    """Makes evidence from the files of a run, and stores it with the run."""

    def __init__(self, run: StorePath, settings: Settings) -> None:
        self._files = ArtefactStore(run / ARTEFACTS)
        self._store = EvidenceStore(run / EVIDENCE)
        self._settings = settings
        self._equipment: Equipment | None = None

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """Keep programs open inside the block, for many units."""
        async with use_equipment(self._settings) as self._equipment:
            try:
                yield
            finally:
                self._equipment = None

    async def evidence(self, unit: WorkflowUnit) -> Evidence:
        """Return the evidence of a unit; stored evidence of a file is reused."""
        if self._equipment is None:
            async with self.ready():
                return await self.evidence(unit)
        return await make_evidence(
            unit.answer,
            unit.deliverables,
            unit.inputs,
            files=self._files,
            store=self._store,
            equipment=self._equipment,
        )

    def picture(self, digest: str) -> bytes:
        """Return a picture of the evidence."""
        return self._store.picture(digest)


class MadeEvidence:
    """Evidence that is made ahead of the judges; a failure is kept and raised again.

    It may be made in one thread and awaited in another.
    """

    def __init__(self, source: EvidenceSource, units: Collection[WorkflowUnit]) -> None:
        self._source = source
        self._units = units
        self._made: dict[tuple[str, int], Future[Evidence]] = {}
        for unit in units:
            self._made[unit.task.id, unit.epoch] = future = Future[Evidence]()
            # Who stops waiting for it does not cancel it for others.
            future.set_running_or_notify_cancel()

    async def make(self) -> None:
        """Make the evidence of all units, as many at a time as there are cores."""
        slots = asyncio.Semaphore(os.cpu_count() or 1)

        async def make_one(unit: WorkflowUnit) -> None:
            async with slots:
                future = self._made[unit.task.id, unit.epoch]
                try:
                    future.set_result(await self._source.evidence(unit))
                except GtaError as exc:
                    future.set_exception(exc)

        try:
            async with asyncio.TaskGroup() as group:
                for unit in self._units:
                    group.create_task(make_one(unit))
        except BaseException as exc:
            for future in self._made.values():
                if not future.done():
                    future.set_exception(exc)
            raise

    async def wait(self, units: Collection[WorkflowUnit]) -> None:
        """Wait until the evidence of these units is made."""
        futures = [asyncio.wrap_future(self._made[unit.task.id, unit.epoch]) for unit in units]
        await asyncio.gather(*futures, return_exceptions=True)

    def made(self, unit: WorkflowUnit) -> Evidence | None:
        """Return a unit's evidence, which is made; None if it could not be."""
        future = self._made[unit.task.id, unit.epoch]
        return None if isinstance(future.exception(), GtaError) else future.result()

    async def evidence(self, unit: WorkflowUnit) -> Evidence:
        """Return a unit's evidence as soon as it is made, or raise the error of making it."""
        return await asyncio.wrap_future(self._made[unit.task.id, unit.epoch])

    def picture(self, digest: str) -> bytes:
        """Return a picture of the evidence."""
        return self._source.picture(digest)


async def make_evidence(
    answer: str,
    deliverables: Sequence[Deliverable],
    inputs: Sequence[Deliverable],
    *,
    files: ArtefactStore,
    store: EvidenceStore,
    equipment: Equipment,
    limits: EvidenceLimits | None = None,
) -> Evidence:
    """Make the evidence of one unit, reusing what the store has.

    Raises EvidenceFailed if this machine cannot show a file, because a score would then depend on
    the machine.
    """
    maker = _Maker(files, store, equipment, limits or EvidenceLimits())
    version = await renderer(equipment)
    everything = [*deliverables, *inputs]
    works = await asyncio.to_thread(maker.plan, everything, version)
    missing = {work.key: work for work in works if store.find(work.key) is None}
    if missing:
        async with store.holding(missing):  # another task may have made some of them meanwhile
            await maker.make([work for key, work in missing.items() if store.find(key) is None])
        if maker.failed:
            raise EvidenceFailed(_describe_failure(maker.failed))
    shown = [_find_evidence(store, work) for work in works]
    return Evidence(
        answer=clean(answer),
        deliverables=tuple(shown[: len(deliverables)]),
        inputs=tuple(shown[len(deliverables) :]),
        renderer=version,
    )


async def renderer(equipment: Equipment) -> str:
    """Describe everything besides the file that its text and pictures depend on."""
    office, browser = await asyncio.to_thread(_program_versions)
    recognizer = local_recognizer(equipment)
    sound = ffmpeg.find_ffmpeg()
    parts = [
        f"evidence {VERSION}",
        f"jail {equipment.jail.kind if equipment.jail else 'missing'}",
        f"LibreOffice {office}",
        f"Chromium {browser}",
        sound.backend if sound else "ffmpeg missing",
        "no transcripts" if isinstance(recognizer, Unavailable) else recognizer.backend,
        describe_versions(*PACKAGES),
    ]
    return "; ".join(parts)


@cache
def _program_versions() -> tuple[str, str]:
    return read_program_version(find_libreoffice()), read_program_version(find_browser())


@dataclass(frozen=True)
class _Work:
    """A file to show: its key in the store, and its references, by path and content."""

    file: Deliverable
    key: str
    beside: Mapping[str, str]
    lost: tuple[str, ...]


def _find_evidence(store: EvidenceStore, work: _Work) -> FileEvidence:
    found = store.find(work.key)
    if found is None:
        raise AssertionError(f"the evidence of {work.file.path!r} vanished while it was made")
    findings = found.findings
    if not all(map(is_plain, work.file.path.split("/"))):
        odd = "its name has characters that are invisible, or that no file name should have"
        findings = (odd, *findings)
    return found.model_copy(update={"path": work.file.path, "findings": findings})


def _describe_failure(failed: Mapping[str, Sequence[ShowFailure]]) -> str:
    """Name the first part that could not be shown, and how many more files failed."""
    path, failures = min(failed.items())
    what, problem = failures[0]
    more = f" ({format_count(len(failed) - 1, 'more file')} failed.)" if len(failed) > 1 else ""
    return f"{quote(path)}, {what}: {problem}{more}"


@dataclass(frozen=True)
class _Maker:
    """Makes the evidence of files; `failed` are those that this machine cannot show, and why."""

    files: ArtefactStore
    store: EvidenceStore
    equipment: Equipment
    limits: EvidenceLimits
    failed: dict[str, list[ShowFailure]] = field(default_factory=dict)

    def plan(self, everything: Sequence[Deliverable], renderer: str) -> list[_Work]:
        """Find what the evidence of each file depends on."""
        by_path = {file.path: file for file in everything}
        version = f"{renderer}; {self.limits.model_dump_json()}"
        return [self._plan_file(file, by_path, version) for file in everything]

    def _plan_file(
        self, file: Deliverable, by_path: Mapping[str, Deliverable], version: str
    ) -> _Work:
        suffix = PurePosixPath(file.path).suffix.lower()
        claims = KIND_OF_SUFFIX.get(suffix)
        beside: dict[str, str] = {}
        lost: list[str] = []
        if claims in ("html", "markdown"):
            text = self._read_text(file)
            find = find_html_references if claims == "html" else find_markdown_references
            for reference in find(text).files:
                path = resolve_reference(reference, base=file.path)
                if path not in by_path:
                    lost.append(reference)
                elif path != file.path:
                    beside[path] = by_path[path].digest
                    beside |= self._style_references(by_path[path], by_path)
        spelled = {
            resolve_reference(path, base=""): digest for path, digest in sorted(beside.items())
        }
        key = evidence_key(file.digest, suffix, version, spelled, lost)
        return _Work(file, key, beside, tuple(lost))

    def _read_text(self, file: Deliverable) -> str:
        try:
            return read_text(self.files.read(file.digest)[:MOST_TEXT]).text
        except ToolError:
            return ""

    def _style_references(
        self, file: Deliverable, by_path: Mapping[str, Deliverable]
    ) -> dict[str, str]:
        """Return the files that a style sheet loads in turn."""
        if not file.path.lower().endswith(".css"):
            return {}
        references = find_css_references(self._read_text(file))
        paths = (resolve_reference(reference, base=file.path) for reference in references)
        return {path: by_path[path].digest for path in paths if path in by_path}

    async def make(self, works: Sequence[_Work]) -> None:
        """Make and store the evidence of these files, or note in `failed` why not."""
        slots = self.equipment.jail.slots if self.equipment.jail else 1
        room = asyncio.Semaphore(AT_ONCE * slots)

        async def show_one(work: _Work, pdf: Print | None) -> None:
            async with room:
                await self._show(work, pdf)

        async with asyncio.TaskGroup() as group:
            documents = await asyncio.to_thread(self._documents, works)
            seconds = self.limits.seconds
            printed = start_printing(documents, group, self.equipment, slots=slots, seconds=seconds)
            for work in works:
                group.create_task(show_one(work, printed.get(work.key)))

    def _documents(self, works: Sequence[_Work]) -> list[Document]:
        found = []
        for number, work in enumerate(works):
            data = self.files.read(work.file.digest)
            found.append(to_document(number, work.key, identify(work.file.path, data), data))
        return [one for one in found if one is not None]

    async def _show(self, work: _Work, pdf: Print | None) -> None:
        file = work.file
        data = await asyncio.to_thread(self.files.read, file.digest)
        identity = await asyncio.to_thread(identify, file.path, data)
        draft = Draft(
            Subject(
                path=file.path,
                data=data,
                identity=identity,
                equipment=self.equipment,
                limits=self.limits,
                keep=self.store.pictures.keep,
                beside=await asyncio.to_thread(self._read_beside, work),
                lost=work.lost,
                pdf=pdf,
            )
        )
        await show_file(draft)
        for kind in sorted(draft.doubtful) if not draft.failed else ():
            draft.failed += await failures_here(kind, self.equipment)
        if draft.failed:
            self.failed[file.path] = draft.failed
            return
        evidence = FileEvidence(
            path=file.path,
            digest=file.digest,
            size=file.size,
            claims=identity.claims or "unknown",
            kind=identity.kind if data else "empty",
            text="".join(draft.texts),
            pictures=tuple(draft.pictures),
            probes=tuple(draft.probes),
            cut=tuple(draft.cut),
            unshown=tuple(draft.unshown),
            findings=tuple(draft.findings),
        )
        self.store.keep(work.key, evidence, late=draft.late)

    def _read_beside(self, work: _Work) -> dict[str, bytes]:
        """Read the files that a page loads, up to a total size."""
        found: dict[str, bytes] = {}
        for path, digest in work.beside.items():
            data = self.files.read(digest)
            if sum(map(len, found.values())) + len(data) <= MOST_BESIDE:
                found[path] = data
        return found
