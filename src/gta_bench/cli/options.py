"""Options that several commands share, and commands whose `--help` groups its options."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import click
from pydantic import JsonValue

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.run import DatasetName
from gta_bench.runs.store import RemotePath, StorePath, store_path
from gta_bench.settings import TABLES, Settings, read_settings

CommandFunction = Callable[..., None]
Decorator = Callable[[CommandFunction], CommandFunction]
# In the order in which `--help` shows them.
OptionGroup = Literal[
    "System",
    "Tasks",
    "Run",
    "Scoring",
    "Model calls",
    "Tools",
    "Harness, instead of a built-in agent",
    "Other options",
]
OTHERS: OptionGroup = "Other options"

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
DATASET = click.Choice(get_args(DatasetName))


class _StorePathType(click.ParamType[StorePath]):
    """A local folder or file, or an address such as s3://bucket/x."""

    name = "path"

    def convert(
        self, value: str | StorePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> StorePath:
        """Parse the text."""
        return store_path(value) if isinstance(value, str) else value


class RunFolder(_StorePathType):
    """A local folder, which must exist, or an address, which is checked when it is read."""

    name = "run"

    def convert(
        self, value: str | StorePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> StorePath:
        """Parse the text, and reject a local folder that does not exist."""
        path = super().convert(value, param, ctx)
        if not isinstance(path, RemotePath):
            FOLDER.convert(str(path), param, ctx)
        return path


STORE_PATH, RUN = _StorePathType(), RunFolder()


class Positive(click.FloatRange):
    """A finite number above 0; `nan` and `inf` are rejected."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


class GroupedOption(click.Option):
    """An option that `--help` lists under the heading of its group."""

    def __init__(self, *args: Any, group: OptionGroup, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose `--help` lists options by group, in the order of declaration."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every group that has an option."""
        groups: dict[OptionGroup, list[tuple[str, str]]] = {
            name: [] for name in get_args(OptionGroup)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                group = parameter.group if isinstance(parameter, GroupedOption) else OTHERS
                groups[group].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def option_in(group: OptionGroup) -> Callable[..., Decorator]:
    """Return `click.option` for options of this group."""
    return partial(click.option, cls=GroupedOption, group=group)


def combine_options(*options: Decorator) -> Decorator:
    """Return one decorator that adds all these options; `--help` lists them in this order."""

    def add(command: CommandFunction) -> CommandFunction:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def command_settings(overrides: Mapping[str, JsonValue] | None = None) -> Settings:
    """Read the settings of the current command: gta.toml or --config, then its own options.

    `overrides` has dotted keys, such as `data.atomic`; None means that the option was not given.
    """
    return read_settings(click.get_current_context().obj, overrides=overrides).settings


def load_dataset(name: DatasetName, folder: str | None) -> Dataset:
    """Load the dataset in `folder` (the value of --data), or where the settings have it."""
    settings = command_settings({f"data.{name}": folder})
    root = dataset_root(getattr(settings.data, name), settings.datasets)
    return load_atomic(root) if name == "atomic" else load_workflow(root)


def setting_option(
    name: str, key: str, *, group: OptionGroup = OTHERS, **attributes: Any
) -> Decorator:
    """Return an option that overrides a setting, with the setting's description and default."""
    table, _, field = key.partition(".")
    if table == "models":
        default = f"models.NAME.{field} in gta.toml"
    else:
        value = getattr(getattr(Settings(), table), field)
        if value is None or isinstance(value, bool):
            value = "on" if value else "none" if value is None else "off"
        default = f"{key} in gta.toml, or {value}"
    text = TABLES[table].model_fields[field].description
    return option_in(group)(name, field, show_default=default, help=text, **attributes)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")

data_option = option_in("Tasks")(
    "--data",
    "folder",
    type=click.Path(),
    show_default="data.atomic or data.workflow in gta.toml",
    help="Dataset folder, or the name of an installed dataset.",
)

similarity_option = setting_option("--similarity", "scoring.similarity", group="Scoring")

backend_options = combine_options(
    option_in("Run")(
        "--workers",
        type=click.IntRange(1),
        show_default="work in this process",
        help="Number of worker processes on this machine, or of cores with --cluster.",
    ),
    option_in("Run")(
        "--cluster",
        metavar="auto|ADDRESS",
        help="Run on a Ray cluster: `auto` for the one on this machine, host:port, or "
        "ray://host:port.",
    ),
)

preflight_option = option_in("Run")(
    "--no-preflight",
    "preflight",
    is_flag=True,
    flag_value=False,
    default=True,
    show_default=False,
    help="Start without first sending a test request to each model and judge, and without trying "
    "a harness on one task.",
)

judge_options = combine_options(
    setting_option("--repeats", "judge.repeats", type=click.IntRange(1)),
    setting_option("--leaves-per-call", "judge.leaves_per_call", type=click.IntRange(1)),
    setting_option(
        "--judge-visibility", "judge.visibility", type=click.Choice(["full", "upstream"])
    ),
    setting_option("--inputs/--no-inputs", "judge.inputs", default=None),
    setting_option("--pictures/--no-pictures", "judge.pictures", default=None),
    setting_option("--judge-context", "judge.context_tokens", type=click.IntRange(2048)),
    setting_option("--judge-batch", "judge.batch", is_flag=True, default=None),
    setting_option("--judge-control", "judge.control", is_flag=True, default=None),
)
