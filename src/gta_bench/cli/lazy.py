"""Command groups that import a command only when it is called, and what was typed."""

import gc
import select
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

import click
from click.shell_completion import CompletionItem

from gta_bench.errors import EnvironmentProblem, suggest_name

_TYPED = "gta_bench.arguments"


class LazyGroup(click.Group):
    """A group with a table of commands: name to (`module:object`, one line of help).

    A module that starts with a dot is relative to this package.
    """

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
        """Make the context as click does, and store the arguments for `same_command`."""
        typed = tuple(args)
        context = super().make_context(info_name, args, parent, **extra)
        # Contexts share `meta`, and only the outermost group sees the whole command line.
        context.meta.setdefault(_TYPED, typed)
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command; report a broken pipe unless it is that of stdout.

        click ends silently on every broken pipe, which is right only for `gta … | head`.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as exc:
            if is_reader_gone():
                raise
            raise EnvironmentProblem(
                "A program or connection that this command was writing to has closed (broken "
                "pipe). Run the same command again: finished work is kept."
            ) from exc

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the table's order."""
        return list(self.commands_table)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown name suggests the nearest one."""
        if args[0] not in self.commands_table and not args[0].startswith("-"):
            known = [*self.commands_table]
            ctx.fail(f"No such command {args[0]!r}{suggest_name(args[0], known)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of that name."""
        if cmd_name not in self.commands_table:
            return None
        module, _, name = self.commands_table[cmd_name][0].partition(":")
        command = getattr(_import(resolve_name(module, __package__)), name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names from the table, without importing any command."""
        own = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.commands_table.items()
            if name.startswith(incomplete)
        ]
        return [*own, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the table's help, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.commands_table.items()])


def _import(name: str) -> ModuleType:
    """Import a module without looking for garbage: modules stay, and a start is a tenth shorter."""
    if name in sys.modules:
        return sys.modules[name]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def same_command(options: Mapping[str, str] | None = None) -> str:
    """Return the command line that was typed, with these options replaced or added."""
    context = click.get_current_context(silent=True)
    words = list(context.meta.get(_TYPED, ())) if context is not None else []
    for name, value in (options or {}).items():
        words = [*_drop_option(words, name), name, value]
    return shlex.join(["gta", *words])


def _drop_option(words: Sequence[str], option: str) -> list[str]:
    """Remove an option with its value, written as `--x value` or `--x=value`."""
    kept: list[str] = []
    drop = False
    for word in words:
        if drop:
            drop = False
        elif word == option:
            drop = True
        elif not word.startswith(f"{option}="):
            kept.append(word)
    return kept


def is_reader_gone() -> bool:
    """Check whether the reader of stdout or stderr has closed its end of the pipe.

    Windows cannot say so before something is written, and then that fails.
    """
    if sys.platform == "win32":
        return False
    outputs = select.poll()
    for stream in (sys.stdout, sys.stderr):
        outputs.register(stream.fileno(), 0)
    return any(event & select.POLLERR for _, event in outputs.poll(0))
