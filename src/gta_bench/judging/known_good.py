"""Bundled samples of each kind of file, which tell a broken file from a broken machine."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from gta_bench.confine.jail import Jail
from gta_bench.content.identify import identify
from gta_bench.content.kinds import KIND_OF_SUFFIX, KINDS, ContentKind, ReaderName
from gta_bench.errors import ToolUnavailable
from gta_bench.judging.showing.catalog import show_file
from gta_bench.judging.showing.draft import Draft, EvidenceLimits, ShowFailure, Subject
from gta_bench.judging.showing.pages import start_printing, to_document
from gta_bench.tools.contract import Equipment

WORD: Final = "Marigold"  # is in every sample that has text
with as_file(files("gta_bench.judging") / "samples") as _folder:
    FOLDER: Final = Path(_folder)
WITHOUT_TEXT: Final[frozenset[ReaderName | None]] = frozenset({"image", "media"})
FIX: Final = "`gta doctor` lists the kinds of files that this machine can show."

_good: WeakKeyDictionary[Jail, set[ContentKind]] = WeakKeyDictionary()


def sample(kind: ContentKind) -> Path | None:
    """Return the bundled file of a kind; None for the kind `unknown`."""
    found = sorted(FOLDER.glob("check.*"))
    return next((file for file in found if KIND_OF_SUFFIX[file.suffix] == kind), None)


async def failures_here(kind: ContentKind, equipment: Equipment) -> Sequence[ShowFailure]:
    """Return why this machine cannot show a good file of a kind; empty if it can.

    A kind that worked once is not checked again.
    """
    jail = equipment.jail
    if sample(kind) is None or (jail is not None and kind in _good.get(jail, ())):
        return ()
    found = (await check_kinds(equipment, [kind]))[kind]
    if not found and jail is not None:
        _good.setdefault(jail, set()).add(kind)
    return found


async def check_kinds(
    equipment: Equipment, kinds: Iterable[ContentKind] = tuple(KINDS)
) -> Mapping[ContentKind, Sequence[ShowFailure]]:
    """Show the bundled file of each kind, and return what failed for each."""
    chosen = {kind: file for kind in kinds if (file := sample(kind)) is not None}
    subjects = {kind: _subject(file, equipment) for kind, file in chosen.items()}
    drafts = {kind: Draft(subject) for kind, subject in subjects.items()}
    documents = [
        one
        for number, (kind, subject) in enumerate(subjects.items())
        if (one := to_document(number, kind, subject.identity, subject.data)) is not None
    ]
    slots = equipment.jail.slots if equipment.jail else 1
    room = asyncio.Semaphore(2 * slots)
    async with asyncio.TaskGroup() as group:
        seconds = EvidenceLimits().seconds
        printed = start_printing(documents, group, equipment, slots=slots, seconds=seconds)
        for kind, draft in drafts.items():
            draft.subject.pdf = printed.get(kind)
            group.create_task(_show(kind, draft, room))
    return {kind: draft.failed for kind, draft in drafts.items()}


def _subject(file: Path, equipment: Equipment) -> Subject:
    data = file.read_bytes()
    return Subject(
        path=file.name,
        data=data,
        identity=identify(file.name, data),
        equipment=equipment,
        limits=EvidenceLimits(),
        keep=lambda _: "0" * 64,
    )


async def _show(kind: ContentKind, draft: Draft, room: asyncio.Semaphore) -> None:
    async with room:
        await show_file(draft)
    draft.failed += [_broken(kind, reason) for reason in draft.unshown]
    has_text = KINDS[kind].reader not in WITHOUT_TEXT
    if has_text and not draft.failed and WORD not in "".join(draft.texts):
        draft.failed.append(_broken(kind, "its text: a word of it is missing"))


def _broken(kind: ContentKind, reason: str) -> ShowFailure:
    what, _, why = reason.partition(": ")
    problem = ToolUnavailable(f"A good {kind} file cannot be shown here: {why}", fix=FIX)
    return ShowFailure(what, problem)
