"""The model that a run asks: by Inspect's name, or by a short name of gta.toml."""

import re
from typing import NamedTuple

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import GenerateConfig, Model, ModelCost, ModelInfo, get_model, set_model_info

from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.settings import BudgetSettings, ModelSettings, Settings, read_key


class ChosenModel(NamedTuple):
    """What was asked for, and how it is called."""

    name: str
    settings: ModelSettings


# What agents that ask no model run with.
NO_MODEL = ChosenModel("none/none", ModelSettings(model="none/none"))


def choose_model(name: str, settings: Settings) -> ChosenModel:
    """A short name of gta.toml, or Inspect's own `provider/model`."""
    if name in settings.models:
        return ChosenModel(settings.models[name].model, settings.models[name])
    if "/" not in name:
        known = ", ".join(sorted(settings.models)) or "none"
        raise UsageError(
            f"Unknown model {name!r}: neither `provider/model`, such as openai/gpt-5, nor in "
            f"[models] of gta.toml (known there: {known})."
        )
    return ChosenModel(name, ModelSettings(model=name))


def open_model(chosen: ChosenModel, budget: BudgetSettings) -> Model:
    """The model, ready to be asked: bounded retries, bounded time, known price."""
    settings = chosen.settings
    config = GenerateConfig(
        max_connections=budget.max_connections,
        max_retries=budget.max_retries,
        attempt_timeout=budget.timeout,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
    )
    if settings.input_price is not None and settings.output_price is not None:
        _set_price(chosen.name, settings.input_price, settings.output_price)
    try:
        return get_model(
            chosen.name,
            config=config,
            base_url=settings.base_url,
            api_key=_key(settings),
            memoize=False,
        )
    except (PrerequisiteError, ImportError) as exc:
        raise EnvironmentProblem(
            f"Model {chosen.name!r} cannot be used here: {_reason(str(exc))}"
        ) from exc
    except ValueError as exc:
        raise UsageError(
            f"Model {chosen.name!r}: {exc} Providers are openai, anthropic, google and others of "
            "Inspect; for a server of your own set [models.NAME] with `base_url` in gta.toml."
        ) from exc


def _reason(text: str) -> str:
    """The engine's words in one line, with the command that helps where a variable is missing."""
    plain = re.sub(r"\[/?[a-z ]+\]|^ERROR: ", "", text)
    reason = ". ".join(line.strip(" .") for line in plain.splitlines() if line.strip()) + "."
    variable = re.search(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)", reason)
    return f"{reason} export {variable[0]}=…" if variable else reason


def _key(settings: ModelSettings) -> str | None:
    if settings.key_env is None:
        return None
    key = read_key(settings.key_env)
    if key is None:
        raise EnvironmentProblem(
            f"{settings.key_env} is not set, and the model {settings.model!r} needs it: "
            f"export {settings.key_env}=…"
        )
    return key


def _set_price(name: str, input_price: float, output_price: float) -> None:
    cost = ModelCost(
        input=input_price,
        output=output_price,
        input_cache_write=input_price,
        input_cache_read=input_price,
    )
    set_model_info(name, ModelInfo(cost=cost))
