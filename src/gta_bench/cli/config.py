"""`gta config`: what holds, where it came from, and whether it can be used."""

import click

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.errors import EnvironmentProblem, GtaError
from gta_bench.settings import (
    CONFIG_FILE,
    LoadedSettings,
    Settings,
    key_variables,
    read_key,
    read_settings,
)


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
    """Read gta.toml and open its models, without calling them.

    Exit code 3 if a model cannot be used: a package, a key or a provider is missing.
    """
    loaded = _loaded(config_file)
    if loaded.file is None:
        say(f"There is no {CONFIG_FILE} here: the defaults hold.")
        return
    if any(model.generate or model.args for model in loaded.settings.models.values()):
        # Their names are the engine's, which nothing else here needs.
        from gta_bench.agents.models import choose_model

        for name in loaded.settings.models:
            choose_model(name, loaded.settings)
    for variable, user in key_variables(loaded.settings).items():
        state = "set" if read_key(variable) else "not set"
        say(f"{variable} ({user}): {state}")
    unusable = _unusable_models(loaded.settings)
    for name, problem in unusable.items():
        say(f"{name}: {problem}")
    if unusable:
        raise EnvironmentProblem(f"{loaded.file}: cannot be used here: {', '.join(unusable)}.")
    say(f"{loaded.file} is right.")


def _unusable_models(settings: Settings) -> dict[str, str]:
    """The models that cannot be asked from here, each with the reason."""
    from gta_bench.agents.models import choose_model, open_model

    found = {}
    named = {f"models.{name}": name for name in settings.models}
    judge = settings.judge.model
    if judge is not None and judge not in settings.models:
        named["judge.model"] = judge
    for place, name in named.items():
        try:
            open_model(choose_model(name, settings), settings.budget)
        except GtaError as exc:
            found[place] = str(exc)
    return found


def _loaded(config_file: str | None) -> LoadedSettings:
    return read_settings(config_path(config_file))
