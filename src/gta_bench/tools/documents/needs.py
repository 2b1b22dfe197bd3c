"""What a document tool needs here, told apart cheaply and without importing anything heavy."""

import re
from importlib.metadata import version
from typing import Final

from gta_bench.packages import install_command, missing_packages
from gta_bench.tools.contract import Equipment, Unavailable

# Control characters, halves of characters, and what XML forbids; tab and newline stay.
UNWRITABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def clean_text(text: str) -> str:
    """Without what no file format can hold, and with one kind of line break."""
    return UNWRITABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


INSTALL: Final = install_command("documents")


def first_missing(*found: Unavailable | None) -> Unavailable | None:
    """The first thing that is missing, if one is."""
    return next((missing for missing in found if missing is not None), None)


def jail(equipment: Equipment) -> Unavailable | None:
    """A jail, as programs on foreign text run in one only."""
    return equipment.no_jail if equipment.jail is None else None


def packages(**modules: str) -> Unavailable | None:
    """Packages by the module that each brings, such as `openpyxl="openpyxl"`."""
    missing = [package for package, module in modules.items() if missing_packages(module)]
    if not missing:
        return None
    return Unavailable(f"{_package(missing[0])} is not installed.", INSTALL)


def backend(package: str) -> str:
    """Such as `openpyxl 3.1.5`."""
    return f"{_package(package)} {version(_package(package))}"


def _package(name: str) -> str:
    return name.replace("_", "-")
