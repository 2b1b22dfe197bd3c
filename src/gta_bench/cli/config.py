"""`gta config`: what holds, where it came from, and whether it can be used."""

import click

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.settings import CONFIG_FILE, LoadedSettings, key_variables, read_key, read_settings


@click.group()
def config() -> None:
    """Show or check what holds, and where it came from."""


@config.command("show")
@json_option
@click.pass_obj
def show_command(config_file: str | None, as_json: bool) -> None:
    """Every setting with its value and its origin."""
    loaded = _loaded(config_file)
    if as_json:
        write_json([setting._asdict() for setting in loaded.values])
    else:
        write_rows(
            [
                (setting.key, "-" if setting.value is None else str(setting.value), setting.origin)
                for setting in loaded.values
            ]
        )


@config.command("check")
@click.pass_obj
def check_command(config_file: str | None) -> None:
    """Read gta.toml; say which keys its environment variables hold."""
    loaded = _loaded(config_file)
    if loaded.file is None:
        say(f"There is no {CONFIG_FILE} here: the defaults hold.")
        return
    for variable, user in key_variables(loaded.settings).items():
        state = "set" if read_key(variable) else "not set"
        say(f"{variable} ({user}): {state}")
    say(f"{loaded.file} is right.")


def _loaded(config_file: str | None) -> LoadedSettings:
    return read_settings(config_path(config_file))
