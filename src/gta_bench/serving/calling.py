"""One call on the server, whichever protocol brought it: a slot, a time limit, one execution."""

import asyncio
import time
from collections.abc import Mapping

from pydantic import JsonValue

from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.limits import ServerLimits, Slots
from gta_bench.serving.spaces import CallOutcome, Space
from gta_bench.serving.wire import CallFailure, CallReply
from gta_bench.tools.source import ToolSource


class Caller:
    """Calls the tools of any source for the clients of a server."""

    def __init__(self, source: ToolSource, limits: ServerLimits) -> None:
        self.specs: Mapping[str, ToolSpec] = dict(source.specs())
        self._source = source
        self._limits = limits
        self._slots = Slots(limits.calls, limits.waiting)

    async def call(
        self, space: Space, name: str, arguments: Mapping[str, JsonValue], *, key: str | None
    ) -> CallOutcome:
        """What a call comes to; with a key it happens once, however often it is asked for.

        Raises Busy where no slot is to be had.
        """
        space.used = time.monotonic()
        if key is None:
            return await self._execute(space, name, arguments)

        def begin() -> asyncio.Task[CallOutcome]:
            return asyncio.create_task(self._execute(space, name, arguments))

        # A client that went away may come back for it.
        return await asyncio.shield(space.once(key, begin))

    async def _execute(
        self, space: Space, name: str, arguments: Mapping[str, JsonValue]
    ) -> CallOutcome:
        async with self._slots.one():
            workspace = space.for_call()
            most = self._limits.seconds(name)
            try:
                async with asyncio.timeout(most) as limit:
                    result = await self._source.call(workspace, name, arguments)
            except ToolUnavailable as exc:
                return CallFailure(kind="unavailable", message=exc.reason, mend=exc.mend)
            except ToolError as exc:
                return CallFailure(kind="error", message=str(exc))
            except TimeoutError:
                if not limit.expired():
                    raise
                return CallFailure(
                    kind="error", message=f"{name} took longer than {most:g} seconds."
                )
            finally:
                space.used = time.monotonic()
        return CallReply(result=result, files=space.noted(workspace.written))
