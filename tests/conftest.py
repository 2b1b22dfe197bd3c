import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The released data: GTA_DATA, or the folder that lies beside the repository."""
    folder = Path(os.environ.get("GTA_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no released data in {folder}; GTA_DATA names the folder")
    return folder.resolve()


@pytest.fixture(scope="session")
def atomic_dir(data_dir: Path) -> Path:
    return data_dir / "gta_atomic"
