"""The text of a sample by its suffix, for tests that run over several kinds of file."""

import asyncio

from gta_bench.confine.jail import Jail
from gta_bench.content.docx import read_docx
from gta_bench.content.images import read_image
from gta_bench.content.members import read_zip
from gta_bench.content.pdf import read_pdf
from gta_bench.content.pptx import read_pptx
from gta_bench.content.xlsx import read_xlsx


async def read_words(name: str, data: bytes, jail: Jail) -> str:
    """What a reader finds in the file; what has no text is shown by its type."""
    suffix = name.rpartition(".")[2]
    match suffix:
        case "docx":
            return (await read_docx(data, jail)).as_text()
        case "pptx":
            return (await read_pptx(data, jail)).as_text()
        case "xlsx":
            return (await read_xlsx(data, jail)).as_text()
        case "pdf":
            return (await read_pdf(data, jail)).as_text()
        case "zip":
            return repr(await read_zip(data))
        case _:
            return repr(await read_image(data, jail))


def words(name: str, data: bytes, jail: Jail) -> str:
    """`read_words`, waited for."""
    return asyncio.run(read_words(name, data, jail))
