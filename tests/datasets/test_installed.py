from pathlib import Path

import pytest

import gta_bench.datasets.installed as installed
from gta_bench.datasets.installed import dataset_root
from gta_bench.errors import DatasetError


class Point:
    """An entry point as importlib.metadata gives it."""

    def __init__(self, name: str, gives: object) -> None:
        self.name = name
        self.gives = gives

    def load(self) -> object:
        return lambda: self.gives


@pytest.fixture(autouse=True)
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = [Point("units", tmp_path / "of package"), Point("odd", "a text")]
    monkeypatch.setattr(installed, "entry_points", lambda group: brought)
    monkeypatch.chdir(tmp_path)


def test_a_folder_that_is_there_is_meant(tmp_path: Path) -> None:
    (tmp_path / "units").mkdir()
    assert dataset_root("units") == Path("units")


def test_a_name_stands_for_the_folder_of_a_package(tmp_path: Path) -> None:
    assert dataset_root("units") == tmp_path / "of package"


def test_any_other_name_is_a_folder_that_is_not_there() -> None:
    assert dataset_root("data/gta_atomic") == Path("data/gta_atomic")


def test_a_package_that_gives_no_path_is_named() -> None:
    with pytest.raises(DatasetError, match="odd: the entry point of the dataset returns 'a text'"):
        dataset_root("odd")
