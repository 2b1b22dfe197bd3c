"""Every kind of file, and how it is shown."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

from gta_bench.content.identify import Identity
from gta_bench.content.kinds import KINDS, ContentKind
from gta_bench.errors import ToolUnavailable
from gta_bench.judging.showing import (
    archives,
    converted,
    documents,
    media,
    others,
    sheets,
    texts,
)
from gta_bench.judging.showing.draft import Draft

Show = Callable[[Draft], Awaitable[None]]


async def show_zip(draft: Draft) -> None:
    """An archive and what is in it."""
    await archives.show_zip(draft, show_file)


async def show_packed(draft: Draft) -> None:
    """A tar archive and what is in it, or one packed file."""
    await archives.show_packed(draft, show_file)


async def show_mail(draft: Draft) -> None:
    """A mail and what is attached to it."""
    await archives.show_mail(draft, show_file)


async def show_pdf(draft: Draft) -> None:
    """A PDF file and what is attached to it."""
    await documents.show_pdf(draft)
    await archives.show_members(draft, draft.attached, show_file)


async def show_by_office(draft: Draft) -> None:
    """A document that LibreOffice turns into one of a kind that is read."""
    await converted.show_by_office(draft, SHOW)


async def show_epub(draft: Draft) -> None:
    """A book and its pictures."""
    await converted.show_epub(draft, show_file)


async def show_notebook(draft: Draft) -> None:
    """A notebook, its output and its plots."""
    await converted.show_notebook(draft, show_file)


SHOW: Final[Mapping[ContentKind, Show]] = {
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
    "png": media.show_picture,
    "jpeg": media.show_picture,
    "gif": media.show_picture,
    "webp": media.show_picture,
    "bmp": media.show_picture,
    "tiff": media.show_picture,
    "avif": media.show_picture,
    "svg": texts.show_svg,
    "wav": media.show_media,
    "mp3": media.show_media,
    "flac": media.show_media,
    "ogg": media.show_media,
    "m4a": media.show_media,
    "mp4": media.show_media,
    "mov": media.show_media,
    "webm": media.show_media,
    "mkv": media.show_media,
    "avi": media.show_media,
    "zip": show_zip,
    "packed": show_packed,
    "mail": show_mail,
    "notebook": show_notebook,
    "odt": show_by_office,
    "ods": show_by_office,
    "odp": show_by_office,
    "epub": show_epub,
    "rtf": show_by_office,
    "office-97": show_by_office,
    "unknown": others.show_unknown,
}


async def show_file(draft: Draft, shows: Mapping[ContentKind, Show] = SHOW) -> None:
    """A file by what it is, or its first bytes where nothing else can be shown."""
    identity = draft.subject.identity
    if not draft.subject.data:
        draft.findings.append("the file is empty")
        return
    draft.findings += identity_findings(identity)
    try:
        await shows[identity.kind](draft)
    except ToolUnavailable as exc:  # there is no jail
        draft.missed("its content", exc)
    if draft.unshown:
        draft.doubtful.add(identity.kind)
    if not draft.failed and not draft.texts and not draft.pictures:
        others.show_bytes(draft)


def identity_findings(identity: Identity) -> Iterator[str]:
    """That a file's name says something else than its bytes."""
    if identity.claims is None or identity.honest:
        return
    wanted = KINDS[identity.claims].form
    if identity.form == "zip" and identity.claims in ("docx", "pptx", "xlsx", "odt", "ods", "odp"):
        yield f"its name says {identity.claims}; it is a zip that is no such document, or broken"
    else:
        yield f"its name says {identity.claims} ({wanted}); its bytes are {identity.form}"
