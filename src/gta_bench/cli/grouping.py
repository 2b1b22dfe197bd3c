"""Commands whose `--help` lists options in groups; an option names its own group."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import click

# In the order in which `--help` shows them.
OptionGroup = Literal[
    "System",
    "Tasks",
    "Run",
    "Scoring",
    "Model calls",
    "Tools",
    "Harness, instead of an agent of ours",
    "Other options",
]
OTHERS: OptionGroup = "Other options"


_Command = Callable[..., None]


class GroupedOption(click.Option):
    """An option that is shown below the heading of its group."""

    def __init__(self, *args: Any, group: OptionGroup, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


class GroupedCommand(click.Command):
    """Options below the headings of their groups, each in the order of declaration."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every group that has an option; defaults are shown for all."""
        ctx.show_default = True
        groups: dict[OptionGroup, list[tuple[str, str]]] = {
            name: [] for name in get_args(OptionGroup)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                group = parameter.group if isinstance(parameter, GroupedOption) else OTHERS
                groups[group].append(record)
        for heading, records in groups.items():
            _write(formatter, heading, records)


def options_of(group: OptionGroup) -> Callable[..., Callable[[_Command], _Command]]:
    """Return `click.option` for options of this group."""
    return partial(click.option, cls=GroupedOption, group=group)


def add_options(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    """Give a command these options; `--help` has them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def _write(
    formatter: click.HelpFormatter, heading: str, records: Sequence[tuple[str, str]]
) -> None:
    if records:
        with formatter.section(heading):
            formatter.write_dl(records)
