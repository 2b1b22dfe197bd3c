from pathlib import Path

import pytest

import gta_bench.datasets.installed as installed
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.installed import dataset_root, list_named, load_any
from gta_bench.errors import DatasetError
from gta_bench.settings import DatasetSettings
from tests.authored import write_task


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


def test_a_dataset_of_the_settings_is_refused_once_it_changed(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "mine")
    digest = dataset_digest(load_any(tmp_path / "mine"))
    named = {
        "acme": DatasetSettings(path=str(tmp_path / "mine"), digest=digest),
        "loose": DatasetSettings(path="mine"),
    }
    assert dataset_root("acme", named) == tmp_path / "mine"
    assert dataset_root("loose", named) == Path("mine")
    assert dataset_root("units", named) == tmp_path / "of package"
    (folder / "request.md").write_text("Do something else.")
    with pytest.raises(DatasetError, match="the dataset changed since it was added"):
        dataset_root("acme", named)


def test_names_of_the_settings_come_before_those_of_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = [Point("units", tmp_path / "of package"), Point("acme", tmp_path)]
    monkeypatch.setattr(installed, "entry_points", lambda group: brought)
    listed = list_named({"acme": DatasetSettings(path="mine")})
    assert [(one.name, str(one.root), one.origin) for one in listed] == [
        ("acme", "mine", "gta.toml"),
        ("units", str(tmp_path / "of package"), "package"),
    ]


def test_a_folder_without_tasks_is_read_as_atomic(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset\.json"):
        load_any(tmp_path)


def test_the_folder_of_one_task_is_refused_as_such(tmp_path: Path) -> None:
    """`gta data add` and `gta data canary` missed the files of GTA-Atomic in it."""
    with pytest.raises(DatasetError, match="this is the folder of one task"):
        load_any(write_task(tmp_path))
