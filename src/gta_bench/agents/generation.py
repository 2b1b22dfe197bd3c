"""The options of model requests: named ones, others of Inspect, and arguments of providers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]
from inspect_ai.model import GenerateConfig, Model
from pydantic import JsonValue, ValidationError

from gta_bench.errors import UsageError, suggest_name
from gta_bench.records.base import is_json
from gta_bench.records.run import Generation
from gta_bench.redaction import SECRET_NAME
from gta_bench.settings import ModelSettings, first_problem

# The options with their own key in [models.NAME] and their own flag, by Inspect's names.
NAMED: Final = {
    "stop_seqs" if name == "stop" else name: name
    for name in Generation.model_fields
    if name not in ("generate", "args")
}
# Set by other options of a run, or would bypass its logs; the value says what to use instead.
RESERVED: Final = {
    "max_retries": "--max-retries or budget.max_retries",
    "timeout": "--timeout or budget.timeout",
    "attempt_timeout": "--timeout or budget.timeout",
    "stream_idle_timeout": "--timeout or budget.timeout",
    "client_timeout": "--timeout or budget.timeout",
    "max_connections": "--max-connections or budget.max_connections",
    "adaptive_connections": "--max-connections or budget.max_connections",
    "batch": "--judge-batch or judge.batch, which apply to judges only",
    "cache": "the run's own logs: the same command repeats no finished request",
    "model": "--model, or `model` of [models.NAME]",
    "base_url": "`base_url` of [models.NAME]",
    "api_key": "`key_env` of [models.NAME], the name of an environment variable",
    "config": "--generate-config, or `generate` of [models.NAME]",
}
_SECRET_HEADERS: Final = ("authorization", "cookie", "proxy_authorization")
# Inspect's clients of the OpenAI protocol silently drop both. Servers of open models accept
# `top_k` next to the standard fields; for a reasoning budget each has its own field.
_OPEN_SERVERS: Final = ("openai-api", "vllm", "sglang", "ollama", "llama-cpp-python")
_NO_TOP_K: Final = ("openai", "azureai", "deepseek", "grok", "groq", "mistral")
_NO_REASONING_TOKENS: Final = (*_OPEN_SERVERS, *_NO_TOP_K)


def read_generate_config(file: Path) -> dict[str, Any]:
    """Return the options in a YAML or JSON file, read as by `inspect eval --generate-config`."""
    try:
        text = file.read_text(encoding="utf-8")
        found = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as exc:
        said = " ".join(str(exc).split())
        raise UsageError(f"--generate-config: cannot read {file}: {said}.") from exc
    if not isinstance(found, dict):
        raise UsageError(f"--generate-config {file}: write one `name: value` per line.")
    return {str(name): value for name, value in found.items()}


def parse_model_args(given: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `-M name=value`, read as by `inspect eval -M`: YAML, or a,b,c."""
    found: dict[str, Any] = {}
    for argument in given:
        name, equals, text = argument.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-M {argument!r}: use the form name=value.")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as exc:
            said = " ".join(str(exc).split())
            raise UsageError(f"-M {name}: the value is not valid YAML: {said}.") from exc
        if isinstance(value, str) and "," in value:
            value = value.split(",")
        found[name.strip().replace("-", "_")] = value
    return found


def check_generation(settings: ModelSettings, where: str) -> ModelSettings:
    """Return the checked settings of a model, with options moved to their own keys if any."""
    named, rest = _split(settings.generate, f"{where}, `generate`")
    for name in named:
        if getattr(settings, name) is not None:
            raise UsageError(f"{where}: `{name}` is set twice, in the table and in `generate`.")
    return _update(settings, named, rest, settings.args, where)


def add_generation(
    settings: ModelSettings,
    where: str,
    *,
    generate: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
) -> ModelSettings:
    """Return the settings with the options (by Inspect's names or ours) and arguments added.

    Options with their own key are stored there, so that equal requests have equal settings.
    """
    named, rest = _split(generate or {}, where)
    others, own = {**settings.generate, **rest}, {**settings.args, **(args or {})}
    return _update(settings, named, others, own, where)


def make_generate_config(settings: ModelSettings) -> GenerateConfig:
    """Return Inspect's configuration for checked settings; every option reaches the server."""
    named = {theirs: getattr(settings, ours) for theirs, ours in NAMED.items()}
    config = GenerateConfig.model_validate({**named, **settings.generate})
    if config.top_k is not None and _provider(settings) in _OPEN_SERVERS:
        config.extra_body = {"top_k": config.top_k, **(config.extra_body or {})}
    return config


def _split(options: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, JsonValue]]:
    """Return the options with their own key, by our names, and the others, checked."""
    _check_allowed(options, where)
    known = sorted({*GenerateConfig.model_fields, *NAMED.values()} - {*RESERVED})
    for name in options:
        if name not in known:
            raise UsageError(
                f"{where}: unknown option `{name}`{suggest_name(name, known)} Known options: "
                f"{', '.join(known)}."
            )
    present = {NAMED.get(name, name): value for name, value in options.items() if value is not None}
    named = {name: present.pop(name) for name in NAMED.values() if name in present}
    try:
        checked = GenerateConfig.model_validate(present)
    except ValidationError as exc:
        raise UsageError(f"{where}: {first_problem(exc)}") from exc
    return named, checked.model_dump(mode="json", include={*present}, exclude_none=True)


def _check_allowed(options: Mapping[str, Any], where: str) -> None:
    """Reject reserved options, and keys in headers: all options are written to run.json."""
    for option, value in options.items():
        if option in RESERVED:
            raise UsageError(f"{where}: `{option}` cannot be set here: use {RESERVED[option]}.")
        if option.endswith("headers") and isinstance(value, Mapping):
            for name in map(str, value):
                plain = name.replace("-", "_")
                if SECRET_NAME.search(plain) or plain.lower() in _SECRET_HEADERS:
                    raise UsageError(_explain_secret(f"{option}.{name}", where))


def _explain_secret(name: str, where: str) -> str:
    return (
        f"{where}: `{name}` would be written to run.json: put the key into an environment "
        "variable and name that in `key_env` of [models.NAME]."
    )


def _update(
    settings: ModelSettings,
    named: Mapping[str, Any],
    generate: Mapping[str, JsonValue],
    args: Mapping[str, JsonValue],
    where: str,
) -> ModelSettings:
    _check_allowed(args, where)
    for name in args:
        if SECRET_NAME.search(name):
            raise UsageError(_explain_secret(name, where))
    changes = {**named, "generate": dict(generate), "args": dict(args)}
    try:
        updated = ModelSettings.model_validate({**settings.model_dump(), **changes})
    except ValidationError as exc:
        raise UsageError(f"{where}: {first_problem(exc)}") from exc
    _check_provider(updated)
    return updated


def _check_provider(settings: ModelSettings) -> None:
    """Reject options that the manifest would list but the provider would never get."""
    provider = _provider(settings)
    if settings.top_k is not None and provider in _NO_TOP_K:
        raise UsageError(f"Model {settings.model!r}: `{provider}` has no top_k; remove it.")
    body = settings.generate.get("extra_body")
    if settings.top_k is not None and isinstance(body, dict) and "top_k" in body:
        raise UsageError(f"Model {settings.model!r}: top_k is set twice, here and in extra_body.")
    if "reasoning_tokens" in settings.generate and provider in _NO_REASONING_TOKENS:
        raise UsageError(
            f"Model {settings.model!r}: `{provider}` does not send reasoning_tokens; use "
            "reasoning_effort, or your server's field in `extra_body` of --generate-config."
        )


def _provider(settings: ModelSettings) -> str:
    return settings.model.partition("/")[0]


def state_generation(model: Model) -> ModelSettings:
    """Return the options of an open model as settings, without budgets, secrets and headers.

    Values that are not JSON are left out as well, because a manifest cannot contain them.
    """
    given = model.config.model_dump(mode="json", exclude_none=True)
    named = {ours: given.pop(theirs) for theirs, ours in NAMED.items() if theirs in given}
    generate, args = (
        {
            name: value
            for name, value in options.items()
            if name not in RESERVED
            and not name.endswith("headers")
            and not SECRET_NAME.search(name)
            and is_json(value)
        }
        for options in (given, model.model_args)
    )
    return ModelSettings.model_validate(
        {"model": str(model), **named, "generate": generate, "args": args}
    )
