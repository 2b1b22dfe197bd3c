from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.served.support import Served, SmallTools, tool_server


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of the small tools."""
    with tool_server(SmallTools(), tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture
def served_folder(tmp_path: Path) -> Path:
    return tmp_path / "served"
