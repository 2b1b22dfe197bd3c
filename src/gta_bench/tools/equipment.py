"""Opens and closes the equipment of tools: the jail that works here, and threads.

`find_availability` opens it to learn which tools work here.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from gta_bench.confine.probe import find_jail
from gta_bench.errors import ToolUnavailable
from gta_bench.settings import Settings
from gta_bench.tools.catalog import tool_names
from gta_bench.tools.contract import Availability, Equipment, Unavailable
from gta_bench.tools.toolbox import Toolbox


async def open_equipment(settings: Settings, *, unsafe_no_jail: bool = False) -> Equipment:
    """Return equipment for this machine. Tools that need no jail work without one.

    `unsafe_no_jail` runs untrusted code unconfined if no jail works; only on explicit request.
    Close it with `close_equipment`, or use `equipped`.
    """
    cores = os.cpu_count() or 1
    threads = ThreadPoolExecutor(max_workers=cores + 2, thread_name_prefix="tools")
    try:
        # Each jailed process keeps a core busy, so more of them would only slow each other down.
        jail = await find_jail(unconfined=unsafe_no_jail, slots=max(2, cores))
    except ToolUnavailable as exc:
        reason = Unavailable(exc.reason, exc.fix)
        return Equipment(settings, no_jail=reason, threads=threads)
    except BaseException:
        threads.shutdown(wait=False)
        raise
    return Equipment(settings, jail=jail, threads=threads)


def close_equipment(equipment: Equipment) -> None:
    """Wait for running work and stop the threads; blocks."""
    if equipment.jail is not None:
        equipment.jail.close()
    if equipment.threads is not None:
        equipment.threads.shutdown(cancel_futures=True)


@asynccontextmanager
async def use_equipment(
    settings: Settings, *, unsafe_no_jail: bool = False
) -> AsyncIterator[Equipment]:
    """Open equipment for a block, and close it at the end."""
    equipment = await open_equipment(settings, unsafe_no_jail=unsafe_no_jail)
    try:
        yield equipment
    finally:
        await asyncio.to_thread(close_equipment, equipment)


async def find_availability(
    settings: Settings, names: Collection[str] | None = None
) -> dict[str, Availability]:
    """Return for these tools of the catalog, or for all, whether they work on this machine."""
    async with use_equipment(settings) as equipment:
        toolbox = Toolbox(equipment)
        chosen = [name for name in tool_names() if names is None or name in names]
        return {name: toolbox.availability(name) for name in chosen}
