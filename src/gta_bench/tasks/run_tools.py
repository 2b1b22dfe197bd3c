"""The tools of a run: local or of a server, behind a tape, and under controls."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import NamedTuple

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import OWN_TOOLS, RunManifest, RunSpec
from gta_bench.records.tools import ToolSpec
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import write_manifest
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL, TOKEN_VARIABLE, ServerAddress, parse_tools
from gta_bench.serving.client import Patience, RemoteSource, connect
from gta_bench.settings import read_key
from gta_bench.tape.controls import Controls, OtherReplies, parse_controls
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape, describe_recording
from gta_bench.tasks.context import OpenTooling, Taping, at_end, current_settings, current_tooling
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.offering import OfferedTools, list_offered_tools
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox


@contextmanager
def open_tooling(
    spec: RunSpec, folder: StorePath | None, references: Iterable[AtomicTask] = ()
) -> Iterator[OpenTooling]:
    """Open the tools for the samples of a run; the tape in `folder` is closed at the end.

    `references` are dialogues with replies that corruption may substitute for others.
    """
    # A system with its own tools calls none of ours, and tools are opened at the first call.
    server = LOCAL if spec.tools == OWN_TOOLS else spec.tools
    asyncio.run(check_tools(server))
    controls = None
    if spec.controls:
        wanted = parse_controls(spec.controls)
        controls = Controls(wanted, spec.control_seed, OtherReplies(references))
    if spec.tape is None or folder is None:
        yield OpenTooling(server, controls=controls)
        return
    if spec.tape.mode == "record":
        tape = Tape.record(folder, dataset=spec.dataset, origin="live")
    else:
        tape = Tape.open(folder)
    try:
        yield OpenTooling(server, Taping(tape, spec.tape.mode, spec.dataset), controls)
    finally:
        tape.close()


def note_recording(folder: StorePath | None, out: StorePath, manifest: RunManifest) -> None:
    """Write the new digest of a recorded tape to the manifest."""
    tape = manifest.spec.tape
    if folder is not None and tape is not None and tape.mode == "record":
        write_manifest(out, manifest.with_spec(tape=describe_recording(folder)))


class UnitTools(NamedTuple):
    """The tools of one unit: their source, and those that the system is offered."""

    source: ToolSource
    offered: list[ToolSpec]


class RunTools:
    """The tools of a run, for each of its samples."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._local: ToolSource | None = None

    @asynccontextmanager
    async def for_unit(
        self, task: str, epoch: int, own: Mapping[str, ToolSpec | None], workspace: Workspace
    ) -> AsyncIterator[UnitTools]:
        """Yield the tools of one task; `own` has its list, with the dataset's definitions."""
        tooling = current_tooling()
        taping = tooling.taping
        async with self._live(workspace, needed=taping is None or taping.mode != "replay") as live:
            source = live
            if taping is not None:
                if taping.mode == "record" and live is not None:
                    taping.tape.offer(live.specs().values())
                unit = TapeUnit(taping.dataset, task, epoch)
                source = TapedTools(taping.tape, unit, taping.mode, current_redactor(), live)
            assert source is not None
            known = source.specs()
            offered = list_offered_tools(own, known)
            if tooling.controls is not None:
                offered = tooling.controls.offer(offered, known, task=task, epoch=epoch)
                source = tooling.controls.wrap(source, task=task, epoch=epoch)
            yield UnitTools(OfferedTools(source, offered), offered)

    @asynccontextmanager
    async def _live(
        self, workspace: Workspace, *, needed: bool
    ) -> AsyncIterator[ToolSource | None]:
        """Yield the tools without tape and controls; each unit connects to a server on its own.

        Connections belong to an event loop, and an evaluation may use several, one after another.
        """
        server = parse_tools(current_tooling().server)
        if not needed:
            yield None
        elif server is None:
            async with self._opening:
                if self._local is None:
                    equipment = await open_equipment(current_settings())
                    at_end(partial(close_equipment, equipment))
                    self._local = Toolbox(equipment)
            yield self._local
        else:
            source = await connect_tools(server)
            try:
                yield source
            finally:
                try:
                    await source.release(workspace)
                finally:
                    await source.aclose()


async def connect_tools(server: ServerAddress, patience: Patience | None = None) -> RemoteSource:
    """Connect to a server's tools, with the token of this environment."""
    return await connect(server, read_key(TOKEN_VARIABLE), patience)


async def check_tools(tools: str) -> None:
    """Raise an error at once if the tools of a run cannot be reached."""
    server = parse_tools(tools)
    if server is not None:
        source = await connect_tools(server, Patience(attempts=2, connect_seconds=3, seconds=3))
        await source.aclose()
