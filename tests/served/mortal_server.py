"""`gta tools serve` that dies without warning: at the first call after so many finished ones."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping

from pydantic import JsonValue

from gta_bench.cli import main
from gta_bench.confine.workspace import Workspace
from gta_bench.records.calls import ToolResult
from gta_bench.tools.toolbox import Toolbox

FLUSHED = 1.0  # seconds in which the replies of finished calls reach their clients


class Mortal:
    """Counts the calls of a toolbox."""

    def __init__(self, lives: int) -> None:
        self.lives = lives
        self.begun = self.done = 0
        self.real = Toolbox.call

    async def call(
        self, box: Toolbox, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        self.begun += 1
        if self.begun > self.lives:
            while self.done < self.lives:
                await asyncio.sleep(0.01)
            await asyncio.sleep(FLUSHED)
            os.kill(os.getpid(), signal.SIGKILL)
        result = await self.real(box, workspace, name, arguments)
        self.done += 1
        return result


if __name__ == "__main__":
    mortal = Mortal(int(sys.argv.pop(1)))

    async def call(
        box: Toolbox, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        return await mortal.call(box, workspace, name, arguments)

    Toolbox.call = call  # type: ignore[method-assign,assignment]
    main()
