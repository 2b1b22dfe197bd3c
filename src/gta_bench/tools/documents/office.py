"""LibreOffice, where there is one, in the jail: it converts a file and computes its formulas."""

import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, Limits
from gta_bench.confine.walls import Places
from gta_bench.errors import ToolError

PROGRAMS: Final = ("soffice", "libreoffice")
SETTINGS: Final = ("/etc/libreoffice", "/var/lib/libreoffice")
LIMITS: Final = Limits(
    wall_seconds=28.0,
    cpu_seconds=28,
    memory_bytes=None,
    disk_bytes=256 * MIB,
    processes=256,
    open_files=1024,
)


@cache
def office_program() -> str | None:
    """Where LibreOffice is started from."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def can_run_in(jail: Jail | None) -> bool:
    """Whether it works here: it talks to itself by sockets, which Landlock's filter refuses."""
    return office_program() is not None and jail is not None and jail.kind != "landlock"


async def convert(jail: Jail, name: str, data: bytes, *, to: str) -> bytes:
    """The file in another format, such as `xlsx` or `pdf`, with every formula computed."""
    stem = name.rpartition(".")[0]

    def argv(places: Places) -> Sequence[str]:
        return [
            office_program() or PROGRAMS[0],
            f"-env:UserInstallation=file://{places.scratch}/profile",
            *("--headless", "--norestore", "--nolockcheck", "--nodefault"),
            *("--convert-to", to, "--outdir", places.work, f"{places.inputs}/{name}"),
        ]

    readable = [Path(folder) for folder in SETTINGS if Path(folder).is_dir()]
    done = await jail.run_program(argv, inputs={name: data}, limits=LIMITS, readable=readable)
    made = done.files.get(f"{stem}.{to.partition(':')[0]}")
    if made is None:  # its exit status is 0 all the same
        raise ToolError("LibreOffice could not read the file that was made.")
    return made
