import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import close_equipment, open_equipment
from tests.agents.conftest import check_golden
from tests.judging.shown import Desk

__all__ = ["check_golden"]


@pytest.fixture(scope="session")
def equipment() -> Iterator[Equipment]:
    """What this machine has; each kind of jail has its own tests in tests/confine."""
    found = asyncio.run(open_equipment(Settings()))
    if found.jail is None:
        pytest.skip(found.no_jail.reason)
    yield found
    close_equipment(found)


@pytest.fixture
def desk(tmp_path: Path, equipment: Equipment) -> Desk:
    return Desk(tmp_path, equipment)
