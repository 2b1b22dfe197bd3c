"""What all three Office kinds share: they are zips, and may be bombs or something else."""

import asyncio
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    package_parts,
    unseen_in_office,
)
from gta_bench.content.members import ZipContent, read_zip
from gta_bench.errors import ToolError

RELATIONS_BYTES: Final = 1 << 20
LISTS: Final = ("[Content_Types].xml", ".rels")
HEAD: Final = 4096
PREFIXED: Final = re.compile(rb"<([\w.-]{1,40}):(?:Types|Relationships)[\s>]")
CALCULATED: Final = re.compile(
    rb"(<(?:\w{1,8}:)?f\b[^<>]{0,2000}(?:/>|>[^<]{0,60000}</(?:\w{1,8}:)?f>))\s{0,100}"
    rb"<(?:\w{1,8}:)?v\b[^<>]{0,200}>[^<]{0,200000}</(?:\w{1,8}:)?v>"
)
SHEETS: Final = "xl/worksheets/"
RELATION: Final = re.compile(r"<(?:\w{1,8}:)?Relationship\b([^<>]{0,5000})>")
TARGET: Final = re.compile(r'\bTarget="([^"]{1,2000})"')
EXTERNAL: Final = re.compile(r'\bTargetMode="External"')
EMBEDDED: Final = re.compile(
    r"/embeddings/.|/media/.{1,300}\.(mp[34]|m4[av]|wav|wm[av]|mov|avi|webm|ogg|flac)$",
    re.IGNORECASE,
)
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
    "variant", "vector",    "Notes", "HiddenSlides", "MMClips", "PresentationFormat",
})  # fmt: skip
HYPERLINK: Final = re.compile(r'\bType="[^"]{0,300}/hyperlink"')


def normalized(data: bytes) -> bytes | None:
    """A copy of an Office file that every program reads; None where the file needs none.

    Libraries that write XML by namespace may put a prefix (`ns0:`) before every name of the list
    of types and of relations. That is right, Office opens it, and LibreOffice does not. Where a
    workbook asks to be calculated when it is opened, the copy lacks the formulas' old values, which
    LibreOffice would keep.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            lists = [name for name in names if name.endswith(LISTS)]
            prefixed = any(PREFIXED.search(_source(archive, name, HEAD).encode()) for name in lists)
            book = _source(archive, WORKBOOK) if WORKBOOK in names else ""
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
    """What an Office file brings beside its content.

    `external` is what it would load from elsewhere, `embedded` files within it, `properties` what
    it says of itself: title, keywords. `signed` if it also says who made it, and when. `parts` is
    all of its text, whoever reads it. `prefixed` if `normalized` makes a copy of it.
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
    """What a package of Office refers to; call it for one that is safe to unpack."""
    return await asyncio.to_thread(_package_facts, data)


def _package_facts(data: bytes) -> PackageFacts:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            relations = {name: _source(archive, name) for name in names if name.endswith(".rels")}
            about = {name: _source(archive, name) for name in names if name in PROPERTIES}
            unseen = tuple(found for found in unseen_in_office(archive) if found.words)
            parts = tuple(package_parts(archive))
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc
    said = [pair for source in about.values() for pair in _properties(source)]
    outside = (target for source in relations.values() for target in _outside(source))
    return PackageFacts(
        external=tuple(dict.fromkeys(outside)),
        macros=any(name.endswith("vbaProject.bin") for name in names),
        unseen=unseen,
        embedded=tuple(_embedded(names, relations)),
        properties=tuple(pair for pair in said if pair[0] not in SIGNATURE),
        signed=any(name in SIGNATURE for name, _ in said),
        parts=parts,
        prefixed=any(PREFIXED.search(source[:HEAD].encode()) for source in relations.values()),
    )


def _source(archive: zipfile.ZipFile, name: str, most: int = RELATIONS_BYTES) -> str:
    with archive.open(name) as part:
        return part.read(most).decode("utf-8", "replace")


def _properties(source: str) -> Iterator[tuple[str, str]]:
    """Names and words of properties; counts and versions that programs write are none."""
    for name, given, value in PROPERTY.findall(source):
        words = " ".join(unescape(value).split())
        if words and name not in COUNTS:
            yield given or name, words


def _embedded(names: Iterable[str], relations: Mapping[str, str]) -> Iterator[str]:
    """Files within the file, but for the workbooks behind charts, whose data the charts have."""
    behind = " ".join(source for name, source in relations.items() if "/charts/" in name)
    for name in names:
        if EMBEDDED.search(name) and name.rpartition("/")[2] not in behind:
            yield name


def _outside(relations: str) -> list[str]:
    """What a document would load from elsewhere; links that a reader clicks do not count."""
    found = []
    for relation in RELATION.findall(relations):
        target = TARGET.search(relation)
        if EXTERNAL.search(relation) and target and not HYPERLINK.search(relation):
            found.append(target[1])
    return found
