"""The command that was given, to be given again."""

import shlex
from collections.abc import Mapping, Sequence

import click

_KEY = "gta_bench.arguments"


def keep_arguments(context: click.Context, arguments: Sequence[str]) -> None:
    """Remember what was typed; only the first group of a command line knows all of it."""
    context.meta.setdefault(_KEY, tuple(arguments))


def same_command(options: Mapping[str, str] | None = None) -> str:
    """What was typed, with other values of these options."""
    context = click.get_current_context(silent=True)
    words = list(context.meta.get(_KEY, ())) if context is not None else []
    for name, value in (options or {}).items():
        words = [*_without(words, name), name, value]
    return shlex.join(["gta", *words])


def _without(words: Sequence[str], option: str) -> list[str]:
    """The words without an option that takes a value, in either of its spellings."""
    left: list[str] = []
    drop = False
    for word in words:
        if drop:
            drop = False
        elif word == option:
            drop = True
        elif not word.startswith(f"{option}="):
            left.append(word)
    return left
