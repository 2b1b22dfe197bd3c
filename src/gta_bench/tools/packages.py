"""Optional packages that tools need: whether they are here and in which version, unimported."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from gta_bench.packages import install_command, missing_packages
from gta_bench.tools.contract import Unavailable


@cache
def installed(distribution: str) -> str | None:
    """`sympy 1.14.0`, or None where it is not installed."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return None


def missing(distribution: str, module: str) -> Unavailable | None:
    """What to tell where a package is not here; None where it is. Nothing is imported."""
    if installed(distribution) is not None and not missing_packages(module):
        return None
    return Unavailable(f"The package {distribution} is not installed.", install_command("tools"))


def name_and_version(distribution: str) -> str:
    """The backend's name for results; without a version where the package does not tell it."""
    return installed(distribution) or distribution
