"""A command whose `--help` lists its options in groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

# The options of `gta run` by what one wants to say; an option that a command lacks is passed over.
RUN_GROUPS: Mapping[str, Sequence[str]] = {
    "System": ("--model", "--agent", "--images", "--max-turns", "--max-calls"),
    "Tasks": (
        *("--mode", "--data", "--tasks", "--task", "--limit", "--sample", "--sample-seed"),
        "--epochs",
    ),
    "Run": (
        *("--out", "--estimate", "--no-preflight"),
        *("--max-cost", "--max-hours", "--workers", "--cluster"),
    ),
    "Scoring": ("--judge", "--similarity", "--feedback-rounds", "--feedback"),
    "Model calls": (
        *("--temperature", "--top-p", "--top-k", "--presence-penalty", "--max-tokens"),
        *("--seed", "--stop", "--reasoning-effort", "--generate-config", "-M"),
        *("--max-connections", "--max-retries", "--timeout"),
    ),
    "Tools": ("--tools", "--tape", "--tape-mode", "--control", "--control-seed"),
    "Harness, instead of an agent of ours": (
        *("--harness", "--harness-name", "--agent-bridge", "--harness-version", "--network"),
        *("--harness-readable", "--harness-env", "--harness-seconds", "--harness-cost"),
        *("--harness-output", "--harness-disk", "--harness-memory"),
    ),
    "Product, instead of a model": ("--product", "--product-key-env", "--product-timeout"),
}
OTHERS = "Other options"


class GroupedCommand(click.Command):
    """Options under the headings of `groups`, in its order; those it does not name come last."""

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every group that has an option; defaults are shown for all."""
        ctx.show_default = True
        records = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                records[_name(parameter)] = record
        for heading, names in self.groups.items():
            _write(formatter, heading, [records.pop(name) for name in names if name in records])
        _write(formatter, OTHERS, [*records.values()])


def _name(parameter: click.Parameter) -> str:
    """Its first long name, or `-M` where it has none."""
    return next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])


def _write(
    formatter: click.HelpFormatter, heading: str, records: Sequence[tuple[str, str]]
) -> None:
    if records:
        with formatter.section(heading):
            formatter.write_dl(records)
