"""What the three Office formats share: they are zip packages, possibly hostile ones."""

import asyncio
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html import unescape
from typing import Final

from gta_bench.confine.archives import check_archive
from gta_bench.content.driver import check_size
from gta_bench.content.identify import BROKEN_ZIP, require_form
from gta_bench.content.leftovers import (
    CALCULATE,
    WORKBOOK,
    PackagePart,
    UnseenText,
    find_external,
    find_unseen_office,
    read_package_parts,
    read_part,
)
from gta_bench.content.members import ZipContent, read_zip
from gta_bench.errors import ToolError

LISTS: Final = ("[Content_Types].xml", ".rels")
HEAD: Final = 4096
PREFIXED: Final = re.compile(rb"<([\w.-]{1,40}):(?:Types|Relationships)[\s>]")
CALCULATED: Final = re.compile(
    rb"(<(?:\w{1,8}:)?f\b[^<>]{0,2000}(?:/>|>[^<]{0,60000}</(?:\w{1,8}:)?f>))\s{0,100}"
    rb"<(?:\w{1,8}:)?v\b[^<>]{0,200}>[^<]{0,200000}</(?:\w{1,8}:)?v>"
)
SHEETS: Final = "xl/worksheets/"
EMBEDDED: Final = re.compile(
    r"/embeddings/.|/media/.{1,300}\.(mp[34]|m4[av]|wav|wm[av]|mov|avi|webm|ogg|flac)$",
    re.IGNORECASE,
)
RELATIONS_BYTES: Final = 1 << 20
PROPERTIES: Final = ("docProps/core.xml", "docProps/custom.xml", "docProps/app.xml")
PROPERTY: Final = re.compile(
    r"<(?:\w{1,10}:)?(\w{1,60})(?:\s[^<>]{0,500}?\bname=\"([^\"]{0,300})\")?[^<>]{0,500}>"
    r"(?:<vt:\w{1,20}>)?([^<]{1,20000})</"
)
SIGNATURE: Final = frozenset({
    "creator", "lastModifiedBy", "created", "modified", "lastPrinted", "Manager",
})  # fmt: skip
COUNTS: Final = frozenset({
    "revision", "language", "version", "Template", "TotalTime", "Pages", "Words", "Characters",
    "Application", "DocSecurity", "Lines", "Paragraphs", "ScaleCrop", "LinksUpToDate", "i4",
    "CharactersWithSpaces", "SharedDoc", "HyperlinksChanged", "AppVersion", "lpstr", "Slides",
    "variant", "vector", "Notes", "HiddenSlides", "MMClips", "PresentationFormat",
})  # fmt: skip


def normalize_package(data: bytes) -> bytes | None:
    """Return a copy of an Office file that LibreOffice reads; None if the file needs no copy.

    Some XML libraries write a namespace prefix (`ns0:`) before every name in the lists of types
    and relations. That is valid and Office opens it, but LibreOffice does not. If a workbook asks
    to be recalculated when it is opened, the copy omits the old values of formulas, which
    LibreOffice would keep.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            lists = [name for name in names if name.endswith(LISTS)]
            prefixed = any(
                PREFIXED.search(read_part(archive, name, HEAD).encode()) for name in lists
            )
            book = read_part(archive, WORKBOOK, RELATIONS_BYTES) if WORKBOOK in names else ""
            stale = CALCULATE.search(book) is not None
            if not prefixed and not stale:
                return None
            check_archive(io.BytesIO(data))
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as copy:
                for name in names:
                    part = archive.read(name)
                    if name in lists:
                        part = _without_prefix(part)
                    elif stale and name.startswith(SHEETS):
                        part = CALCULATED.sub(rb"\1", part)
                    copy.writestr(name, part)
    except (*BROKEN_ZIP, ToolError):
        return None
    return stream.getvalue()


def _without_prefix(source: bytes) -> bytes:
    found = PREFIXED.search(source[:HEAD])
    if found is None:
        return source
    prefix = found[1]
    source = re.sub(rb"(</?)" + prefix + rb":", rb"\1", source)
    return source.replace(b"xmlns:" + prefix + b"=", b"xmlns=")


async def open_office(data: bytes, form: str) -> ZipContent:
    """List the parts of a docx, pptx or xlsx file. Raises ToolError if it is not safe to unpack."""
    check_size(data, label=f"The {form} reader")
    if not data.startswith(b"PK"):
        require_form(data, form)
    parts = await read_zip(data)  # before the form, because its errors say what is broken
    require_form(data, form)
    return parts


def count_parts(parts: ZipContent, folder: str) -> int:
    """Return the number of files in a folder of the package, such as its pictures."""
    return sum(name.startswith(folder) for name in parts.names)


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """What an Office file contains besides its visible content.

    `external` are targets that it would load from elsewhere, `embedded` are files inside it, and
    `properties` is metadata such as title and keywords. `signed` means that the metadata also
    names an author or a date. `parts` is all of its text. `prefixed` means that LibreOffice reads
    only the copy that `normalized` returns.
    """

    external: tuple[str, ...]
    macros: bool
    unseen: tuple[UnseenText, ...] = ()
    embedded: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    signed: bool = False
    parts: tuple[PackagePart, ...] = ()
    prefixed: bool = False


async def read_package(data: bytes) -> PackageFacts:
    """Read what an Office file contains besides its content; it must be safe to unpack."""
    return await asyncio.to_thread(_package_facts, data)


def _package_facts(data: bytes) -> PackageFacts:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            read = partial(read_part, archive, most=RELATIONS_BYTES)
            relations = {name: read(name) for name in names if name.endswith(".rels")}
            about = [read(name) for name in names if name in PROPERTIES]
            unseen = tuple(found for found in find_unseen_office(archive) if found.words)
            parts = tuple(read_package_parts(archive))
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc
    stated = [pair for source in about for pair in _read_properties(source)]
    links = (pair for source in relations.values() for pair in find_external(source))
    return PackageFacts(
        external=tuple(dict.fromkeys(link.target for link in links if not link.clicked)),
        macros=any(name.endswith("vbaProject.bin") for name in names),
        unseen=unseen,
        embedded=tuple(_find_embedded(names, relations)),
        properties=tuple(pair for pair in stated if pair[0] not in SIGNATURE),
        signed=any(name in SIGNATURE for name, _ in stated),
        parts=parts,
        prefixed=any(PREFIXED.search(source[:HEAD].encode()) for source in relations.values()),
    )


def _read_properties(source: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of properties, without counts and versions written by programs."""
    for name, given, value in PROPERTY.findall(source):
        text = " ".join(unescape(value).split())
        if text and name not in COUNTS:
            yield given or name, text


def _find_embedded(names: Iterable[str], relations: Mapping[str, str]) -> Iterator[str]:
    """Yield files inside the file, except workbooks of charts, which repeat the charts' data."""
    behind = " ".join(source for name, source in relations.items() if "/charts/" in name)
    for name in names:
        if EMBEDDED.search(name) and name.rpartition("/")[2] not in behind:
            yield name
