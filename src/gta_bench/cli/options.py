"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path

import click

Command = Callable[..., None]


def json_option(command: Command) -> Command:
    """JSON instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")(command)


def data_option(command: Command) -> Command:
    """Where the dataset lies."""
    text = "Folder of the dataset; data.atomic or data.workflow of gta.toml unless given."
    return click.option("--data", "folder", type=click.Path(), help=text)(command)


def similarity_option(command: Command) -> Command:
    """The model that compares free text."""
    text = (
        "all-mpnet-base-v2, wordllama, exact-or-half, or a folder with a sentence-transformers "
        "model; scoring.similarity of gta.toml unless given."
    )
    return click.option("--similarity", help=text)(command)


def config_path(config_file: str | None) -> Path | None:
    """The settings file that the command line names, if any."""
    return None if config_file is None else Path(config_file)
