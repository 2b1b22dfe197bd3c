"""Kinds without a reader of their own, turned into one that has: by LibreOffice, or by pandoc."""

import asyncio
import base64
import binascii
import io
import json
import zipfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gta_bench.confine.archives import check_archive
from gta_bench.content.docx import read_by_pandoc
from gta_bench.content.identify import BROKEN_ZIP, identify
from gta_bench.content.kinds import ContentKind
from gta_bench.content.leftovers import PackagePart, package_parts
from gta_bench.content.libreoffice import convert
from gta_bench.content.members import Member, read_zip_members
from gta_bench.content.text import read_text
from gta_bench.errors import GtaError, ToolError
from gta_bench.judging.printing import checked_jail, document
from gta_bench.judging.showing.archives import ShowAny, show_members
from gta_bench.judging.showing.documents import add_leftovers
from gta_bench.judging.showing.draft import Draft, Subject, settled, words_in
from gta_bench.judging.showing.pages import add_pages, office_pages

TARGETS: Final[Mapping[str, ContentKind]] = {
    "odt": "docx", "rtf": "docx", "doc": "docx", "ods": "xlsx", "xls": "xlsx", "odp": "pptx",
    "ppt": "pptx",
}  # fmt: skip
IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".tif", ".tiff")
SUFFIX_OF: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif",
                    "image/svg+xml": "svg"}  # fmt: skip
MACROS: Final = ("Basic/", "Scripts/")
LARGEST_NOTEBOOK: Final = 32 << 20

Shows = Mapping[ContentKind, Callable[[Draft], Awaitable[None]]]


async def show_by_office(draft: Draft, shows: Shows) -> None:
    """OpenDocument, rich text, Office before 2007: as the Office file that LibreOffice makes."""
    subject = draft.subject
    made = await settled(_converted(subject))
    if isinstance(made, GtaError):
        draft.missed("its text", made)
        add_pages(draft, await settled(office_pages(subject)))
        return
    kind, data = made
    draft.subject = replace(subject, data=data, identity=identify(f"converted.{kind}", data))
    await shows[kind](draft)  # its pages are still those of the file itself
    draft.subject = subject
    draft.findings.append(f"its text was read after LibreOffice converted it to {kind}")
    parts = await settled(asyncio.to_thread(_parts, subject.data))
    if not isinstance(parts, GtaError):
        if any(part.name.startswith(MACROS) for part in parts):
            draft.findings.append("it holds macros; they were not run")
        add_leftovers(draft, [part for part in parts if not part.name.startswith(MACROS)])


async def _converted(subject: Subject) -> tuple[ContentKind, bytes]:
    one = document(0, "", subject.identity, subject.data)
    assert one is not None, "a kind that LibreOffice reads"
    jail = await checked_jail(one, subject.equipment)
    kind = TARGETS[one.name.rpartition(".")[2]]
    made = await convert(jail, one.name, one.data, to=kind, seconds=subject.limits.seconds)
    return kind, made


def _parts(data: bytes) -> tuple[PackagePart, ...]:
    if not data.startswith(b"PK"):
        return ()
    check_archive(io.BytesIO(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return tuple(package_parts(archive))
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc


async def show_epub(draft: Draft, show: ShowAny) -> None:
    """The text of a book, and its pictures."""
    subject = draft.subject
    parts = await settled(asyncio.to_thread(_parts, subject.data))
    members = await settled(read_zip_members(subject.data))
    text = await settled(read_by_pandoc(subject.data, "epub", subject.jail))
    _add_text(draft, text)
    if not isinstance(parts, GtaError):
        add_leftovers(draft, parts)
    if not isinstance(members, GtaError):
        pictures = [one for one in members if one.name.lower().endswith(IMAGES)]
        await show_members(draft, pictures, show)


async def show_notebook(draft: Draft, show: ShowAny) -> None:
    """The cells of a notebook, what they printed, and the pictures that they drew."""
    subject = draft.subject
    text = await settled(read_by_pandoc(subject.data, "ipynb", subject.jail))
    _add_text(draft, text)
    cells = await settled(asyncio.to_thread(_cells, subject.data))
    if isinstance(cells, GtaError):
        return  # told by pandoc
    add_leftovers(draft, [PackagePart("notebook", tuple(_strings(cells)))])
    await show_members(draft, list(_drawn(cells)), show)


def _add_text(draft: Draft, text: str | GtaError) -> None:
    if isinstance(text, GtaError):
        draft.missed("its text", text)
        return
    draft.read = text
    draft.probe("words", words_in(text))
    draft.text(text)


def _cells(data: bytes) -> object:
    if len(data) > LARGEST_NOTEBOOK:
        raise ToolError(f"The notebook has more than {LARGEST_NOTEBOOK} bytes.")
    try:
        return json.loads(read_text(data).text)
    except (ValueError, RecursionError) as exc:
        raise ToolError(f"The notebook is no JSON: {exc}.") from exc


def _strings(value: object, name: str = "") -> Iterator[str]:
    """Every text of a JSON document but for the bytes of files."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith(("image/", "application/", "audio/", "video/")):
                yield from _strings(inner, key)
    elif isinstance(value, list):
        joined = "".join(part for part in value if isinstance(part, str))
        if joined:
            yield joined
        for inner in value:
            if not isinstance(inner, str):
                yield from _strings(inner, name)
    elif isinstance(value, str) and value.strip():
        yield value


def _drawn(value: object) -> Iterator[Member]:
    """The pictures in a notebook's output and attachments."""
    for number, (form, content) in enumerate(_bundles(value), 1):
        text = "".join(content) if isinstance(content, list) else str(content)
        try:
            data = text.encode() if form.endswith("xml") else base64.b64decode(text)
        except (binascii.Error, ValueError):
            continue
        yield Member(f"picture {number}.{SUFFIX_OF[form]}", len(data), data)


def _bundles(value: object) -> Iterator[tuple[str, object]]:
    inner: Sequence[object] = ()
    if isinstance(value, dict):
        yield from ((form, value[form]) for form in SUFFIX_OF if form in value)
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    for one in inner:
        yield from _bundles(one)
