"""Documents as PDF by LibreOffice, several in one process, because its start costs most."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from gta_bench.confine.archives import check_archive
from gta_bench.confine.jail import Jail
from gta_bench.content.identify import Identity
from gta_bench.content.kinds import ContentKind
from gta_bench.content.libreoffice import SHEET_A_PAGE, convert, convert_all, missing_office
from gta_bench.content.needs import require
from gta_bench.content.office import normalized
from gta_bench.errors import GtaError, ToolError
from gta_bench.judging.showing.draft import settled
from gta_bench.tools.contract import Equipment

TOGETHER: Final = 6
MORE_SECONDS: Final = 10.0  # for each further document of a process
SUFFIX: Final[Mapping[ContentKind, str]] = {
    "docx": ".docx",
    "pptx": ".pptx",
    "xlsx": ".xlsx",
    "odt": ".odt",
    "ods": ".ods",
    "odp": ".odp",
    "rtf": ".rtf",
    "office-97": ".doc",
}
OLD: Final = (".doc", ".xls", ".ppt")
SHEETS: Final = (".xlsx", ".ods", ".xls")

Print = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Document:
    """A file for LibreOffice under a name of our own."""

    key: str
    name: str
    data: bytes

    @property
    def target(self) -> str:
        """What it is converted to: a sheet becomes one page."""
        return SHEET_A_PAGE if self.name.endswith(SHEETS) else "pdf"


def document(number: int, key: str, identity: Identity, data: bytes) -> Document | None:
    """The file as LibreOffice gets it; None if it is not for LibreOffice."""
    suffix = SUFFIX.get(identity.kind)
    if suffix is None:
        return None
    if identity.kind == "office-97":
        suffix = next((old for old in OLD if identity.name.lower().endswith(old)), suffix)
    if identity.kind in ("docx", "pptx", "xlsx"):
        data = normalized(data) or data
    return Document(key, f"{number}{suffix}", data)


def prints(
    documents: Sequence[Document],
    group: asyncio.TaskGroup,
    equipment: Equipment,
    *,
    slots: int,
    seconds: float,
) -> dict[str, Print]:
    """How to get each document's PDF; the work begins at once, in the group."""
    found: dict[str, Print] = {}
    for target in sorted({document.target for document in documents}):
        alike = [document for document in documents if document.target == target]
        size = max(1, min(TOGETHER, -(-len(alike) // slots)))
        for start in range(0, len(alike), size):
            some = alike[start : start + size]
            made = group.create_task(settled(_together(some, equipment, seconds)))
            for one in some:
                found[one.key] = _print(one, len(some), made, equipment, seconds)
    return found


async def _together(
    documents: Sequence[Document], equipment: Equipment, seconds: float
) -> dict[str, bytes]:
    jail = _jail(equipment)
    safe = [one for one in documents if not isinstance(await settled(_check(one)), GtaError)]
    if not safe:
        return {}
    files = {one.name: one.data for one in safe}
    allowed = seconds + MORE_SECONDS * (len(files) - 1)
    return await convert_all(jail, files, to=documents[0].target, seconds=allowed)


def _print(
    document: Document,
    company: int,
    made: asyncio.Task[dict[str, bytes] | GtaError],
    equipment: Equipment,
    seconds: float,
) -> Print:
    async def get() -> bytes:
        together = await asyncio.shield(made)
        if isinstance(together, dict) and document.name in together:
            return together[document.name]
        await _check(document)
        if isinstance(together, GtaError) and company == 1:
            raise together
        if company == 1:
            raise ToolError("LibreOffice could not read the file.")
        # Whatever another one did to the process, this one gets a process of its own.
        jail = _jail(equipment)
        return await convert(
            jail, document.name, document.data, to=document.target, seconds=seconds
        )

    return get


async def checked_jail(document: Document, equipment: Equipment) -> Jail:
    """The jail for a document that is safe to unpack; ToolError if it is not."""
    await _check(document)
    return _jail(equipment)


def _jail(equipment: Equipment) -> Jail:
    require(missing_office(equipment.jail))
    return equipment.need_jail()


async def _check(document: Document) -> None:
    """Refuse what unpacks to too much, before LibreOffice unpacks it."""
    if document.data.startswith(b"PK"):
        await asyncio.to_thread(check_archive, BytesIO(document.data))
