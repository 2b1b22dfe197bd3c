"""The tools of a run: local or of a server, behind a tape, and under controls."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolServerFailure, UsageError
from gta_bench.packages import require_packages
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import OWN_TOOLS, RunManifest, RunSpec
from gta_bench.records.tape import TapeUse
from gta_bench.records.tool_servers import ServerPin, ServerState, describe_drift, pin_servers
from gta_bench.records.tools import ALL_TOOLS, ToolSpec
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import write_manifest
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import (
    LOCAL,
    SERVER_PACKAGES,
    TOKEN_VARIABLE,
    ServerAddress,
    parse_tools,
)
from gta_bench.serving.client import Patience, RemoteSource, connect
from gta_bench.serving.tool_servers import choose_servers
from gta_bench.settings import Settings, read_key
from gta_bench.tape.controls import Controls, OtherReplies, parse_controls
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape, describe_recording, has_tape
from gta_bench.tasks.context import (
    OpenTooling,
    Taping,
    artefact_store,
    at_end,
    current_context,
    current_settings,
    current_tooling,
)
from gta_bench.tools.equipment import close_equipment, open_equipment
from gta_bench.tools.offering import JoinedTools, OfferedTools, find_server, list_offered_tools
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox

if TYPE_CHECKING:
    # It needs the packages of an extra.
    from gta_bench.serving.server_state import KeepFile
    from gta_bench.serving.server_tools import ServerTools


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
        yield OpenTooling(server, controls=controls, servers=spec.tool_servers)
        return
    if spec.tape.mode == "record":
        tape = Tape.record(folder, dataset=spec.dataset, origin="live")
    else:
        tape = Tape.open(folder)
    try:
        taping = Taping(tape, spec.tape.mode, spec.dataset)
        yield OpenTooling(server, taping, controls, spec.tool_servers)
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
    servers: "Sequence[ServerTools]" = ()
    taped: TapedTools | None = None

    async def read_states(self) -> tuple[ServerState, ...]:
        """End the tool servers, and return the states of those that declare one.

        Raises ToolServerFailure if a state cannot be read.
        """
        read = [await server.read_state() for server in self.servers]
        states = {state.server: state for state in read if state is not None}
        if self.taped is not None:
            states = await asyncio.to_thread(self.taped.settle_states, states, artefact_store())
        return tuple(states.values())


class RunTools:
    """The tools of a run, for each of its samples."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._local: ToolSource | None = None

    @asynccontextmanager
    async def for_unit(
        self,
        task: str,
        epoch: int,
        own: Mapping[str, ToolSpec | None],
        workspace: Workspace,
        *,
        states: bool = False,
    ) -> AsyncIterator[UnitTools]:
        """Yield the tools of one task; `own` has its list, with the dataset's definitions.

        With `states`, the states of tool servers are kept.
        """
        tooling = current_tooling()
        taping = tooling.taping
        own = {**own, **{f"{name}{ALL_TOOLS}": None for name in tooling.servers}}
        needed = taping is None or taping.mode != "replay"
        async with AsyncExitStack() as stack:
            live = await stack.enter_async_context(self._live(workspace, needed=needed))
            servers: list[ServerTools] = []
            if live is not None and (names := list_servers(own)):
                keep = artefact_store().keep_file if states else None
                servers = [await _open_server(stack, name, workspace, keep) for name in names]
                live = JoinedTools([live, *servers])
            source, taped = live, None
            if taping is not None:
                if taping.mode == "record" and live is not None:
                    taping.tape.offer(live.specs().values())
                unit = TapeUnit(taping.dataset, task, epoch)
                taped = TapedTools(taping.tape, unit, taping.mode, current_redactor(), live)
                source = taped
            assert source is not None
            known = source.specs()
            offered = list_offered_tools(own, known)
            if tooling.controls is not None:
                offered = tooling.controls.offer(offered, known, task=task, epoch=epoch)
                source = tooling.controls.wrap(source, task=task, epoch=epoch)
            yield UnitTools(OfferedTools(source, offered), offered, servers, taped)

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


def list_servers(own: Mapping[str, ToolSpec | None]) -> list[str]:
    """Return the tool servers that a task's list of tools names."""
    found = (find_server(name, spec) for name, spec in own.items())
    return list(dict.fromkeys(server for server in found if server is not None))


async def _open_server(
    stack: AsyncExitStack, name: str, workspace: Workspace, keep: "KeepFile | None"
) -> "ServerTools":
    """Open a tool server for one unit; raises if its tools are not those of the run."""
    from gta_bench.serving.server_tools import open_server

    settings = choose_servers(current_settings(), [name])
    opening = open_server(name, settings.tool_servers[name], workspace, keep)
    source = await stack.enter_async_context(opening)
    context = current_context()
    spec = None if context is None else context.spec
    pins = {} if spec is None else spec.server_pins
    changes = describe_drift(pins, pin_servers(source.specs().values()))
    if changes:
        raise ToolServerFailure(
            f"Tool server {name!r} has changed since the run began: {'; '.join(changes)}. Restore "
            "it and run the same command again."
        )
    return source


async def pin_tools(
    names: Iterable[str], settings: Settings, use: TapeUse | None, tape: StorePath | None
) -> dict[str, ServerPin]:
    """Return the tools of these servers: of a replayed tape, else of the servers themselves.

    Raises if the tools of a tape are not those of the servers.
    """
    wanted = list(names)
    if not wanted:
        return {}
    taped: dict[str, ServerPin] = {}
    if use is not None and tape is not None and has_tape(tape):
        with closing(Tape.open(tape)) as opened:
            taped = pin_servers(opened.specs.values())
    if use is not None and use.mode == "replay":
        missing = [name for name in wanted if name not in taped]
        if missing:
            raise UsageError(
                f"The tape {tape} has no tools of the tool server {missing[0]!r}. It has those of: "
                f"{', '.join(taped) or 'none'}."
            )
        return {name: taped[name] for name in wanted}
    require_packages("A tool server", *SERVER_PACKAGES, extra="serve")
    with tempfile.TemporaryDirectory(prefix="gta-pin-") as folder:
        pins = pin_servers(await list_server_tools(wanted, settings, Path(folder)))
    changes = describe_drift(taped, pins)
    if changes:
        raise UsageError(
            f"The tape {tape} was recorded with other tools: {'; '.join(changes)}. Restore the "
            "tool server, or record into another folder."
        )
    return pins


async def list_server_tools(
    names: Iterable[str], settings: Settings, folder: Path
) -> list[ToolSpec]:
    """Start or reach each server once, with an empty workspace in `folder`; return its tools."""
    from gta_bench.serving.server_tools import open_server

    wanted = list(names)
    chosen = choose_servers(settings, wanted).tool_servers

    async def ask(name: str) -> list[ToolSpec]:
        workspace = Workspace.create(folder / name, {})
        async with open_server(name, chosen[name], workspace) as source:
            return list(source.specs().values())

    return [spec for specs in await asyncio.gather(*map(ask, wanted)) for spec in specs]


async def connect_tools(server: ServerAddress, patience: Patience | None = None) -> RemoteSource:
    """Connect to a server's tools, with the token of this environment."""
    return await connect(server, read_key(TOKEN_VARIABLE), patience)


async def check_tools(tools: str) -> None:
    """Raise an error at once if the tools of a run cannot be reached."""
    server = parse_tools(tools)
    if server is not None:
        source = await connect_tools(server, Patience(attempts=2, connect_seconds=3, seconds=3))
        await source.aclose()
