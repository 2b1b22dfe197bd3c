"""Datasets of other packages, which are used by name instead of by folder."""

from importlib.metadata import entry_points
from pathlib import Path

from gta_bench.errors import DatasetError

ENTRY_POINTS = "gta_bench.datasets"


def dataset_root(name: str) -> Path:
    """The folder with that path, or the folder of the installed dataset with that name.

    A package adds a dataset by the entry point group `gta_bench.datasets`: a function without
    arguments that returns the path of a folder in a known layout.
    """
    folder = Path(name)
    if folder.exists():
        return folder
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        return folder
    found = points[name].load()()
    if not isinstance(found, Path):
        problem = f"the entry point of the dataset returns {found!r}, which is not a Path."
        raise DatasetError(problem, file=name)
    return found
