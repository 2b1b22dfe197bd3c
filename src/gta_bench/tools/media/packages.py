"""Python packages of the extra `media`: whether they are here, and which versions ran."""

from importlib.metadata import version

from gta_bench.packages import install_command, missing_packages
from gta_bench.tools.contract import Unavailable


def missing(*modules: str) -> Unavailable | None:
    """Packages that are not installed, found without importing any."""
    absent = missing_packages(*modules)
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return Unavailable(f"{' and '.join(absent)} {verb} not installed.", install_command("media"))


def named(*packages: str) -> str:
    """Packages with their versions, as results name them."""
    return ", ".join(f"{package} {version(package)}" for package in packages)
