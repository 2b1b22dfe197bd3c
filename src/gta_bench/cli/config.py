"""`gta config`: the effective configuration, and whether it can be used."""

import click

from gta_bench.cli.options import json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.errors import EnvironmentProblem, GtaError
from gta_bench.settings import (
    CONFIG_FILE,
    LoadedSettings,
    Settings,
    list_key_variables,
    read_key,
    read_settings,
)


@click.group()
def config() -> None:
    """Show or validate the effective configuration."""


@config.command("show")
@json_option
def show_command(as_json: bool) -> None:
    """Show every setting with its value and where it comes from."""
    values = _read().values
    if as_json:
        write_json([setting._asdict() for setting in values])
        return
    write_rows(
        [
            (setting.key, "-" if setting.value is None else str(setting.value), setting.origin)
            for setting in values
        ]
    )


@config.command("check")
def check_command() -> None:
    """Validate gta.toml and open its models, without calling them.

    Exits with 3 if a model cannot be used because a package, a key or a provider is missing.
    """
    loaded = _read()
    if loaded.file is None:
        say(f"There is no {CONFIG_FILE} in this folder: the defaults apply.")
        return
    if any(model.generate or model.args for model in loaded.settings.models.values()):
        # Only the evaluation engine knows these options, and nothing else here needs it.
        from gta_bench.agents.models import choose_model

        for name in loaded.settings.models:
            choose_model(name, loaded.settings)
    for variable, user in list_key_variables(loaded.settings).items():
        state = "set" if read_key(variable) else "not set"
        say(f"{variable} ({user}): {state}")
    unusable = _find_unusable_models(loaded.settings)
    for name, problem in unusable.items():
        say(f"{name}: {problem}")
    if unusable:
        raise EnvironmentProblem(
            f"{loaded.file}: these models cannot be used here: {', '.join(unusable)}. The lines "
            "above say why."
        )
    say(f"{loaded.file} is valid.")


def _find_unusable_models(settings: Settings) -> dict[str, str]:
    """Return the models that cannot be opened here, each with the reason."""
    from gta_bench.agents.models import choose_model, open_model

    found = {}
    named = {f"models.{name}": name for name in settings.models}
    judge = settings.judge.model
    if judge is not None and judge not in settings.models:
        named["judge.model"] = judge
    for key, name in named.items():
        try:
            open_model(choose_model(name, settings), settings.budget)
        except GtaError as exc:
            found[key] = str(exc)
    return found


def _read() -> LoadedSettings:
    return read_settings(click.get_current_context().obj)
