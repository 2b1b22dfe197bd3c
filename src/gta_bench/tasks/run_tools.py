"""The tools of a run, opened by the first sample that needs them."""

import asyncio

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.tools import ToolSpec
from gta_bench.settings import read_secrets
from gta_bench.tape.secrets import Redactor
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tasks.context import current_controls, current_settings, current_tape
from gta_bench.tools.equipment import open_equipment
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox


class RunTools:
    """Where every sample of a run gets its tools from."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._live: ToolSource | None = None

    async def for_task(self, task: str, epoch: int) -> ToolSource:
        """The tools as one unit meets them: behind the run's tape, and under its controls."""
        source = await self._true_source(task, epoch)
        controls = current_controls()
        return source if controls is None else controls.wrap(source, task=task, epoch=epoch)

    def offered(self, entry: AtomicTask, source: ToolSource, epoch: int) -> list[ToolSpec]:
        """The task's tools as the source defines them, or what a control makes of them."""
        known = source.specs()
        own = [known.get(name, tool) for name, tool in entry.offered.items()]
        controls = current_controls()
        return own if controls is None else controls.offer(own, known, task=entry.id, epoch=epoch)

    async def _true_source(self, task: str, epoch: int) -> ToolSource:
        taping = current_tape()
        if taping is None:
            return await self._tools()
        live = None if taping.mode == "replay" else await self._tools()
        if taping.mode == "record" and live is not None:
            taping.tape.offer(live.specs().values())
        redactor = Redactor(read_secrets(current_settings()))
        return TapedTools(taping.tape, TapeUnit("atomic", task, epoch), taping.mode, redactor, live)

    async def _tools(self) -> ToolSource:
        async with self._opening:
            if self._live is None:
                self._live = Toolbox(await open_equipment(current_settings()))
            return self._live
