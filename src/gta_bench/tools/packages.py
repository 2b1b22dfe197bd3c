"""Optional packages that tools need: whether they are installed, and their versions."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from gta_bench.packages import install_command, missing_packages
from gta_bench.tools.contract import Unavailable


def find_missing(*modules: str, extra: str = "tools") -> Unavailable | None:
    """Return which modules are not installed and how to install them; imports none of them."""
    absent = missing_packages(*modules)
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return Unavailable(f"{' and '.join(absent)} {verb} not installed.", install_command(extra))


@cache
def name_and_version(*distributions: str) -> str:
    """Return packages with their versions, as results record them: `sympy 1.14.0`.

    A package without metadata is named without a version.
    """
    return ", ".join(_name_one(distribution) for distribution in distributions)


def _name_one(distribution: str) -> str:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution
