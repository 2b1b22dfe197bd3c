"""Bundled files, one of each kind: a machine that cannot show them cannot show a system's files."""

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
from gta_bench.judging.printing import document, prints
from gta_bench.judging.showing.catalog import show_file
from gta_bench.judging.showing.draft import Draft, EvidenceLimits, ShowFailure, Subject
from gta_bench.tools.contract import Equipment

WORD: Final = "Marigold"  # stands in every sample that has text
with as_file(files("gta_bench.judging") / "samples") as _folder:
    FOLDER: Final = Path(_folder)
WITHOUT_TEXT: Final[frozenset[ReaderName | None]] = frozenset({"image", "media"})
MEND: Final = "`gta doctor` shows which kinds of files this machine can show."

_good: WeakKeyDictionary[Jail, set[ContentKind]] = WeakKeyDictionary()


def sample(kind: ContentKind) -> Path | None:
    """The bundled file of a kind; None for what is of no kind."""
    found = sorted(FOLDER.glob("check.*"))
    return next((file for file in found if KIND_OF_SUFFIX[file.suffix] == kind), None)


async def failures_here(kind: ContentKind, equipment: Equipment) -> Sequence[ShowFailure]:
    """Why this machine cannot show a good file of a kind; nothing if it can.

    Tells a file that is broken from a machine that is. What worked once is not tried again.
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
    """Show the bundled file of each kind; for each, what failed."""
    chosen = {kind: file for kind in kinds if (file := sample(kind)) is not None}
    drafts = {kind: _draft(kind, file, equipment) for kind, file in chosen.items()}
    documents = [
        one
        for number, (kind, draft) in enumerate(drafts.items())
        if (one := document(number, kind, draft.subject.identity, draft.subject.data)) is not None
    ]
    slots = equipment.jail.slots if equipment.jail else 1
    room = asyncio.Semaphore(2 * slots)
    async with asyncio.TaskGroup() as group:
        printed = prints(documents, group, equipment, slots=slots, seconds=EvidenceLimits().seconds)
        for kind, draft in drafts.items():
            draft.subject.pdf = printed.get(kind)
            group.create_task(_show(kind, draft, room))
    return {kind: draft.failed for kind, draft in drafts.items()}


def _draft(kind: ContentKind, file: Path, equipment: Equipment) -> Draft:
    data = file.read_bytes()
    return Draft(
        Subject(
            path=file.name,
            data=data,
            identity=identify(file.name, data),
            equipment=equipment,
            limits=EvidenceLimits(),
            keep=lambda _: "0" * 64,
        )
    )


async def _show(kind: ContentKind, draft: Draft, room: asyncio.Semaphore) -> None:
    async with room:
        await show_file(draft)
    draft.failed += [_broken(kind, reason) for reason in draft.unshown]
    wordless = KINDS[kind].reader in WITHOUT_TEXT
    if not draft.failed and not wordless and WORD not in "".join(draft.texts):
        draft.failed.append(_broken(kind, "its text: a word of it is missing"))


def _broken(kind: ContentKind, reason: str) -> ShowFailure:
    what, _, why = reason.partition(": ")
    problem = ToolUnavailable(f"A good {kind} file cannot be shown here: {why}", mend=MEND)
    return ShowFailure(what, problem)
