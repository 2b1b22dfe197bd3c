"""What Solver, Plot and Prover share: drivers, and whether jailed code can run here."""

import re
from functools import cache
from importlib.resources import files
from textwrap import dedent

from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.tools.contract import Availability, Available, Equipment
from gta_bench.tools.packages import missing, name_and_version

# The closing fence may be missing: replies are cut, and agents forget it.
FENCED = re.compile(
    r"```[ \t]*(?:python3?|py)?[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE
)
ON_ONE_LINE = re.compile(r"```(?:python3?|py)?(.*?)```", re.DOTALL | re.IGNORECASE)


def python_code(command: str) -> str:
    """The code of a command; of several blocks the first that defines `solution`."""
    blocks = FENCED.findall(command) or ON_ONE_LINE.findall(command)
    if not blocks:
        return dedent(command)
    defining = (block for block in blocks if "def solution" in block)
    return dedent(next(defining, blocks[0]))


LIMITS = JailLimits(wall_seconds=20.0, cpu_seconds=20, memory_bytes=2048 * MIB)


@cache
def driver(name: str) -> str:
    """The source of a driver."""
    folder = files("gta_bench.tools.logic.inside")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


def jailed(equipment: Equipment, distribution: str, module: str) -> Availability:
    """A package that is used in the jail: both must be here."""
    absent = missing(distribution, module)
    if absent is not None:
        return absent
    if equipment.jail is None:
        return equipment.no_jail
    return Available(name_and_version(distribution))
