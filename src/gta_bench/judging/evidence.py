"""What the judge is shown: every file of a unit, whatever its kind, made once and kept."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from gta_bench.confine.names import is_plain
from gta_bench.content.browser import browser_program
from gta_bench.content.identify import Identity, identify
from gta_bench.content.kinds import KIND_OF_SUFFIX
from gta_bench.content.libreoffice import office_program
from gta_bench.content.links import (
    css_references,
    html_references,
    markdown_references,
    resolve,
)
from gta_bench.content.needs import program_version, versions
from gta_bench.content.text import read_text
from gta_bench.errors import EvidenceFailed, ToolError, counted
from gta_bench.judging.evidence_store import EvidenceStore, evidence_key
from gta_bench.judging.known_good import failures_here
from gta_bench.judging.printing import Document, Print, document, prints
from gta_bench.judging.showing.catalog import SHOW, show_file
from gta_bench.judging.showing.draft import (
    Draft,
    EvidenceLimits,
    ShowFailure,
    Subject,
    clean,
    quoted,
)
from gta_bench.judging.visibility import upstream_visibility
from gta_bench.records.evidence import Evidence, FileEvidence
from gta_bench.records.files import Deliverable
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.speech import local_recognizer

# Raised by every change of our own code that shows a file otherwise.
VERSION: Final = 4
PACKAGES: Final = ("pypandoc-binary", "pypdf", "pypdfium2", "python-pptx", "openpyxl", "pillow")


async def renderer(equipment: Equipment) -> str:
    """Everything that pictures and text of a file depend on, beside the file."""
    office, browser = await asyncio.to_thread(_programs)
    recognizer = local_recognizer(equipment)
    sound = ffmpeg.installed()
    parts = [
        f"evidence {VERSION}",
        f"jail {equipment.jail.kind if equipment.jail else 'missing'}",
        f"LibreOffice {office}",
        f"Chromium {browser}",
        sound.backend if sound else "ffmpeg missing",
        "no transcripts" if isinstance(recognizer, Unavailable) else recognizer.backend,
        versions(*PACKAGES),
    ]
    return "; ".join(parts)


@cache
def _programs() -> tuple[str, str]:
    return program_version(office_program()), program_version(browser_program())


__all__ = ["EvidenceLimits", "EvidenceStore", "make_evidence", "upstream_visibility"]

REFERRING: Final = ("html", "markdown")
MOST_TEXT: Final = 4 << 20  # bytes of a page that are searched for references
MOST_BESIDE: Final = 32 << 20  # bytes of files that a page loads
AT_ONCE: Final = 4  # files in memory for each slot of the jail


@dataclass(frozen=True)
class _Work:
    """A file to be shown: its key in the store, and what it refers to, by path and content."""

    file: Deliverable
    key: str
    beside: Mapping[str, str]
    lost: tuple[str, ...]


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
    """The evidence of one unit; what the store has already is not made again.

    EvidenceFailed where this machine cannot show a file: a score would be about the machine.
    """
    bounds = limits or EvidenceLimits()
    version = await renderer(equipment)
    works = await asyncio.to_thread(
        _works, [*deliverables, *inputs], files, f"{version}; {bounds.model_dump_json()}"
    )
    missing = {work.key: work for work in works if store.find(work.key) is None}
    if missing:
        async with store.holding(missing):  # somebody else may have made some of them meanwhile
            left = {key: work for key, work in missing.items() if store.find(key) is None}
            failed = await _make(left, files, store, equipment, bounds)
        if failed:
            raise EvidenceFailed(_failure(failed))
    shown = [_found(store, work) for work in works]
    return Evidence(
        answer=clean(answer),
        deliverables=tuple(shown[: len(deliverables)]),
        inputs=tuple(shown[len(deliverables) :]),
        renderer=version,
    )


def _found(store: EvidenceStore, work: _Work) -> FileEvidence:
    found = store.find(work.key)
    if found is None:
        raise AssertionError(f"the evidence of {work.file.path!r} vanished while it was made")
    findings = (*_name_findings(work.file.path), *found.findings)
    return found.model_copy(update={"path": work.file.path, "findings": findings})


def _name_findings(path: str) -> Iterator[str]:
    if not all(map(is_plain, path.split("/"))):
        yield "its name has characters that are invisible, or that no file name should have"


# What a file's evidence depends on


def _works(everything: Sequence[Deliverable], files: ArtefactStore, version: str) -> list[_Work]:
    by_path = {file.path: file for file in everything}
    return [_work(file, by_path, files, version) for file in everything]


def _work(
    file: Deliverable, by_path: Mapping[str, Deliverable], files: ArtefactStore, version: str
) -> _Work:
    suffix = PurePosixPath(file.path).suffix.lower()
    claims = KIND_OF_SUFFIX.get(suffix)
    beside: dict[str, str] = {}
    lost: list[str] = []
    if claims in REFERRING:
        for reference in _references(files.read(file.digest), claims):
            path = resolve(reference, base=file.path)
            if path not in by_path:
                lost.append(reference)
            elif path != file.path:
                beside[path] = by_path[path].digest
                beside |= _beyond(by_path[path], by_path, files)
    spelled = {resolve(path, base=""): digest for path, digest in sorted(beside.items())}
    key = evidence_key(file.digest, suffix, version, spelled, lost)
    return _Work(file, key, beside, tuple(lost))


def _references(data: bytes, claims: str) -> tuple[str, ...]:
    try:
        text = read_text(data[:MOST_TEXT]).text
    except ToolError:
        return ()
    return (html_references(text) if claims == "html" else markdown_references(text)).files


def _beyond(
    file: Deliverable, by_path: Mapping[str, Deliverable], files: ArtefactStore
) -> dict[str, str]:
    """What a style sheet loads in its turn."""
    if not file.path.lower().endswith(".css"):
        return {}
    try:
        text = read_text(files.read(file.digest)[:MOST_TEXT]).text
    except ToolError:
        return {}
    paths = (resolve(reference, base=file.path) for reference in css_references(text))
    return {path: by_path[path].digest for path in paths if path in by_path}


# Making it


async def _make(
    works: Mapping[str, _Work],
    files: ArtefactStore,
    store: EvidenceStore,
    equipment: Equipment,
    limits: EvidenceLimits,
) -> dict[str, list[ShowFailure]]:
    """Make and keep what is missing; the files that this machine cannot show, and why."""
    failed: dict[str, list[ShowFailure]] = {}
    slots = equipment.jail.slots if equipment.jail else 1
    room = asyncio.Semaphore(AT_ONCE * slots)
    async with asyncio.TaskGroup() as group:
        documents = await asyncio.to_thread(_documents, works.values(), files)
        printed = prints(documents, group, equipment, slots=slots, seconds=limits.seconds)
        for work in works.values():
            job = _show(work, printed.get(work.key), files, store, equipment, limits, failed)
            group.create_task(_within(room, job))
    return failed


def _failure(failed: Mapping[str, Sequence[ShowFailure]]) -> str:
    """The first part that could not be shown, and how many files are like it."""
    path, failures = min(failed.items())
    what, problem = failures[0]
    more = f" ({counted(len(failed) - 1, 'more file')} failed.)" if len(failed) > 1 else ""
    return f"{quoted(path)}, {what}: {problem}{more}"


async def _within(room: asyncio.Semaphore, job: Coroutine[None, None, None]) -> None:
    async with room:
        await job


def _documents(works: Iterable[_Work], files: ArtefactStore) -> list[Document]:
    found = []
    for number, work in enumerate(works):
        data = files.read(work.file.digest)
        one = document(number, work.key, identify(work.file.path, data), data)
        if one is not None:
            found.append(one)
    return found


async def _show(
    work: _Work,
    pdf: Print | None,
    files: ArtefactStore,
    store: EvidenceStore,
    equipment: Equipment,
    limits: EvidenceLimits,
    failed: dict[str, list[ShowFailure]],
) -> None:
    """Make one file's evidence and keep it, unless this machine failed it."""
    data = await asyncio.to_thread(files.read, work.file.digest)
    identity = await asyncio.to_thread(identify, work.file.path, data)
    subject = Subject(
        path=work.file.path,
        data=data,
        identity=identity,
        equipment=equipment,
        limits=limits,
        keep=store.pictures.keep,
        beside=await asyncio.to_thread(_beside, work, files),
        lost=work.lost,
        pdf=pdf,
    )
    draft = Draft(subject)
    await show_file(draft, SHOW)
    for kind in sorted(draft.doubtful) if not draft.failed else ():
        draft.failed += await failures_here(kind, equipment)
    if draft.failed:
        failed[work.file.path] = draft.failed
        return
    store.keep(work.key, _finished(draft, work, identity), late=draft.late)


def _finished(draft: Draft, work: _Work, identity: Identity) -> FileEvidence:
    return FileEvidence(
        path=work.file.path,
        digest=work.file.digest,
        size=work.file.size,
        claims=identity.claims or "unknown",
        kind=identity.kind if draft.subject.data else "empty",
        text="".join(draft.texts),
        pictures=tuple(draft.pictures),
        probes=tuple(draft.probes),
        cut=tuple(draft.cut),
        unshown=tuple(draft.unshown),
        findings=tuple(draft.findings),
    )


def _beside(work: _Work, files: ArtefactStore) -> dict[str, bytes]:
    """The files that a page loads, as long as they are not too much."""
    found: dict[str, bytes] = {}
    for path, digest in work.beside.items():
        data = files.read(digest)
        if sum(map(len, found.values())) + len(data) <= MOST_BESIDE:
            found[path] = data
    return found
