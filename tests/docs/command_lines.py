"""`gta` as the docs write it, read by the command line itself and not executed."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from gta_bench.cli import app
from gta_bench.cli.options import RunFolder

ENDS = re.compile(r"[;&|<>()]+|2>")
ASSIGNED = re.compile(r"\w+=.*")


def gta_commands(text: str) -> Iterator[list[str]]:
    """The words after `gta` of every such command in a shell script."""
    for line in text.replace("\\\n", " ").splitlines():
        if re.search(r"\bgta\b", line) is None:
            continue
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=";&|<>()")
        lexer.whitespace_split = True
        words = list(lexer)
        for place, word in enumerate(words):
            if word == "gta" and _begins(words[:place]):
                rest = words[place + 1 :]
                end = next((n for n, one in enumerate(rest) if ENDS.fullmatch(one)), len(rest))
                yield rest[:end]


def _begins(before: list[str]) -> bool:
    """Whether a command may begin here: first, after an operator, or started by another one."""
    while before and ASSIGNED.fullmatch(before[-1]):
        before = before[:-1]
    return not before or bool(ENDS.fullmatch(before[-1])) or before[0] in ("srun", "kubectl")


def read_by_gta(words: list[str]) -> None:
    """Have the words read with all their values; raises click's UsageError.

    Files and folders that must be there are made in the current folder first, those of other
    places too.
    """
    command, rest = resolve([word.lstrip("/") for word in words])
    if isinstance(command, click.Group) and not rest:
        return
    assert not isinstance(command, click.Group), f"gta {' '.join(words)}: no such command"
    context = click.Context(command, info_name="gta")
    given, _, _ = command.make_parser(context).parse_args([*rest])
    for parameter in command.params:
        value = given.get(parameter.name or "")
        several = value if isinstance(value, list | tuple) else ()
        for one in (value,) if isinstance(value, str) else several:
            _make_what_must_exist(one, parameter.type)
    command.make_context("gta", [*rest])


def resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the words after them."""
    command: click.Command = app
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(click.Context(command), rest[0])
        if inner is None:
            break
        command, rest = inner, rest[1:]
    return command, rest


def every_command(command: click.Command = app) -> Iterator[click.Command]:
    """`gta`, its groups and all their commands."""
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from every_command(inner)


def options(command: click.Command) -> set[str]:
    """Every spelling of its options."""
    context = click.Context(command)
    found = {
        name for one in command.get_params(context) for name in (*one.opts, *one.secondary_opts)
    }
    return {name for name in found if name.startswith("-")} | {"--help"}


def _make_what_must_exist(value: str, kind: object) -> None:
    path = Path(value)
    if isinstance(kind, RunFolder):
        kind = click.Path(exists="://" not in value)
    if not isinstance(kind, click.Path) or not kind.exists:
        return
    if kind.file_okay and path.is_file():  # an earlier command of the block named it
        return
    if kind.dir_okay:
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
