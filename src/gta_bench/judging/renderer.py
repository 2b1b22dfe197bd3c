"""The programs that make evidence here, with their versions: others may show a file otherwise."""

import asyncio
import re
import subprocess
from functools import cache
from typing import Final

from gta_bench.content.browser import browser_program
from gta_bench.content.libreoffice import office_program
from gta_bench.content.needs import versions
from gta_bench.tools.contract import Equipment, Unavailable
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.speech import local_recognizer

# Raised by every change of our own code that shows a file otherwise.
VERSION: Final = 2
PACKAGES: Final = ("pypandoc-binary", "pypdf", "pypdfium2", "python-pptx", "openpyxl", "pillow")
NUMBER: Final = re.compile(r"\d+(?:\.\d+)+")
SECONDS: Final = 30


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
    return _version(office_program()), _version(browser_program())


def _version(program: str | None) -> str:
    if program is None:
        return "missing"
    try:
        ran = subprocess.run([program, "--version"], capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        return "of unknown version"
    found = NUMBER.search(ran.stdout.decode("utf-8", "replace"))
    return found[0] if found else "of unknown version"
