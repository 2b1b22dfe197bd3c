"""`gta tape`: make tapes from reference dialogues, and find what changed since."""

import asyncio
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from gta_bench.cli.options import (
    FOLDER,
    NEW_FOLDER,
    command_settings,
    data_option,
    json_option,
    load_dataset,
)
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import UsageError, format_count
from gta_bench.packages import require_packages
from gta_bench.redaction import find_text_secrets, protect
from gta_bench.settings import SERVER_NAME
from gta_bench.tape.diff import CHANGES, CallDrift, repeat_calls
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import SESSION, Tape, tape_digest
from gta_bench.tools.equipment import use_equipment
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
    count = write_reference_tape(_load_atomic(folder), out)
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
    """Repeat the calls of TAPE with the tools of this machine; exits with 1 if a reply changed."""
    found = asyncio.run(_find_drifts(tape, _load_atomic(folder), tool))
    if not found:
        raise UsageError(f"{tape} has no call{f' of {tool}' if tool else ''}.")
    if as_json:
        write_json([{**drift._asdict()} for drift in found])
    else:
        _write(found)
    unchanged = all(drift.change in ("equal", "unavailable") for drift in found)
    raise click.exceptions.Exit(0 if unchanged else 1)


async def _find_drifts(folder: Path, dataset: AtomicDataset, tool: str | None) -> list[CallDrift]:
    async with use_equipment(command_settings()) as equipment:
        with closing(Tape.open(folder)) as opened:
            return [
                drift async for drift in repeat_calls(opened, Toolbox(equipment), dataset, tool)
            ]


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
        if drift.change in ("changed", "failed"):
            say(f"{drift.change}: task {drift.task}, {_shorten(drift.call)}")
            say(f"  then: {_shorten(drift.then)}")
            say(f"  now:  {_shorten(drift.now)}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _load_atomic(folder: str | None) -> AtomicDataset:
    dataset = load_dataset("atomic", folder)
    assert isinstance(dataset, AtomicDataset)
    return dataset
