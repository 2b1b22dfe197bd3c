"""A group whose commands are imported when they are called, and not to list them."""

import select
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from gta_bench.cli.again import keep_arguments
from gta_bench.errors import EnvironmentProblem, near


class LazyGroup(click.Group):
    """Commands from a table: name to (`module:object`, one line of help)."""

    def __init__(self, *, commands_table: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(**options)
        self.commands_table = commands_table

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """As click does; what was typed is kept for whoever says how to go on."""
        typed = tuple(args)
        context = super().make_context(info_name, args, parent, **extra)
        keep_arguments(context, typed)
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, which ends without a word wherever a pipe broke: only after `| head`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as exc:
            if is_reader_gone():
                raise
            raise EnvironmentProblem(
                "A program or connection that this command wrote to is gone (broken pipe). Give "
                "the same command again: what is finished is kept."
            ) from exc

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the table's order."""
        return list(self.commands_table)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of these words; a wrong name is told with the one that was meant."""
        if args[0] not in self.commands_table and not args[0].startswith("-"):
            known = [*self.commands_table]
            ctx.fail(f"No such command {args[0]!r}{near(args[0], known)}")
        return super().resolve_command(ctx, args)

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


def is_reader_gone() -> bool:
    """Whether nobody reads what is written any more."""
    outputs = select.poll()
    for stream in (sys.stdout, sys.stderr):
        outputs.register(stream.fileno(), 0)
    return any(event & select.POLLERR for _, event in outputs.poll(0))
