"""Datasets that other packages bring: a name that stands for a folder of a known layout."""

from importlib.metadata import entry_points
from pathlib import Path

from gta_bench.errors import DatasetError

ENTRY_POINTS = "gta_bench.datasets"


def dataset_root(name: str) -> Path:
    """The folder that is named, or the one of an installed dataset of that name.

    A package joins by the entry point group `gta_bench.datasets`: a function without arguments
    that gives the path of its folder.
    """
    folder = Path(name)
    if folder.exists():
        return folder
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        return folder
    found = points[name].load()()
    if not isinstance(found, Path):
        problem = f"the entry point of the dataset gives {found!r}, which is no path."
        raise DatasetError(problem, file=name)
    return found
