import asyncio
from collections.abc import Iterator
from functools import cache

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailKind
from gta_bench.confine.probe import JailAvailability, probe

KINDS: tuple[JailKind, ...] = ("bubblewrap", "landlock")


@cache
def availability() -> dict[JailKind, JailAvailability]:
    return {entry.kind: entry for entry in asyncio.run(probe())}


def require(kind: JailKind) -> None:
    entry = availability()[kind]
    if not entry.works:
        pytest.skip(f"no {kind} here: {entry.reason} {entry.fix}")


@pytest.fixture(params=KINDS)
def jail(request: pytest.FixtureRequest) -> Iterator[Jail]:
    """Each kind of jail that works here, one after the other."""
    require(request.param)
    with Jail(request.param, slots=2) as opened:
        yield opened
