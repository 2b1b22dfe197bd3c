import asyncio
import shutil
from collections.abc import Iterator

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.errors import ToolUnavailable
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox


@pytest.fixture(scope="session")
def jail() -> Iterator[Jail]:
    """The jail of this machine."""
    try:
        found = asyncio.run(find_jail(slots=2))
    except ToolUnavailable as exc:
        pytest.skip(str(exc))
    with found:
        yield found


@pytest.fixture(scope="session")
def media_box(jail: Jail) -> Toolbox:
    """The toolbox of a machine with ffmpeg and a jail, without endpoints."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed: apt install ffmpeg")
    return Toolbox(Equipment(Settings(), jail=jail))
