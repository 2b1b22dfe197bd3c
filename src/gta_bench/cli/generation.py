"""The options of `gta run` that say how a model is asked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import click

from gta_bench.agents.generation import (
    NAMED,
    add_generation,
    parse_model_args,
    read_generate_config,
)
from gta_bench.agents.models import NO_MODEL, ChosenModel
from gta_bench.cli.grouping import add_options, options_of
from gta_bench.errors import UsageError
from gta_bench.settings import ReasoningEffort

_Command = Callable[..., None]

option = options_of("Model calls")

OPTIONS = (
    option("--temperature", type=click.FloatRange(0), help="Sampling temperature."),
    option(
        "--top-p",
        type=click.FloatRange(0, 1, min_open=True),
        help="Sample from the likeliest tokens with this total probability.",
    ),
    option("--top-k", type=click.IntRange(1), help="Sample from this many likeliest tokens."),
    option(
        "--presence-penalty",
        type=click.FloatRange(-2, 2),
        help="Penalty for tokens that the reply already has.",
    ),
    option("--max-tokens", type=click.IntRange(1), help="Longest reply, in tokens."),
    option("--seed", type=int, help="Seed of the sampling, where the provider has one."),
    option("--stop", multiple=True, help="A text at which a reply ends; repeatable."),
    option(
        "--reasoning-effort",
        type=click.Choice(get_args(ReasoningEffort)),
        help="How much the model thinks.",
    ),
    option(
        "--generate-config",
        type=click.Path(exists=True, dir_okay=False),
        help="YAML or JSON file with any options of Inspect's GenerateConfig.",
    ),
    option(
        "-M",
        "model_args",
        multiple=True,
        metavar="NAME=VALUE",
        help="An argument of the model's provider, as `inspect eval -M` has; repeatable.",
    ),
)


def generation_options(command: _Command) -> _Command:
    """Give a command the options; `with_generation` takes what they were set to."""
    return add_options(command, OPTIONS)


def with_generation(model: ChosenModel, options: Mapping[str, Any]) -> ChosenModel:
    """The model as the command line asks for it; a flag beats the file, both beat gta.toml."""
    flags = {
        name: list(options[name]) if name == "stop" else options[name]
        for name in NAMED.values()
        if options[name] not in (None, ())
    }
    file, args = options["generate_config"], parse_model_args(options["model_args"])
    if not (flags or file or args):
        return model
    if model == NO_MODEL:
        raise UsageError(
            "No model is asked here, so options such as --temperature, --generate-config and -M "
            "mean nothing: leave them out."
        )
    held = model.settings
    if file is not None:
        config = read_generate_config(Path(file))
        held = add_generation(held, f"--generate-config {file}", generate=config)
    held = add_generation(held, "The command line", generate=flags, args=args)
    return model._replace(settings=held)
