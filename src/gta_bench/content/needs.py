"""What the readers need on this machine: Python packages and programs."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.systems import ROADS
from gta_bench.errors import NotInstalled
from gta_bench.packages import install_command, missing_packages

NUMBER = re.compile(r"\d+(?:\.\d+)+")
SECONDS = 30
INSTALL_DOCUMENTS = f"Run `{install_command('documents')}`."
INSTALL_FFMPEG = "Install it: `apt install ffmpeg` (or `dnf install ffmpeg-free`)."
# Packages that render documents and pictures for a judge.
EVIDENCE_PACKAGES = ("openpyxl", "pdfplumber", "pptx", "pypandoc", "pypdf", "pypdfium2")


class Missing(NamedTuple):
    """What is not installed, and how to fix it."""

    reason: str
    fix: str


def missing_modules(*names: str) -> Missing | None:
    """Return which Python modules are not installed, without importing any; None if none."""
    absent = missing_packages(*names)
    if not absent:
        return None
    return Missing(f"Python packages are missing: {', '.join(absent)}.", INSTALL_DOCUMENTS)


def missing_pandoc() -> Missing | None:
    """Return what is missing if pypandoc-binary, which contains pandoc, is not installed."""
    if find_pandoc() is not None:
        return None
    return Missing("pandoc (the package pypandoc-binary) is not installed.", INSTALL_DOCUMENTS)


def find_pandoc() -> Path | None:
    """Return the pandoc of pypandoc-binary; the system's own is often years older."""
    package = find_spec("pypandoc")
    for folder in (package and package.submodule_search_locations) or ():
        program = Path(folder) / "files" / "pandoc"
        if program.is_file():
            return program
    return None


def missing_ffmpeg() -> Missing | None:
    """Return which of ffmpeg and ffprobe is not installed; None if both are."""
    absent = [name for name in ("ffmpeg", "ffprobe") if shutil.which(name) is None]
    return Missing(f"{' and '.join(absent)} not found.", INSTALL_FFMPEG) if absent else None


def missing_walls(jail: Jail | None, program: str) -> Missing | None:
    """Return what is missing to run a program that uses sockets, which the Landlock jail blocks."""
    if jail is not None and jail.kind != "landlock":
        return None
    where = "without a jail" if jail is None else "in the Landlock jail"
    fix = ROADS
    if sys.platform == "linux":
        fix = "Install bubblewrap; `gta doctor` shows why it does not work."
    return Missing(f"{program} does not run {where}.", fix)


def require(missing: Missing | None) -> None:
    """Raise NotInstalled if something is missing."""
    if missing is not None:
        raise NotInstalled(missing.reason, fix=missing.fix)


def read_program_version(program: str | None) -> str:
    """Return the version that a program reports, or `missing` without a program."""
    if program is None:
        return "missing"
    try:
        # ffmpeg is the only one that takes a single dash.
        option = "-version" if Path(program).name == "ffmpeg" else "--version"
        ran = subprocess.run([program, option], capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        return "of unknown version"
    found = NUMBER.search(ran.stdout.decode("utf-8", "replace"))
    return found[0] if found else "of unknown version"


def describe_versions(*packages: str) -> str:
    """Return packages with their versions, to record what ran."""
    return " + ".join(f"{package} {_version(package)}" for package in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
