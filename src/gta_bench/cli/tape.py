"""`gta tape`: tapes from reference dialogues, and what changed since a tape was made."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from gta_bench.cli.options import config_path, data_option, json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import UsageError, counted
from gta_bench.settings import Settings, read_settings
from gta_bench.tape.diff import CHANGES, CallDrift, drifts
from gta_bench.tape.reference import reference_tape
from gta_bench.tape.storage import Tape, tape_digest
from gta_bench.tools.equipment import equipped
from gta_bench.tools.toolbox import Toolbox

LONGEST = 300


@click.group()
def tape() -> None:
    """Recorded tool calls: make them from references, compare them with today's tools.

    `gta run atomic --mode end-to-end --tape DIR --tape-mode record` records a run.
    """


@tape.command("from-reference")
@click.option("--out", type=click.Path(file_okay=False), required=True, help="The tape's folder.")
@data_option
@click.pass_obj
def from_reference_command(config_file: str | None, out: str, folder: str | None) -> None:
    """A tape of GTA-Atomic's own reference dialogues, for runs without key, GPU and network."""
    count = reference_tape(_dataset(config_file, folder)[1], Path(out))
    say(f"{counted(count, 'call')} in {out}, digest {tape_digest(Path(out))[:16]}.")


@tape.command("diff")
@click.argument("folder", metavar="TAPE", type=click.Path(exists=True, file_okay=False))
@click.option("--tool", help="Only the calls of this tool.")
@click.option("--data", help="Folder of the dataset; data.atomic of gta.toml unless given.")
@json_option
@click.pass_obj
@click.pass_context
def diff_command(
    context: click.Context,
    config_file: str | None,
    folder: str,
    tool: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Make the calls of TAPE again with the tools of this machine; exit 1 if a reply changed."""
    settings, dataset = _dataset(config_file, data)
    found = asyncio.run(_drifts(Path(folder), settings, dataset, tool))
    if not found:
        raise UsageError(f"{folder} has no call{f' of {tool}' if tool else ''}.")
    if as_json:
        write_json([{**drift._asdict()} for drift in found])
    else:
        _write(found)
    context.exit(0 if all(drift.change in ("equal", "unavailable") for drift in found) else 1)


async def _drifts(
    folder: Path, settings: Settings, dataset: AtomicDataset, tool: str | None
) -> list[CallDrift]:
    opened = Tape.open(folder)
    try:
        async with equipped(settings) as equipment:
            live = Toolbox(equipment)
            return [drift async for drift in drifts(opened, live, dataset, tool)]
    finally:
        opened.close()


def _write(found: Sequence[CallDrift]) -> None:
    """The counts by tool and version, then each reply that is another one."""
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
            say(f"{drift.change}: task {drift.task}, {_short(drift.call)}")
            say(f"  then: {_short(drift.then)}")
            say(f"  now:  {_short(drift.now)}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _dataset(config_file: str | None, folder: str | None) -> tuple[Settings, AtomicDataset]:
    settings = read_settings(config_path(config_file), overrides={"data.atomic": folder}).settings
    return settings, load_atomic(dataset_root(settings.data.atomic))
