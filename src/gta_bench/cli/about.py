"""`gta --version --verbose`: everything that a bug report needs, and nothing secret."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from gta_bench.content.browser import browser_program
from gta_bench.content.libreoffice import office_program
from gta_bench.content.needs import program_version
from gta_bench.settings import CONFIG_FILE

NAME = re.compile(r"[A-Za-z0-9_.-]+")
EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")
PROGRAMS = ("bwrap", "ffmpeg", "npm", "git")


def describe() -> Iterator[tuple[str, str]]:
    """Names and values, in the order in which a reader of bug reports asks for them."""
    yield "gta-bench", f"{version('gta-bench')} in {Path(__file__).parents[1]}"
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "executable", sys.executable
    yield "system", f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores"
    yield "settings", str(Path(CONFIG_FILE).resolve()) if Path(CONFIG_FILE).is_file() else "none"
    for program in PROGRAMS:
        yield program, program_version(shutil.which(program))
    yield "libreoffice", program_version(office_program())
    yield "chromium", program_version(browser_program())
    for extra, names in sorted(_packages().items()):
        yield f"[{extra}]", ", ".join(f"{name} {_installed(name)}" for name in names)


def write_about() -> None:
    """The description on stdout."""
    rows = list(describe())
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"{name.ljust(width)}  {value}")


def _packages() -> dict[str, list[str]]:
    """What the core and each extra ask for."""
    found: dict[str, list[str]] = {}
    for line in requires("gta-bench") or ():
        name = NAME.match(line)
        extra = EXTRA.search(line)
        if name and name[0] != "gta-bench":
            found.setdefault(extra[1] if extra else "core", []).append(name[0])
    return found


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
