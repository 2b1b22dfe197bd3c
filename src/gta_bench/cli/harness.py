"""The options of `gta run` that measure a harness instead of a built-in agent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gta_bench.cli.options import Positive, combine_options, option_in
from gta_bench.confine.limits import MIB
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import CellLimits, Harness, HarnessKind
from gta_bench.running.planning import find_version

DEFAULT = CellLimits()
# The option that names a harness of each kind, by parameter name.
KINDS: Mapping[str, HarnessKind] = {"command": "command", "name": "named", "function": "bridged"}

option = option_in("Harness, instead of a built-in agent")


harness_options = combine_options(
    option(
        "--harness",
        "command",
        help='A command to run for each task, such as "my-agent {task_file} {workspace}".',
    ),
    option(
        "--harness-name",
        "name",
        help="A harness that Inspect drives: claude-code, codex, gemini, kimi-code or opencode.",
    ),
    option(
        "--agent-bridge",
        "function",
        help="A Python agent, pkg.mod:function, whose model calls go through Inspect's bridge.",
    ),
    option(
        "--harness-version",
        "version",
        show_default="the installed version, if it can be found",
        help="Version to record in the manifest.",
    ),
    option(
        "--network",
        type=click.Choice(["tools", "open"]),
        default="tools",
        help="What the harness can reach: only the tools and its model, or the whole network, "
        "which is recorded.",
    ),
    option(
        "--harness-readable",
        "readable",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        help="A local file or folder that the harness may read; repeatable.",
    ),
    option(
        "--harness-env",
        "variables",
        multiple=True,
        help="An environment variable to pass to the harness; repeatable.",
    ),
    option(
        "--harness-seconds",
        "seconds",
        type=Positive(),
        default=DEFAULT.seconds,
        help="Time limit per task, in seconds.",
    ),
    option(
        "--harness-cost",
        "harness_cost",
        type=Positive(),
        show_default="no limit",
        help="Cost limit per task, in USD, if the model's price is known.",
    ),
    option(
        "--harness-output",
        "output",
        type=click.IntRange(1),
        default=DEFAULT.output_bytes // MIB,
        help="Limit of the output that the harness prints, in MiB.",
    ),
    option(
        "--harness-disk",
        "disk",
        type=click.IntRange(1),
        default=DEFAULT.disk_bytes // MIB,
        help="Limit of the files that the harness writes, in MiB.",
    ),
    option(
        "--harness-memory",
        "memory",
        type=click.IntRange(1),
        default=DEFAULT.memory_bytes // MIB,
        help="Memory limit of all processes of the harness, in MiB.",
    ),
)


def read_harness(options: Mapping[str, Any]) -> Harness | None:
    """Return the harness that the options name, or None; raise UsageError if it cannot run."""
    given = [(kind, options[name]) for name, kind in KINDS.items() if options[name] is not None]
    if len(given) > 1:
        raise UsageError("Use only one of --harness, --harness-name and --agent-bridge.")
    if not given:
        return None
    kind, target = given[0]
    return Harness(
        kind=kind,
        target=target,
        version=options["version"] or find_version(kind, target),
        network="open" if kind == "bridged" else options["network"],
        limits=CellLimits(
            seconds=options["seconds"],
            cost_usd=options["harness_cost"],
            output_bytes=options["output"] * MIB,
            disk_bytes=options["disk"] * MIB,
            memory_bytes=options["memory"] * MIB,
        ),
        readable=[path.absolute() for path in options["readable"]],
        variables=options["variables"],
    )
