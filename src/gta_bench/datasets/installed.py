"""Datasets that are used by name instead of by folder: of gta.toml, and of other packages."""

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import is_workflow, load_workflow
from gta_bench.errors import DatasetError
from gta_bench.settings import DatasetSettings

ENTRY_POINTS = "gta_bench.datasets"
NamedDatasets = Mapping[str, DatasetSettings]


class NamedDataset(NamedTuple):
    """A dataset with a name: where it is, and where the name comes from."""

    name: str
    root: Path
    origin: str


def dataset_root(name: str, named: NamedDatasets | None = None) -> Path:
    """The folder of a dataset: of gta.toml's `[datasets]`, with that path, or of a package.

    A package adds a dataset by the entry point group `gta_bench.datasets`: a function without
    arguments that returns the path of a folder in a known layout. A dataset of gta.toml that has a
    digest is read, and refused if it changed.
    """
    if named is not None and name in named:
        return _verify_named(name, named[name])
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


def list_named(named: NamedDatasets) -> list[NamedDataset]:
    """Return the datasets of gta.toml and of installed packages, without reading them."""
    found = [
        NamedDataset(name, Path(one.path), f"gta.toml{_name_source(one)}")
        for name, one in named.items()
    ]
    installed = sorted(point.name for point in entry_points(group=ENTRY_POINTS))
    return found + [
        NamedDataset(name, dataset_root(name), "package") for name in installed if name not in named
    ]


def load_any(root: Path) -> Dataset:
    """Load a dataset of either benchmark, as its files say."""
    return load_workflow(root) if is_workflow(root) else load_atomic(root)


def _name_source(entry: DatasetSettings) -> str:
    """Where a dataset is downloaded from; empty for a folder."""
    if entry.git is None and entry.hf is None:
        return ""
    where = entry.git if entry.git is not None else f"hf:{entry.hf}"
    return f", {where}@{(entry.revision or 'newest')[:12]}"


def _verify_named(name: str, entry: DatasetSettings) -> Path:
    root = Path(entry.path)
    if _name_source(entry) and not root.exists():
        problem = f"the dataset is not downloaded yet. Run `gta data fetch {name}`."
        raise DatasetError(problem, file=str(root))
    if entry.digest is None:
        return root
    digest = dataset_digest(load_any(root))
    if digest != entry.digest:
        problem = (
            f"the dataset changed since it was added (its digest is {digest}, not {entry.digest}). "
            f"Restore it, or accept the change by setting datasets.{name}.digest in gta.toml."
        )
        raise DatasetError(problem, file=str(root))
    return root
