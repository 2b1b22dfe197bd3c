"""The model of a run, by Inspect's name or by a short name from gta.toml."""

import inspect
import re
from typing import Any, Final, NamedTuple

from inspect_ai.model import (
    GenerateConfig,
    Model,
    ModelCost,
    ModelInfo,
    get_model,
    get_model_info,
    set_model_info,
)

from gta_bench.agents.generation import RESERVED, check_generation, make_generate_config
from gta_bench.errors import EnvironmentProblem, UsageError, suggest_name
from gta_bench.runs.log_layout import PrerequisiteError
from gta_bench.settings import BudgetSettings, ModelSettings, Settings, read_key


class ChosenModel(NamedTuple):
    """A model's name in Inspect, and the settings to call it with."""

    name: str
    settings: ModelSettings


# After this time, the clients of the OpenAI protocol give up on their own.
CLIENT_SECONDS: Final = 600
# For agents that use no model.
NO_MODEL = ChosenModel("none/none", ModelSettings(model="none/none"))


def choose_model(name: str, settings: Settings) -> ChosenModel:
    """Return the model for a short name from gta.toml, or for Inspect's own `provider/model`."""
    if name in settings.models:
        checked = check_generation(settings.models[name], f"[models.{name}] of gta.toml")
        return ChosenModel(checked.model, checked)
    if "/" not in name:
        known = ", ".join(sorted(settings.models)) or "none"
        raise UsageError(
            f"Unknown model {name!r}. Use `provider/model`, such as openai/gpt-5, or a name from "
            f"[models] of gta.toml (known there: {known})."
        )
    return ChosenModel(name, ModelSettings(model=name))


def open_model(chosen: ChosenModel, budget: BudgetSettings) -> Model:
    """Return the model with the retries, timeout and connections of the budget, and its price."""
    settings = chosen.settings
    config = make_generate_config(settings)
    config.max_connections = budget.max_connections
    config.max_retries = budget.max_retries
    config.attempt_timeout = budget.timeout
    args: dict[str, Any] = dict(settings.args)
    if settings.input_price is not None and settings.output_price is not None:
        cost = ModelCost(
            input=settings.input_price,
            output=settings.output_price,
            input_cache_write=settings.input_price,
            input_cache_read=settings.input_price,
        )
        set_model_info(chosen.name, ModelInfo(cost=cost))
    try:
        model = get_model(
            chosen.name,
            config=config,
            base_url=settings.base_url,
            api_key=_find_key(settings),
            memoize=False,
            **args,
        )
        _restrain_client(model.api, budget)
        return model
    except (PrerequisiteError, ImportError) as exc:
        raise EnvironmentProblem(
            f"Model {chosen.name!r} cannot be used here: {_explain_prerequisite(str(exc))}"
        ) from exc
    except ValueError as exc:
        raise UsageError(
            f"Model {chosen.name!r}: {exc} Use a provider of Inspect, such as openai, anthropic or "
            "google; for your own server, set [models.NAME] with `base_url` in gta.toml."
        ) from exc
    except TypeError as exc:
        if not settings.args:
            raise
        without = chosen._replace(settings=settings.model_copy(update={"args": {}}))
        raise UsageError(_explain_argument(chosen, open_model(without, budget), str(exc))) from exc


def check_price(model: Model, budget: BudgetSettings) -> None:
    """Raise UsageError if there is a limit in dollars and the model's price is unknown."""
    if budget.cost_usd is None:
        return
    known = get_model_info(model)
    if known is None or known.cost is None:
        raise UsageError(
            f"budget.cost_usd cannot be enforced: the price of {model} is unknown. Set input_price "
            "and output_price of its table in [models] of gta.toml, or remove the limit."
        )


def _restrain_client(api: Any, budget: BudgetSettings) -> None:
    """Let the budget decide on retries and time, also in the client of a vendor.

    This also covers the client that Inspect creates when it reopens the provider.
    """
    client: Any = getattr(api, "client", None)
    if hasattr(client, "max_retries") and (budget.max_retries == 0 or budget.rpm is not None):
        # Vendors' clients make two retries on their own, which nobody would count.
        client.max_retries = api.model_args.setdefault("max_retries", 0)
    if hasattr(api, "client_timeout") and budget.timeout > CLIENT_SECONDS:
        client.timeout = api.client_timeout = float(budget.timeout)


def _explain_argument(chosen: ChosenModel, model: Model, said: str) -> str:
    """Say which argument a provider does not accept, and which ones it does."""
    found = re.search(r"unexpected keyword argument '(\w+)'", said)
    if found is None:
        return f"Model {chosen.name!r}: the provider rejects the arguments of -M or `args`: {said}."
    name = found[1]
    if name in GenerateConfig.model_fields:
        return (
            f"Model {chosen.name!r}: its provider does not accept the argument {name!r}, which is "
            "a request option: set it in --generate-config FILE or `generate` of [models.NAME]."
        )
    # The provider passes arguments that it does not know to the client of its API.
    makers = (type(model.api), type(getattr(model.api, "client", model.api)))
    parameters = {one for maker in makers for one in inspect.signature(maker).parameters}
    known = sorted(parameters - {"kwargs", "model_args", "model_name", "http_client", *RESERVED})
    return (
        f"Model {chosen.name!r}: its provider does not accept the argument {name!r}"
        f"{suggest_name(name, known)} Known arguments: {', '.join(known)}."
    )


def _explain_prerequisite(text: str) -> str:
    """Return Inspect's message on one line, with the command that sets a missing variable."""
    plain = re.sub(r"\[/?[a-z ]+\]", "", text).removeprefix("ERROR: ")
    lines = [line.strip(" .") for line in plain.splitlines() if line.strip()]
    reason = ". ".join(lines).replace(":. ", ": ") + "."
    variable = re.search(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)", reason)
    return f"{reason} export {variable[0]}=…" if variable else reason


def _find_key(settings: ModelSettings) -> str | None:
    if settings.key_env is not None:
        key = read_key(settings.key_env)
        if key is None:
            raise EnvironmentProblem(
                f"{settings.key_env} is not set, and the model {settings.model!r} needs it: "
                f"export {settings.key_env}=…"
            )
        return key
    provider, _, rest = settings.model.partition("/")
    if provider != "openai-api" or settings.base_url is None:
        return None
    # Your own server needs no key, but the client of its protocol insists on one.
    service = rest.partition("/")[0].upper().replace("-", "_")
    return None if read_key(f"{service}_API_KEY") else "none"
