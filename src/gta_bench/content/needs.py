"""What reading needs on this machine: packages of an extra, and programs."""

import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.errors import NotInstalled
from gta_bench.packages import install_command, missing_packages

NUMBER = re.compile(r"\d+(?:\.\d+)+")
SECONDS = 30
INSTALL_DOCUMENTS = f"Install them: `{install_command('documents')}`."
INSTALL_FFMPEG = "Install it: `apt install ffmpeg` (or `dnf install ffmpeg-free`)."
# What shows documents and pictures to a judge.
EVIDENCE_PACKAGES = ("openpyxl", "pdfplumber", "pptx", "pypandoc", "pypdf", "pypdfium2")


class Missing(NamedTuple):
    """What is not there, and the line that mends it."""

    reason: str
    mend: str


def missing_modules(*names: str) -> Missing | None:
    """The Python modules that are not installed; nothing is imported to find out."""
    absent = missing_packages(*names)
    if not absent:
        return None
    return Missing(f"Python packages are missing: {', '.join(absent)}.", INSTALL_DOCUMENTS)


def missing_pandoc() -> Missing | None:
    """Whether there is no pandoc of the version that was tested, inside its Python package."""
    if pandoc_program() is not None:
        return None
    return Missing("pandoc is missing (the package pypandoc-binary).", INSTALL_DOCUMENTS)


def pandoc_program() -> Path | None:
    """The pandoc that pypandoc-binary brings; distributions' own ones are often years older."""
    package = find_spec("pypandoc")
    for folder in (package and package.submodule_search_locations) or ():
        program = Path(folder) / "files" / "pandoc"
        if program.is_file():
            return program
    return None


def missing_ffmpeg() -> Missing | None:
    """Whether ffmpeg or its companion ffprobe is missing."""
    absent = [name for name in ("ffmpeg", "ffprobe") if shutil.which(name) is None]
    return Missing(f"{' and '.join(absent)} not found.", INSTALL_FFMPEG) if absent else None


def missing_walls(jail: Jail | None, program: str) -> Missing | None:
    """A jail for a program that talks to itself by sockets, which Landlock's filter refuses."""
    if jail is not None and jail.kind != "landlock":
        return None
    where = "without a jail" if jail is None else "in the Landlock jail"
    mend = "Install bubblewrap; `gta doctor` says what keeps it from working."
    return Missing(f"{program} does not run {where}.", mend)


def require(missing: Missing | None) -> None:
    """Raise NotInstalled for what is missing."""
    if missing is not None:
        raise NotInstalled(missing.reason, mend=missing.mend)


def program_version(program: str | None) -> str:
    """The version that a program says it has; `missing` where there is no program."""
    if program is None:
        return "missing"
    try:
        # ffmpeg is the one that takes no second dash.
        option = "-version" if Path(program).name == "ffmpeg" else "--version"
        ran = subprocess.run([program, option], capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        return "of unknown version"
    found = NUMBER.search(ran.stdout.decode("utf-8", "replace"))
    return found[0] if found else "of unknown version"


def versions(*packages: str) -> str:
    """Distributions with their versions, for the record of what ran."""
    return " + ".join(f"{package} {_version(package)}" for package in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
