import asyncio
from collections.abc import Iterator

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.errors import ToolUnavailable


@pytest.fixture(scope="session")
def jail() -> Iterator[Jail]:
    """The best jail that works here; each kind of jail has its own tests in tests/confine."""
    try:
        found = asyncio.run(find_jail(slots=2))
    except ToolUnavailable as exc:
        pytest.skip(str(exc))
    with found:
        yield found
