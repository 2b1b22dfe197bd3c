"""What tests share: where the real benchmark data lies, if this machine has it."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.atomic import AtomicTask

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real datasets: GTA_DATA, or `shared/data` beside the repository."""
    named = os.environ.get("GTA_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}; set GTA_DATA to the folder that has it")
    return folder


@pytest.fixture(scope="session")
def atomic_dir(data_dir: Path) -> Path:
    """GTA-Atomic in its released layout."""
    folder = data_dir / "gta_atomic"
    if not (folder / "dataset.json").is_file():
        pytest.skip(f"no GTA-Atomic dataset in {folder}")
    return folder


@pytest.fixture(scope="session")
def atomic_tasks(atomic_dir: Path) -> Mapping[str, AtomicTask]:
    """The 229 tasks of GTA-Atomic."""
    return load_atomic(atomic_dir).tasks
