"""`gta tape`: make tapes from reference dialogues, and find what changed since."""

import asyncio
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import (
    FOLDER,
    NEW_FOLDER,
    command_settings,
    data_option,
    json_option,
    load_dataset,
)
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.errors import UsageError, format_count
from gta_bench.packages import require_packages
from gta_bench.records.tool_servers import (
    ServerPin,
    ToolChange,
    compare_servers,
    pin_servers,
)
from gta_bench.redaction import find_text_secrets, protect
from gta_bench.serving.choice import SERVER_PACKAGES
from gta_bench.serving.tool_servers import choose_servers
from gta_bench.settings import SERVER_NAME, Settings
from gta_bench.tape.diff import CHANGES, CallDrift, repeat_calls
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import SESSION, Tape, tape_digest
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.offering import JoinedTools
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox

LONGEST = 300


@click.group()
def tape() -> None:
    """Create recordings of tool calls, and compare them with today's tools.

    To record a run: `gta run atomic --mode end-to-end --tape FOLDER --tape-mode record`.
    """


@tape.command("from-reference")
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder for the tape.")
@data_option
def from_reference_command(out: Path, folder: str | None) -> None:
    """Make a tape from GTA-Atomic's reference dialogues, for runs without key, GPU or network.

    Next: `gta run atomic --mode end-to-end --tape OUT`.
    """
    dataset = load_dataset("atomic", folder)
    assert isinstance(dataset, AtomicDataset)
    count = write_reference_tape(dataset, out)
    say(f"{format_count(count, 'call')} in {out}, digest {tape_digest(out)[:16]}.")


@tape.command("record")
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder for the tape.")
@click.option(
    "--name",
    show_default="the name of the program",
    help="Name of the server, as in [tool_servers.NAME]; its tools are NAME__TOOL on the tape.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record_command(out: Path, name: str | None, command: tuple[str, ...]) -> None:
    """Run the MCP server COMMAND for the client on standard input and output, and record it.

    Write `gta tape record --out TAPE --name NAME -- COMMAND …` where the client has COMMAND. The
    server runs as the client would start it, with all rights. Exits as the server does.
    """
    require_packages("`gta tape record`", "mcp", extra="serve")
    from gta_bench.running.tape_proxy import record_server

    command_settings()  # from here on, keys are redacted
    protect(find_text_secrets(shlex.join(command), "command"))
    server = name or re.sub(r"[^A-Za-z0-9]+", "-", Path(command[0]).stem).strip("-")
    if not re.fullmatch(SERVER_NAME, server):
        raise UsageError(f"--name {server!r}: use letters and digits, with single - or _ between.")
    with closing(Tape.record(out, dataset=SESSION, origin="live")) as opened:
        done = record_server(command, server, opened)
    say(f"{format_count(done.calls, 'call')} of {server} in {out}.")
    if done.unlisted:
        say(
            f"{format_count(done.unlisted, 'call')} not recorded: of tools that are not in the "
            "list that the client asked for."
        )
    raise click.exceptions.Exit(done.status if 0 <= done.status < 128 else 1)


@tape.command("diff")
@click.argument("tape", type=FOLDER)
@click.option("--tool", show_default="all", help="Only the calls of this tool.")
@data_option
@json_option
def diff_command(tape: Path, tool: str | None, folder: str | None, as_json: bool) -> None:
    """Repeat the calls of TAPE with the tools of this machine; exits with 1 if a reply changed.

    Tool servers of the tape are started as gta.toml or .mcp.json say. All of a task's calls of
    tool servers are repeated in order; a tool with another schema or description is a change.
    """
    found, changes = asyncio.run(_find_drifts(tape, folder, tool))
    if not found and not changes:
        kind = f" of {tool}" if tool else ""
        raise UsageError(f"{tape} has no call{kind}. Record some with `--tape-mode record`.")
    tasks = {
        one.tool: sorted({drift.task for drift in found if drift.tool == one.tool})
        for one in changes
    }
    if as_json:
        definitions: list[JsonValue] = [
            {**one._asdict(), "tasks": [*tasks[one.tool]]} for one in changes
        ]
        write_json({"calls": [drift._asdict() for drift in found], "definitions": definitions})
    else:
        _write(found)
        for one in changes:
            called = format_count(len(tasks[one.tool]), "task")
            say(f"definition: {one.tool} {one.change}; called in {called}")
    unchanged = all(drift.change in ("equal", "unavailable") for drift in found)
    raise click.exceptions.Exit(0 if unchanged and not changes else 1)


async def _find_drifts(
    tape: Path, folder: str | None, tool: str | None
) -> tuple[list[CallDrift], list[ToolChange]]:
    """Return each repeated call, and how the definitions of tool servers' tools changed."""
    settings = command_settings()
    with closing(Tape.open(tape)) as opened:
        dataset = _load_dataset(opened, folder)
        servers = _Servers(settings)
        pins = pin_servers(opened.specs.values())
        chosen = {name: pin for name, pin in pins.items() if tool is None or tool in pin.tools}
        changes = await servers.compare(chosen)
        async with use_equipment(settings) as equipment:
            toolbox = Toolbox(equipment)
            calls = repeat_calls(opened, toolbox, dataset, tool, servers.open)
            found = [drift async for drift in calls]
        return found, [one for one in changes if tool in (None, one.tool)]


class _Servers:
    """Tool servers as they are now."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def compare(self, then: Mapping[str, ServerPin]) -> list[ToolChange]:
        """Return how the tools of these servers changed, whether a task called them or not."""
        with tempfile.TemporaryDirectory(prefix="gta-tape-") as folder:
            async with self.open(then, Workspace.create(Path(folder), {})) as live:
                # A server without any tool is none of the live ones.
                now = {name: ServerPin(tools={}) for name in then} | pin_servers(
                    live.specs().values()
                )
        return list(compare_servers(then, now))

    @asynccontextmanager
    async def open(self, names: Collection[str], workspace: Workspace) -> AsyncIterator[ToolSource]:
        """Start or reach these servers for one task."""
        async with AsyncExitStack() as stack:
            sources: list[ToolSource] = []
            if names:
                require_packages("A tool server", *SERVER_PACKAGES, extra="serve")
                from gta_bench.serving.server_tools import open_server

                chosen = choose_servers(self._settings, names).tool_servers
                for name in names:
                    opened = open_server(name, chosen[name], workspace)
                    sources.append(await stack.enter_async_context(opened))
            yield JoinedTools(sources)


def _load_dataset(tape: Tape, folder: str | None) -> Dataset | None:
    """Load the dataset that a tape was recorded with; a recorded session has none."""
    name = None if tape.header is None else tape.header.dataset
    return (
        None
        if name == SESSION
        else load_dataset("workflow" if name == "workflow" else "atomic", folder)
    )


def _write(found: Sequence[CallDrift]) -> None:
    """Print counts by tool and version, then each reply that changed."""
    counts = Counter(
        ((drift.tool, drift.version_then, drift.version_now), drift.change) for drift in found
    )
    groups = sorted({group for group, _ in counts})
    heading = ("tool", *CHANGES, "recorded with", "now")
    rows = [
        (tool, *(str(counts[(tool, then, now), change]) for change in CHANGES), then, now)
        for tool, then, now in groups
    ]
    write_rows([heading, *rows])
    for drift in found:
        if drift.change in ("changed", "failed", "no input"):
            say(f"{drift.change}: task {drift.task}, {_shorten(drift.call)}")
            say(f"  then: {_shorten(drift.then)}")
            say(f"  now:  {_shorten(drift.now)}")
    reasons = Counter(drift.now for drift in found if drift.change == "unavailable")
    for reason, count in reasons.items():
        say(f"unavailable: {format_count(count, 'call')}: {_shorten(reason)}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
