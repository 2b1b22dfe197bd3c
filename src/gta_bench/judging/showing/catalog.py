"""Every kind of file, and how it is shown."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gta_bench.content.kinds import Kind
from gta_bench.judging.showing import documents, media, others, sheets, texts
from gta_bench.judging.showing.draft import Draft

Show = Callable[[Draft], Awaitable[None]]

SHOW: Final[Mapping[Kind, Show]] = {
    "docx": documents.show_docx,
    "pptx": documents.show_pptx,
    "xlsx": sheets.show_xlsx,
    "pdf": documents.show_pdf,
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
    "zip": others.show_archive,
    "odt": documents.show_by_office,
    "ods": documents.show_by_office,
    "odp": documents.show_by_office,
    "epub": others.show_archive,
    "rtf": documents.show_by_office,
    "office-97": documents.show_by_office,
    "unknown": others.show_unknown,
}
