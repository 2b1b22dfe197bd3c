"""LibreOffice in the jail, if it is installed: converts files and computes their formulas."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.walls import Places
from gta_bench.content.needs import Missing, missing_walls
from gta_bench.errors import ToolError

PROGRAMS: Final = ("soffice", "libreoffice")
SETTINGS: Final = ("/etc/libreoffice", "/var/lib/libreoffice")
INSTALL: Final = "Install it: `apt install libreoffice-{writer,calc,impress,math}-nogui`."
# It needs less than 1 GiB of address space to start.
LIMITS: Final = JailLimits(
    wall_seconds=28.0,
    cpu_seconds=28,
    memory_bytes=3072 * MIB,
    disk_bytes=256 * MIB,
    processes=256,
    open_files=1024,
)
# One page for each sheet, as a reader scrolls through it, instead of printed pages.
SHEET_A_PAGE: Final = 'pdf:calc_pdf_Export:{"SinglePageSheets":{"type":"boolean","value":"true"}}'


@cache
def find_libreoffice() -> str | None:
    """Return the path of LibreOffice, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def missing_office(jail: Jail | None) -> Missing | None:
    """Return why LibreOffice does not work here, or None if it does."""
    if find_libreoffice() is None:
        return Missing("LibreOffice is not installed.", INSTALL)
    return missing_walls(jail, "LibreOffice")


async def convert(
    jail: Jail, name: str, data: bytes, *, to: str, seconds: float = LIMITS.wall_seconds
) -> bytes:
    """Convert a file to another format, such as `xlsx` or `pdf`, and compute its formulas."""
    made = await convert_all(jail, {name: data}, to=to, seconds=seconds)
    if name not in made:  # the exit status is 0 even then
        raise ToolError("LibreOffice could not read the file.")
    return made[name]


async def convert_all(
    jail: Jail, files: Mapping[str, bytes], *, to: str, seconds: float = LIMITS.wall_seconds
) -> dict[str, bytes]:
    """Convert files in one process; the result omits files that LibreOffice could not read.

    The names must have different stems, because the results are named by their stems.
    """

    def argv(places: Places) -> Sequence[str]:
        return [
            find_libreoffice() or PROGRAMS[0],
            f"-env:UserInstallation=file://{places.scratch}/profile",
            *("--headless", "--norestore", "--nolockcheck", "--nodefault"),
            *("--convert-to", to, "--outdir", places.work),
            *(f"{places.inputs}/{name}" for name in files),
        ]

    limits = replace(LIMITS, wall_seconds=seconds, cpu_seconds=int(2 * seconds))
    readable = [Path(folder) for folder in SETTINGS if Path(folder).is_dir()]
    done = await jail.run_program(argv, inputs=files, limits=limits, readable=readable)
    suffix = to.partition(":")[0]
    results = {name: done.files.get(f"{name.rpartition('.')[0]}.{suffix}") for name in files}
    return {name: made for name, made in results.items() if made}
