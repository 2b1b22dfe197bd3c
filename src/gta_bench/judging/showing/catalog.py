"""Every kind of file and how it is shown, and the kinds that contain or become other files.

Members of archives, attachments and pictures inside a document are shown like files of their own.
Kinds without a reader are converted by LibreOffice or pandoc.
"""

import asyncio
import base64
import binascii
import io
import json
import zipfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from gta_bench.confine.archives import check_archive
from gta_bench.content.docx import read_by_pandoc
from gta_bench.content.identify import BROKEN_ZIP, Identity, identify
from gta_bench.content.kinds import KINDS, ContentKind
from gta_bench.content.leftovers import PackagePart, read_package_parts
from gta_bench.content.members import Member, read_members, read_zip, read_zip_members
from gta_bench.content.text import read_text
from gta_bench.errors import GtaError, ToolError, ToolUnavailable
from gta_bench.judging.showing import documents, media, sheets, texts
from gta_bench.judging.showing.draft import (
    LISTED,
    Draft,
    ShowFailure,
    Subject,
    count_words,
    describe_rest,
    quote_name,
    settle,
)
from gta_bench.judging.showing.pages import add_pages, print_pages, to_document

Show = Callable[[Draft], Awaitable[None]]
DEEPEST: Final = 3  # archives within archives
SHARE: Final = 2  # a member gets one part of so many of the file's page limit
TARGETS: Final[Mapping[str, ContentKind]] = {
    "odt": "docx", "rtf": "docx", "doc": "docx", "ods": "xlsx", "xls": "xlsx", "odp": "pptx",
    "ppt": "pptx",
}  # fmt: skip
IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".tif", ".tiff")
SUFFIX_OF: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif",
                    "image/svg+xml": "svg"}  # fmt: skip
MACROS: Final = ("Basic/", "Scripts/")
LARGEST_NOTEBOOK: Final = 32 << 20
HEAD: Final = 256  # bytes that are shown of a file of no known kind
LINE: Final = 16
CLOSED: Final = ("7z", "rar")


async def show_file(draft: Draft) -> None:
    """Show a file by its kind, or its first bytes if nothing else can be shown."""
    identity = draft.subject.identity
    if not draft.subject.data:
        draft.findings.append("the file is empty")
        return
    draft.findings += _identity_findings(identity)
    try:
        await SHOW[identity.kind](draft)
    except ToolUnavailable as exc:  # there is no jail
        draft.add_missing("its content", exc)
    if draft.unshown:
        draft.doubtful.add(identity.kind)
    if not draft.failed and not draft.texts and not draft.pictures:
        _show_bytes(draft)


def _identity_findings(identity: Identity) -> Iterator[str]:
    """Yield a finding if the file's name says something else than its bytes."""
    if identity.claims is None or identity.honest:
        return
    wanted = KINDS[identity.claims].form
    if identity.form == "zip" and identity.claims in ("docx", "pptx", "xlsx", "odt", "ods", "odp"):
        yield f"its name says {identity.claims}; it is a zip that is no such document, or broken"
    else:
        yield f"its name says {identity.claims} ({wanted}); its bytes are {identity.form}"


async def show_unknown(draft: Draft) -> None:
    """Show the first bytes; of an archive that cannot be opened, also that it is one."""
    form = draft.subject.identity.form
    if form in CLOSED:
        draft.unshown.append(f"its members: {form} archives are not opened")
    _show_bytes(draft)


def _show_bytes(draft: Draft) -> None:
    """Show the first bytes as hexadecimal numbers and letters."""
    data = draft.subject.data
    lines = []
    for start in range(0, min(len(data), HEAD), LINE):
        piece = data[start : start + LINE]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<47}  {letters}")
    draft.add_text("\n".join(["[First bytes]", *lines, ""]), what="first bytes")
    if len(data) > HEAD:
        draft.cut.append(describe_rest("byte", HEAD + 1, len(data)))


# Files that contain files


async def show_zip(draft: Draft) -> None:
    """Show a zip archive: the list of its members, and each of them."""
    about = await settle(read_zip(draft.subject.data, skip_bad=True))
    if not isinstance(about, GtaError):
        draft.add_fact("unpacked bytes", about.unpacked_bytes)
        draft.add_hidden("the comment of the archive", about.comment, shown=False)
    await _show_archive(draft, await settle(read_zip_members(draft.subject.data)))


async def show_packed(draft: Draft) -> None:
    """Show a tar archive, one compressed file, or a mail with its attachments."""
    subject = draft.subject
    if subject.identity.kind == "mail":
        members = read_members(subject.data, "mail", subject.jail, name=subject.path)
    else:
        members = read_members(subject.data, "packed", subject.jail, name=subject.identity.name)
    await _show_archive(draft, await settle(members))


async def show_pdf(draft: Draft) -> None:
    """Show a PDF file and its attachments."""
    await documents.show_pdf(draft)
    await _show_members(draft, draft.attached)


async def _show_archive(draft: Draft, members: Sequence[Member] | GtaError) -> None:
    if isinstance(members, GtaError):
        draft.add_missing("its members", members)
        _show_bytes(draft)
        return
    most = draft.subject.limits.members
    draft.add_fact("files", len(members))
    lines = [f"{member.bytes:>12,}  {member.name}" for member in members[:most]]
    draft.add_text("\n".join(["[Members: bytes, name]", *lines, ""]), what="list of members")
    if len(members) > most:
        draft.cut.append(describe_rest("member", most + 1, len(members), how="listed"))
    problems = [(member.name, member.problem) for member in members if member.problem]
    for name, why in problems[:LISTED]:
        draft.leave_out(f"member {quote_name(name)}", why)
    if len(problems) > LISTED:
        draft.unshown.append(f"{len(problems) - LISTED:,} more members that are broken or unsafe")
    await _show_members(draft, members)


async def _show_members(draft: Draft, members: Sequence[Member]) -> None:
    """Show each member like a file of its own, within the limits of the file around them."""
    limits = draft.subject.limits
    if draft.subject.depth >= DEEPEST:
        draft.cut.append(f"it lies {DEEPEST} archives deep: its members are only named")
        return
    opened = 0
    for member in members:
        if not draft.room or opened >= limits.opened or len(draft.pictures) >= limits.pages:
            break
        if member.data is not None:
            child = Draft(_member_subject(draft, member, member.data, members))
            await show_file(child)
            _merge(draft, child, member)
            opened += 1
    if opened < len(members):
        rest = len(members) - opened
        draft.cut.append(f"of {rest:,} of {len(members):,} members only the name is shown")


def _member_subject(
    draft: Draft, member: Member, data: bytes, members: Sequence[Member]
) -> Subject:
    subject, most = draft.subject, draft.subject.limits.pages
    pages = max(1, min(most // SHARE, most - len(draft.pictures)))
    identity = identify(member.name, data)
    document = to_document(0, "", identity, data)
    equipment, seconds = subject.equipment, subject.limits.seconds
    return replace(
        subject,
        path=member.name,
        data=data,
        identity=identity,
        limits=subject.limits.model_copy(update={"pages": pages, "characters": draft.room}),
        beside={
            one.name: one.data for one in members if one.data is not None and one is not member
        },
        lost=(),
        pdf=None if document is None else partial(document.convert, equipment, seconds=seconds),
        depth=subject.depth + 1,
    )


def _merge(draft: Draft, child: Draft, member: Member) -> None:
    """Add the evidence of a member under its name."""
    kind, name = child.subject.identity.kind, quote_name(member.name)
    facts = "".join(f"; {probe.name} {probe.value}" for probe in child.probes)
    head = f"\n[Member {name}: {kind}, {member.bytes:,} bytes{facts}]\n"
    draft.add_text(f"{head}{''.join(child.texts)}\n", what=f"member {name}")
    draft.pictures += [
        picture.model_copy(update={"label": f"{name}: {picture.label}"})
        for picture in child.pictures
    ]
    for mine, its in (
        (draft.cut, child.cut), (draft.unshown, child.unshown), (draft.findings, child.findings),
    ):  # fmt: skip
        mine += [f"{name}: {note}" for note in its]
    draft.failed += [ShowFailure(f"{name}, {what}", problem) for what, problem in child.failed]
    draft.doubtful |= child.doubtful | ({kind} if child.unshown else set())
    draft.late |= child.late


# Files that are converted


async def show_by_office(draft: Draft) -> None:
    """Show OpenDocument, rich text and old Office files as LibreOffice converts them."""
    subject = draft.subject
    made = await settle(_convert(subject))
    if isinstance(made, GtaError):
        draft.add_missing("its text", made)
        add_pages(draft, await settle(print_pages(subject)))
        return
    kind, data = made
    draft.subject = replace(subject, data=data, identity=identify(f"converted.{kind}", data))
    await SHOW[kind](draft)  # its pages are still those of the original file
    draft.subject = subject
    draft.findings.append(f"its text was read after LibreOffice converted it to {kind}")
    parts = await settle(asyncio.to_thread(_read_parts, subject.data))
    if not isinstance(parts, GtaError):
        if any(part.name.startswith(MACROS) for part in parts):
            draft.findings.append("it holds macros; they were not run")
        rest = [part for part in parts if not part.name.startswith(MACROS)]
        documents.add_leftovers(draft, rest)


async def _convert(subject: Subject) -> tuple[ContentKind, bytes]:
    document = to_document(0, "", subject.identity, subject.data)
    assert document is not None, "a kind that LibreOffice reads"
    kind = TARGETS[document.name.rpartition(".")[2]]
    seconds = subject.limits.seconds
    return kind, await document.convert(subject.equipment, to=kind, seconds=seconds)


def _read_parts(data: bytes) -> tuple[PackagePart, ...]:
    if not data.startswith(b"PK"):
        return ()
    check_archive(io.BytesIO(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return tuple(read_package_parts(archive))
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc


async def show_epub(draft: Draft) -> None:
    """Show the text of a book, and its pictures."""
    subject = draft.subject
    parts = await settle(asyncio.to_thread(_read_parts, subject.data))
    members = await settle(read_zip_members(subject.data))
    await _add_by_pandoc(draft, "epub")
    if not isinstance(parts, GtaError):
        documents.add_leftovers(draft, parts)
    if not isinstance(members, GtaError):
        pictures = [one for one in members if one.name.lower().endswith(IMAGES)]
        await _show_members(draft, pictures)


async def show_notebook(draft: Draft) -> None:
    """Show the cells of a notebook, their output, and the pictures that they drew."""
    await _add_by_pandoc(draft, "ipynb")
    cells = await settle(asyncio.to_thread(_read_cells, draft.subject.data))
    if isinstance(cells, GtaError):
        return  # pandoc has reported it
    documents.add_leftovers(draft, [PackagePart("notebook", tuple(_strings(cells)))])
    await _show_members(draft, list(_notebook_pictures(cells)))


async def _add_by_pandoc(draft: Draft, form: str) -> None:
    found = await settle(read_by_pandoc(draft.subject.data, form, draft.subject.jail))
    text = draft.take("its text", found)
    if text is not None:
        draft.read = text
        draft.add_fact("words", count_words(text))
        draft.add_text(text)


def _read_cells(data: bytes) -> object:
    if len(data) > LARGEST_NOTEBOOK:
        raise ToolError(f"The notebook has more than {LARGEST_NOTEBOOK} bytes.")
    try:
        return json.loads(read_text(data).text)
    except (ValueError, RecursionError) as exc:
        raise ToolError(f"The notebook is no JSON: {exc}.") from exc


def _strings(value: object) -> Iterator[str]:
    """Yield every text of a JSON document, except the bytes of files."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith(("image/", "application/", "audio/", "video/")):
                yield from _strings(inner)
    elif isinstance(value, list):
        joined = "".join(part for part in value if isinstance(part, str))
        if joined:
            yield joined
        for inner in value:
            if not isinstance(inner, str):
                yield from _strings(inner)
    elif isinstance(value, str) and value.strip():
        yield value


def _notebook_pictures(value: object) -> Iterator[Member]:
    """Yield the pictures in a notebook's output and attachments."""
    for number, (form, content) in enumerate(_bundles(value), 1):
        text = "".join(content) if isinstance(content, list) else str(content)
        try:
            data = text.encode() if form.endswith("xml") else base64.b64decode(text)
        except (binascii.Error, ValueError):
            continue
        yield Member(f"picture {number}.{SUFFIX_OF[form]}", len(data), data)


def _bundles(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((form, value[form]) for form in SUFFIX_OF if form in value)
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _bundles(inner)


SHOW: Final[Mapping[ContentKind, Show]] = {
    **{kind: media.show_picture for kind, about in KINDS.items() if about.reader == "image"},
    **{kind: media.show_media for kind, about in KINDS.items() if about.reader == "media"},
    "docx": documents.show_docx,
    "pptx": documents.show_pptx,
    "xlsx": sheets.show_xlsx,
    "pdf": show_pdf,
    "csv": sheets.show_csv,
    "markdown": texts.show_markdown,
    "html": texts.show_html,
    "json": texts.show_json,
    "code": texts.show_text,
    "text": texts.show_text,
    "svg": texts.show_svg,
    "zip": show_zip,
    "packed": show_packed,
    "mail": show_packed,
    "notebook": show_notebook,
    "odt": show_by_office,
    "ods": show_by_office,
    "odp": show_by_office,
    "epub": show_epub,
    "rtf": show_by_office,
    "office-97": show_by_office,
    "unknown": show_unknown,
}
