"""What all three Office kinds share: they are zips, and may be bombs or something else."""

import asyncio
import io
import re
import zipfile
from dataclasses import dataclass
from typing import Final

from gta_bench.content.archive import ZipContent, read_zip
from gta_bench.content.driver import check_size
from gta_bench.content.identify import BROKEN_ZIP, require_form
from gta_bench.content.unseen import UnseenText, unseen_in_office
from gta_bench.errors import ToolError

RELATIONS_BYTES: Final = 1 << 20
RELATION: Final = re.compile(r"<Relationship\b([^<>]{0,5000})>")
TARGET: Final = re.compile(r'\bTarget="([^"]{1,2000})"')
EXTERNAL: Final = re.compile(r'\bTargetMode="External"')
HYPERLINK: Final = re.compile(r'\bType="[^"]{0,300}/hyperlink"')


async def open_office(data: bytes, form: str) -> ZipContent:
    """The parts of a docx, pptx or xlsx file that is safe to unpack; ToolError if it is not."""
    check_size(data, label=f"The {form} reader")
    if data.startswith(b"PK"):
        parts = await read_zip(data)  # first, because a broken zip is told best by what is broken
        require_form(data, form)
        return parts
    require_form(data, form)
    raise AssertionError("a form of Office that is no zip")


def count_parts(parts: ZipContent, folder: str) -> int:
    """How many files lie in a folder of the package, such as its pictures."""
    return sum(member.name.startswith(folder) for member in parts.members)


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """What an Office file brings beside its content: links to the outside, macros, unseen text."""

    external: tuple[str, ...]
    macros: bool
    unseen: tuple[UnseenText, ...] = ()


async def read_package(data: bytes) -> PackageFacts:
    """What a package of Office refers to; call it for one that is safe to unpack."""
    return await asyncio.to_thread(_package_facts, data)


def _package_facts(data: bytes) -> PackageFacts:
    external: list[str] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            for name in (name for name in names if name.endswith(".rels")):
                with archive.open(name) as part:
                    external += _outside(part.read(RELATIONS_BYTES).decode("utf-8", "replace"))
            unseen = tuple(found for found in unseen_in_office(archive) if found.words)
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc
    macros = any(name.endswith("vbaProject.bin") for name in names)
    return PackageFacts(tuple(dict.fromkeys(external)), macros, unseen)


def _outside(relations: str) -> list[str]:
    """What a document would load from elsewhere; links that a reader clicks do not count."""
    found = []
    for relation in RELATION.findall(relations):
        target = TARGET.search(relation)
        if EXTERNAL.search(relation) and target and not HYPERLINK.search(relation):
            found.append(target[1])
    return found
