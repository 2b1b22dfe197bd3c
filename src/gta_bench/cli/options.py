"""Options that several commands share."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gta_bench.cli.grouping import add_options, options_of
from gta_bench.runs.store import RemotePath, StorePath, store_path
from gta_bench.settings import Settings


class _Place(click.ParamType[StorePath]):
    """A folder or file of this machine, or an address such as s3://bucket/x."""

    name = "place"

    def convert(
        self, value: str | StorePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> StorePath:
        """Read the text."""
        return store_path(value) if isinstance(value, str) else value


class RunFolder(_Place):
    """A folder that is there; an address is looked at when it is read."""

    name = "run"

    def convert(
        self, value: str | StorePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> StorePath:
        """Read the text, and refuse a folder that is not there."""
        place = super().convert(value, param, ctx)
        if isinstance(place, RemotePath):
            return place
        click.Path(exists=True, file_okay=False).convert(str(place), param, ctx)
        return place


PLACE, RUN = _Place(), RunFolder()


CommandFunction = Callable[..., None]


class Positive(click.FloatRange):
    """A number above 0; what compares with no number, and what no number reaches, is none."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


def json_option(command: CommandFunction) -> CommandFunction:
    """JSON instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")(command)


def data_option(command: CommandFunction) -> CommandFunction:
    """Where the dataset lies."""
    text = "Folder of the dataset; data.atomic or data.workflow of gta.toml unless given."
    return options_of("Tasks")("--data", "folder", type=click.Path(), help=text)(command)


def similarity_option(command: CommandFunction) -> CommandFunction:
    """The model that compares free text."""
    text = (
        "How free text is compared: all-mpnet-base-v2 (as published; the default where it was "
        "fetched), wordllama, exact-or-half, or a folder with a sentence-transformers model."
    )
    return options_of("Scoring")("--similarity", help=text)(command)


def backend_options(command: CommandFunction) -> CommandFunction:
    """Where the work is done; without either in this process."""
    workers = options_of("Run")(
        "--workers",
        type=click.IntRange(1),
        help="Work in so many processes of this machine, or with --cluster on so many cores.",
    )
    cluster = options_of("Run")(
        "--cluster",
        metavar="auto|ADDRESS",
        help="Work on a Ray cluster: the one of this machine, host:port, or ray://host:port.",
    )
    return workers(cluster(command))


def from_settings(key: str) -> str:
    """What an option is unless it is given: a setting of gta.toml, and what that is by itself."""
    table, _, name = key.partition(".")
    default = getattr(getattr(Settings(), table), name)
    return f"{key} of gta.toml, else {'none' if default is None else default}"


def preflight_option(command: CommandFunction) -> CommandFunction:
    """Whether everything is tried before anything is written."""
    return options_of("Run")(
        "--no-preflight",
        "preflight",
        is_flag=True,
        flag_value=False,
        default=True,
        show_default=False,
        help="Do not ask models and judges once, nor try a harness on one task, before the start.",
    )(command)


def config_path(config_file: str | None) -> Path | None:
    """The settings file that the command line names, if any."""
    return None if config_file is None else Path(config_file)


def judge_options(command: CommandFunction) -> CommandFunction:
    """How a judge is asked; each option is the setting of the same name in [judge] of gta.toml."""
    options = (
        click.option("--repeats", type=click.IntRange(1), help="Verdicts asked for each leaf."),
        click.option(
            "--leaves-per-call", type=click.IntRange(1), help="Leaves of a task that share a call."
        ),
        click.option(
            "--judge-visibility",
            "visibility",
            type=click.Choice(["full", "upstream"]),
            help="All evidence, or what upstream's judge would have seen.",
        ),
        click.option(
            "--inputs/--no-inputs", default=None, help="Show the task's own files to the judge."
        ),
        click.option(
            "--pictures/--no-pictures", default=None, help="Off for judges that read text only."
        ),
        click.option(
            "--judge-context",
            "context_tokens",
            type=click.IntRange(2048),
            help="Tokens that one call may take; evidence is cut to fit.",
        ),
        click.option(
            "--judge-batch",
            "batch",
            is_flag=True,
            default=None,
            help="Use the provider's batch mode where it has one.",
        ),
        click.option(
            "--judge-control",
            "control",
            is_flag=True,
            default=None,
            help="Ask first for what cannot be there; take no score from who finds it.",
        ),
    )
    return add_options(command, options)
