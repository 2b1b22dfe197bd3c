"""Shared by Solver, Plot and Prover: drivers, and whether jailed code can run here."""

import re
from functools import cache
from importlib.resources import files
from textwrap import dedent

from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.tools.contract import Availability, Available, Equipment
from gta_bench.tools.packages import find_missing, name_and_version

# The closing fence may be missing: replies are cut, and agents forget it.
FENCED = re.compile(
    r"```[ \t]*(?:python3?|py)?[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE
)
ON_ONE_LINE = re.compile(r"```(?:python3?|py)?(.*?)```", re.DOTALL | re.IGNORECASE)


def python_code(command: str) -> str:
    """Return the code of a command; of several blocks, the first that defines `solution`."""
    blocks = FENCED.findall(command) or ON_ONE_LINE.findall(command)
    if not blocks:
        return dedent(command)
    defining = (block for block in blocks if "def solution" in block)
    return dedent(next(defining, blocks[0]))


LIMITS = JailLimits(wall_seconds=20.0, cpu_seconds=20, memory_bytes=2048 * MIB)


@cache
def read_driver(name: str) -> str:
    """Return the source of a driver."""
    folder = files("gta_bench.tools.logic.inside")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


def check_jailed(equipment: Equipment, distribution: str, module: str) -> Availability:
    """Return whether a package is installed and there is a jail to use it in."""
    missing = find_missing(module) or (None if equipment.jail else equipment.no_jail)
    return missing or Available(name_and_version(distribution))
