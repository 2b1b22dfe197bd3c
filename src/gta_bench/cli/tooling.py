"""The options of `gta run` that say which tools a system meets."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

import click

from gta_bench.cli.places import PLACE
from gta_bench.errors import UsageError
from gta_bench.records.tape import TapeMode
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL, TOKEN_VARIABLE
from gta_bench.tasks.tooling import Tooling

Command = Callable[..., None]

OPTIONS = (
    click.option(
        "--tools",
        default=LOCAL,
        show_default=True,
        help="Whose tools are called: local, http://…, mcp+http://… or agentlego+http://…; "
        f"the server's token is read from {TOKEN_VARIABLE}.",
    ),
    click.option("--tape", type=PLACE, help="Folder of recorded tool calls, or s3://…."),
    click.option(
        "--tape-mode",
        type=click.Choice(["live", "record", "replay", "replay-else-live"]),
        help="What is done with --tape; replay unless given.",
    ),
    click.option(
        "--control",
        "controls",
        multiple=True,
        help="no-tools, corrupt-replies, faults=RATE or distractors=COUNT.",
    ),
    click.option(
        "--control-seed",
        type=int,
        default=0,
        show_default=True,
        help="Seed of the controls' draws.",
    ),
)


def tooling_options(command: Command) -> Command:
    """`--tools`, `--tape` and `--control`, given to the command as one `tooling`."""

    @wraps(command)
    def with_tooling(
        *args: Any,
        tools: str,
        tape: StorePath | None,
        tape_mode: TapeMode | Literal["live"] | None,
        controls: tuple[str, ...],
        control_seed: int,
        **kwargs: Any,
    ) -> None:
        if tape is None and tape_mode is not None:
            raise UsageError("--tape-mode says what is done with a tape: name it with --tape.")
        live = tape is None or tape_mode == "live"
        tooling = Tooling(
            server=tools,
            tape=None if live else tape,
            tape_mode="replay" if tape_mode is None or tape_mode == "live" else tape_mode,
            controls=controls,
            control_seed=control_seed,
        )
        command(*args, tooling=tooling, **kwargs)

    for option in reversed(OPTIONS):
        with_tooling = option(with_tooling)
    return with_tooling
