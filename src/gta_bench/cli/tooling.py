"""The options of `gta run` that say which tools a system meets."""

import asyncio
from collections.abc import Callable, Collection
from typing import Literal

import click

from gta_bench.cli.grouping import add_options, options_of
from gta_bench.cli.options import PLACE
from gta_bench.cli.output import say
from gta_bench.errors import UsageError
from gta_bench.records.tape import TapeMode, TapeUse
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL, TOKEN_VARIABLE
from gta_bench.settings import Settings
from gta_bench.tape.storage import tape_use

_Command = Callable[..., None]

option = options_of("Tools")

OPTIONS = (
    option(
        "--tools",
        default=LOCAL,
        show_default=True,
        help="Whose tools are called: local, http://…, mcp+http://… or agentlego+http://…; "
        f"the server's token is read from {TOKEN_VARIABLE}.",
    ),
    option("--tape", type=PLACE, help="Folder of recorded tool calls, or s3://…."),
    option(
        "--tape-mode",
        type=click.Choice(["live", "record", "replay", "replay-else-live"]),
        help="What is done with --tape; replay unless given.",
    ),
    option(
        "--control",
        "controls",
        multiple=True,
        help="no-tools, corrupt-replies, faults=RATE or distractors=COUNT.",
    ),
    option(
        "--control-seed",
        type=int,
        default=0,
        show_default=True,
        help="Seed of the controls' draws.",
    ),
)


def tooling_options(command: _Command) -> _Command:
    """`--tools`, `--tape`, `--control` and what belongs to them."""
    return add_options(command, OPTIONS)


def tell_missing_tools(names: Collection[str], settings: Settings) -> None:
    """Say which of these tools do not work here, and what brings them, before a model is paid for.

    A run goes on without them: its agent is told so when it calls one.
    """
    # A replay needs no tool at all.
    from gta_bench.tools.catalog import tool_names

    known = [name for name in tool_names() if name in names]
    missing = asyncio.run(_missing_tools(known, settings))
    for mend in sorted({*missing.values()}):
        listed = ", ".join(name for name in known if missing.get(name) == mend)
        say(f"Not available here: {listed}. {mend}")


async def _missing_tools(names: Collection[str], settings: Settings) -> dict[str, str]:
    """The tools that do not work here, each with what mends it."""
    from gta_bench.tools.contract import Unavailable
    from gta_bench.tools.equipment import equipped
    from gta_bench.tools.toolbox import Toolbox

    async with equipped(settings) as equipment:
        states = {name: Toolbox(equipment).availability(name) for name in names}
    return {name: state.mend for name, state in states.items() if isinstance(state, Unavailable)}


def read_tape_use(
    tape: StorePath | None, mode: TapeMode | Literal["live"] | None
) -> TapeUse | None:
    """What is done with which tape; None where tools are called live."""
    if tape is None and mode is not None:
        raise UsageError("--tape-mode says what is done with a tape: name it with --tape.")
    return None if tape is None or mode == "live" else tape_use(tape, mode or "replay")
