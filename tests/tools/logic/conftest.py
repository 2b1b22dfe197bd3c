import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import close_equipment, open_equipment


@pytest.fixture(scope="session")
def equipment() -> Iterator[Equipment]:
    """A jail and threads, as a run has them."""
    opened = asyncio.run(open_equipment(Settings()))
    if opened.jail is None:
        pytest.skip(f"no jail here: {opened.no_jail.reason}")
    yield opened
    close_equipment(opened)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "space", {})
