"""The options of `gta run` that measure a foreign system in the place of one of our agents."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from gta_bench.cli.grouping import add_options, options_of
from gta_bench.cli.options import Positive
from gta_bench.confine.limits import MIB
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import CellLimits, Harness, HarnessKind, parse_command
from gta_bench.records.run import Network

_Command = Callable[..., None]
DEFAULT = CellLimits()

option = options_of("Harness, instead of an agent of ours")

OPTIONS = (
    option(
        "--harness",
        "command",
        help='A command to measure, such as "my-agent {task_file} {workspace}".',
    ),
    option(
        "--harness-name",
        "name",
        help="A harness that Inspect drives: claude-code, codex, gemini, kimi-code or opencode.",
    ),
    option(
        "--agent-bridge",
        "function",
        help="A Python agent, pkg.mod:function, with its model behind Inspect's agent bridge.",
    ),
    option("--harness-version", "version", help="Its version, for the manifest."),
    option(
        "--network",
        type=click.Choice(["tools", "open"]),
        default="tools",
        show_default=True,
        help="What a harness reaches: our tools and its model, or also the outside (recorded).",
    ),
    option(
        "--harness-readable",
        "readable",
        multiple=True,
        type=click.Path(exists=True),
        help="A file or folder of this machine that the harness may read.",
    ),
    option(
        "--harness-env",
        "variables",
        multiple=True,
        help="An environment variable that the harness gets.",
    ),
    option(
        "--harness-seconds",
        "seconds",
        type=Positive(),
        default=DEFAULT.seconds,
        show_default=True,
        help="Time for one task.",
    ),
    option(
        "--harness-cost",
        "max_cost",
        type=Positive(),
        help="Dollars for one task, where the model's price is known.",
    ),
    option(
        "--harness-output",
        "output",
        type=click.IntRange(1),
        default=DEFAULT.output_bytes // MIB,
        show_default=True,
        help="MiB that it may print.",
    ),
    option(
        "--harness-disk",
        "disk",
        type=click.IntRange(1),
        default=DEFAULT.disk_bytes // MIB,
        show_default=True,
        help="MiB that it may write.",
    ),
    option(
        "--harness-memory",
        "memory",
        type=click.IntRange(1),
        default=DEFAULT.memory_bytes // MIB,
        show_default=True,
        help="MiB of memory for all its processes.",
    ),
)


def harness_options(command: _Command) -> _Command:
    """The options, given to the command as one `harness`, None where none is named."""

    @wraps(command)
    def with_harness(
        *args: Any,
        command: str | None,
        name: str | None,
        function: str | None,
        version: str | None,
        network: Network,
        readable: tuple[str, ...],
        variables: tuple[str, ...],
        seconds: float,
        max_cost: float | None,
        output: int,
        disk: int,
        memory: int,
        **kwargs: Any,
    ) -> None:
        limits = CellLimits(
            seconds=seconds,
            cost_usd=max_cost,
            output_bytes=output * MIB,
            disk_bytes=disk * MIB,
            memory_bytes=memory * MIB,
        )
        chosen = _chosen(command, name, function)
        harness = None
        if chosen is not None:
            kind, target = chosen
            harness = Harness(
                kind=kind,
                target=target,
                version=version or _version(kind, target),
                network="open" if kind == "bridged" else network,
                limits=limits,
                readable=[Path(path).absolute() for path in readable],
                variables=variables,
            )
        wrapped(*args, harness=harness, **kwargs)

    wrapped = command
    return add_options(with_harness, OPTIONS)


def _chosen(
    command: str | None, name: str | None, function: str | None
) -> tuple[HarnessKind, str] | None:
    named: list[tuple[HarnessKind, str | None]] = [
        ("command", command),
        ("named", name),
        ("bridged", function),
    ]
    given = [(kind, target) for kind, target in named if target is not None]
    if len(given) > 1:
        raise UsageError("Name one system: --harness, --harness-name or --agent-bridge.")
    return given[0] if given else None


def _version(kind: HarnessKind, target: str) -> str | None:
    """What can be known of the version; refuses what cannot be run here at all."""
    if kind == "named":
        from gta_bench.harnesses.named import installed_version

        return installed_version(target)
    if kind == "command":
        parse_command(target)
        return None
    from gta_bench.harnesses.in_process import load_function

    load_function(target)
    return None
