"""The tools of a run, opened by the first sample that needs them."""

import asyncio

from gta_bench.tasks.context import current_settings
from gta_bench.tools.equipment import open_equipment
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox


class RunTools:
    """Where every sample of a run gets its tools from."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._source: ToolSource | None = None

    async def for_task(self, task: str, epoch: int) -> ToolSource:
        """The tools as one unit meets them."""
        async with self._opening:
            if self._source is None:
                self._source = Toolbox(await open_equipment(current_settings()))
            return self._source
