"""A group whose commands are imported when they are called, and not to list them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Commands from a table: name to (`module:object`, one line of help)."""

    def __init__(self, *, commands_table: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(**options)
        self.commands_table = commands_table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the table's order."""
        return list(self.commands_table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name not in self.commands_table:
            return None
        module, _, name = self.commands_table[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands by the table, importing none."""
        own = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.commands_table.items()
            if name.startswith(incomplete)
        ]
        return [*own, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the table's help, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.commands_table.items()])
