"""Python packages of the extra `media`: whether they are here, and which versions ran."""

from importlib.metadata import version
from importlib.util import find_spec

from gta_bench.tools.contract import Unavailable

MEND = "pip install 'gta-bench[media]'"


def missing(*modules: str) -> Unavailable | None:
    """Packages that are not installed, found without importing any."""
    absent = [module for module in modules if find_spec(module) is None]
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return Unavailable(f"{' and '.join(absent)} {verb} not installed.", MEND)


def named(*packages: str) -> str:
    """Packages with their versions, as results name them."""
    return ", ".join(f"{package} {version(package)}" for package in packages)
