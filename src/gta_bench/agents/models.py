"""The model that a run asks: by Inspect's name, or by a short name of gta.toml."""

import inspect
import re
from typing import Any, NamedTuple

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import GenerateConfig, Model, ModelCost, ModelInfo, get_model, set_model_info

from gta_bench.agents.generation import RESERVED, check_generation, generate_config
from gta_bench.errors import EnvironmentProblem, UsageError, near
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
        held = check_generation(settings.models[name], f"[models.{name}] of gta.toml")
        return ChosenModel(held.model, held)
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
    config = generate_config(settings)
    config.max_connections = budget.max_connections
    config.max_retries = budget.max_retries
    config.attempt_timeout = budget.timeout
    args: dict[str, Any] = dict(settings.args)
    if settings.input_price is not None and settings.output_price is not None:
        _set_price(chosen.name, settings.input_price, settings.output_price)
    try:
        model = get_model(
            chosen.name,
            config=config,
            base_url=settings.base_url,
            api_key=_key(settings),
            memoize=False,
            **args,
        )
        if budget.max_retries == 0:
            _ask_once(model)
        return model
    except (PrerequisiteError, ImportError) as exc:
        raise EnvironmentProblem(
            f"Model {chosen.name!r} cannot be used here: {_reason(str(exc))}"
        ) from exc
    except ValueError as exc:
        raise UsageError(
            f"Model {chosen.name!r}: {exc} Providers are openai, anthropic, google and others of "
            "Inspect; for a server of your own set [models.NAME] with `base_url` in gta.toml."
        ) from exc
    except TypeError as exc:
        if not settings.args:
            raise
        without = chosen._replace(settings=settings.model_copy(update={"args": {}}))
        raise UsageError(_refused(chosen, open_model(without, budget), str(exc))) from exc


def _ask_once(model: Model) -> None:
    """Without the two retries that clients make by themselves."""
    api: Any = model.api
    if hasattr(getattr(api, "client", None), "max_retries"):
        # For this client, and for the one that Inspect makes when it opens the provider again.
        api.client.max_retries = api.model_args.setdefault("max_retries", 0)


def _refused(chosen: ChosenModel, model: Model, said: str) -> str:
    """Which argument a provider does not take, and which it does."""
    found = re.search(r"unexpected keyword argument '(\w+)'", said)
    if found is None:
        return f"Model {chosen.name!r}: the arguments of -M or `args` are refused: {said}."
    name = found[1]
    if name in GenerateConfig.model_fields:
        return (
            f"Model {chosen.name!r}: its provider takes no argument {name!r}. It is an option of "
            "every request: put it into --generate-config FILE or `generate` of [models.NAME]."
        )
    # What the provider itself does not know goes to the client of its API.
    makers = (type(model.api), type(getattr(model.api, "client", model.api)))
    parameters = {one for maker in makers for one in inspect.signature(maker).parameters}
    known = sorted(parameters - {"kwargs", "model_args", "model_name", "http_client", *RESERVED})
    return (
        f"Model {chosen.name!r}: its provider takes no argument {name!r}{near(name, known)} "
        f"It takes {', '.join(known)}."
    )


def _reason(text: str) -> str:
    """The engine's words in one line, with the command that helps where a variable is missing."""
    plain = re.sub(r"\[/?[a-z ]+\]", "", text).removeprefix("ERROR: ")
    lines = [line.strip(" .") for line in plain.splitlines() if line.strip()]
    reason = ". ".join(lines).replace(":. ", ": ") + "."
    variable = re.search(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)", reason)
    return f"{reason} export {variable[0]}=…" if variable else reason


def _key(settings: ModelSettings) -> str | None:
    if settings.key_env is None:
        return _no_key(settings)
    key = read_key(settings.key_env)
    if key is None:
        raise EnvironmentProblem(
            f"{settings.key_env} is not set, and the model {settings.model!r} needs it: "
            f"export {settings.key_env}=…"
        )
    return key


def _no_key(settings: ModelSettings) -> str | None:
    """A server of one's own wants no key, but the client of its protocol wants something."""
    provider, _, rest = settings.model.partition("/")
    if provider != "openai-api" or settings.base_url is None:
        return None
    service = rest.partition("/")[0].upper().replace("-", "_")
    return None if read_key(f"{service}_API_KEY") else "none"


def _set_price(name: str, input_price: float, output_price: float) -> None:
    cost = ModelCost(
        input=input_price,
        output=output_price,
        input_cache_write=input_price,
        input_cache_read=input_price,
    )
    set_model_info(name, ModelInfo(cost=cost))
