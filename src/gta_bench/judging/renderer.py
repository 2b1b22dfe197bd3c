"""The programs that make evidence here, with their versions: others may show a file otherwise."""

import asyncio
from functools import cache
from typing import Final

from gta_bench.content.browser import browser_program
from gta_bench.content.libreoffice import office_program
from gta_bench.content.needs import program_version, versions
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.speech import local_recognizer

# Raised by every change of our own code that shows a file otherwise.
VERSION: Final = 4
PACKAGES: Final = ("pypandoc-binary", "pypdf", "pypdfium2", "python-pptx", "openpyxl", "pillow")


async def renderer(equipment: Equipment) -> str:
    """Everything that pictures and text of a file depend on, beside the file."""
    office, browser = await asyncio.to_thread(_programs)
    recognizer = local_recognizer(equipment)
    sound = ffmpeg.installed()
    parts = [
        f"evidence {VERSION}",
        f"jail {equipment.jail.kind if equipment.jail else 'missing'}",
        f"LibreOffice {office}",
        f"Chromium {browser}",
        sound.backend if sound else "ffmpeg missing",
        "no transcripts" if isinstance(recognizer, Unavailable) else recognizer.backend,
        versions(*PACKAGES),
    ]
    return "; ".join(parts)


@cache
def _programs() -> tuple[str, str]:
    return program_version(office_program()), program_version(browser_program())
