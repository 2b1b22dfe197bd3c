"""Any file, read by what it is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gta_bench.confine.jail import Jail
from gta_bench.content.archive import ZipContent, read_zip
from gta_bench.content.csv import CsvContent, read_csv
from gta_bench.content.docx import DocxContent, read_docx
from gta_bench.content.identify import identify
from gta_bench.content.images import ImageContent, read_image
from gta_bench.content.kinds import KINDS, ContentKind, ReaderName
from gta_bench.content.media import AudioContent, VideoContent, read_media
from gta_bench.content.pdf import Ocr, PdfContent, read_pdf
from gta_bench.content.pptx import PptxContent, read_pptx
from gta_bench.content.text import TextContent, read_text
from gta_bench.content.xlsx import XlsxContent, read_xlsx
from gta_bench.errors import ToolError

Content = (
    DocxContent
    | PptxContent
    | XlsxContent
    | PdfContent
    | CsvContent
    | TextContent
    | ImageContent
    | AudioContent
    | VideoContent
    | ZipContent
)


JAILED: Mapping[ReaderName, Callable[[bytes, Jail], Awaitable[Content]]] = {
    "docx": read_docx,
    "pptx": read_pptx,
    "xlsx": read_xlsx,
    "image": read_image,
    "media": read_media,
}
PLAIN: Mapping[ReaderName, Callable[[bytes], Content]] = {"csv": read_csv, "text": read_text}


async def read(name: str, data: bytes, jail: Jail, *, ocr: Ocr | None = None) -> Content:
    """Read a file by what its bytes are; where they leave a choice, its name decides.

    ToolError where it is broken or too much, or of a kind that is known but not read.
    """
    identity = await asyncio.to_thread(identify, name, data)
    return await read_kind(identity.kind, data, jail, ocr=ocr)


async def read_kind(
    kind: ContentKind, data: bytes, jail: Jail, *, ocr: Ocr | None = None
) -> Content:
    """Read a file of a kind that is known already."""
    reader = KINDS[kind].reader
    if reader is None:
        raise ToolError(f"Files of the kind {kind!r} are not read.")
    if reader == "pdf":
        return await read_pdf(data, jail, ocr=ocr)
    if reader == "zip":
        return await read_zip(data)
    if reader in PLAIN:
        return await asyncio.to_thread(PLAIN[reader], data)
    return await JAILED[reader](data, jail)
