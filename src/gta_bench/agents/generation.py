"""How a model is asked: named options, other options of the engine, arguments of its provider."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]
from inspect_ai.model import GenerateConfig, Model
from pydantic import JsonValue, ValidationError

from gta_bench.errors import UsageError, near
from gta_bench.records.base import is_json
from gta_bench.records.run import Generation
from gta_bench.redaction import SECRET_NAME
from gta_bench.settings import ModelSettings, first_problem

# The options with a key of their own in [models.NAME] and a flag of their own, by Inspect's names.
NAMED: Final = {
    "stop_seqs" if name == "stop" else name: name
    for name in Generation.model_fields
    if name not in ("generate", "args")
}
# What a run bounds by options of its own, and what would bypass its logs.
RESERVED: Final = {
    "max_retries": "--max-retries or budget.max_retries",
    "timeout": "--timeout or budget.timeout",
    "attempt_timeout": "--timeout or budget.timeout",
    "stream_idle_timeout": "--timeout or budget.timeout",
    "client_timeout": "--timeout or budget.timeout",
    "max_connections": "--max-connections or budget.max_connections",
    "adaptive_connections": "--max-connections or budget.max_connections",
    "batch": "--judge-batch or judge.batch, for judges alone",
    "cache": "the run's own logs: the same command asks for nothing twice",
    "model": "--model, or `model` of [models.NAME]",
    "base_url": "`base_url` of [models.NAME]",
    "api_key": "`key_env` of [models.NAME], the name of an environment variable",
    "config": "--generate-config, or `generate` of [models.NAME]",
}
_SECRET_HEADERS: Final = ("authorization", "cookie", "proxy_authorization")
# Inspect's clients of the OpenAI protocol leave both out without a word. Servers of open models
# take `top_k` beside the standard fields; for a reasoning budget each has a field of its own.
_OPEN_SERVERS: Final = ("openai-api", "vllm", "sglang", "ollama", "llama-cpp-python")
_NO_TOP_K: Final = ("openai", "azureai", "deepseek", "grok", "groq", "mistral")
_NO_REASONING_TOKENS: Final = (*_OPEN_SERVERS, *_NO_TOP_K)


def read_generate_config(file: Path) -> dict[str, Any]:
    """The options in a YAML or JSON file, as `inspect eval --generate-config` reads them."""
    try:
        text = file.read_text(encoding="utf-8")
        found = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as exc:
        said = " ".join(str(exc).split())
        raise UsageError(f"--generate-config {file}: cannot be read: {said}.") from exc
    if not isinstance(found, dict):
        raise UsageError(f"--generate-config {file}: write options as `name: value`, one a line.")
    return {str(name): value for name, value in found.items()}


def parse_model_args(given: Sequence[str]) -> dict[str, Any]:
    """The arguments of `-M name=value`, read as `inspect eval -M` reads them: YAML, or a,b,c."""
    found: dict[str, Any] = {}
    for argument in given:
        name, equals, text = argument.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-M {argument!r}: write it as name=value.")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as exc:
            said = " ".join(str(exc).split())
            raise UsageError(f"-M {name}: its value is not valid YAML: {said}.") from exc
        if isinstance(value, str) and "," in value:
            value = value.split(",")
        found[name.strip().replace("-", "_")] = value
    return found


def check_generation(settings: ModelSettings, where: str) -> ModelSettings:
    """The settings of a model, checked; options with a key of their own are moved to it."""
    named, rest = _split(settings.generate, f"{where}, `generate`")
    for name in named:
        if getattr(settings, name) is not None:
            raise UsageError(f"{where}: `{name}` is set twice, in the table and in `generate`.")
    return _updated(settings, named, rest, settings.args, where)


def add_generation(
    settings: ModelSettings,
    where: str,
    *,
    generate: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
) -> ModelSettings:
    """Checked settings with what a command adds: options by Inspect's names or ours, arguments.

    An option with a key of its own always ends there, so that one request has one description.
    """
    named, rest = _split(generate or {}, where)
    others, own = {**settings.generate, **rest}, {**settings.args, **(args or {})}
    return _updated(settings, named, others, own, where)


def generate_config(settings: ModelSettings) -> GenerateConfig:
    """What Inspect is asked for; every option of settled settings reaches the server."""
    named = {theirs: getattr(settings, ours) for theirs, ours in NAMED.items()}
    config = GenerateConfig.model_validate({**named, **settings.generate})
    if config.top_k is not None and _provider(settings) in _OPEN_SERVERS:
        config.extra_body = {"top_k": config.top_k, **(config.extra_body or {})}
    return config


def _split(options: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, JsonValue]]:
    """The options with a key of their own, by our names, and the others, checked."""
    named: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    known = sorted({*GenerateConfig.model_fields, *NAMED.values()} - {*RESERVED})
    for name, value in options.items():
        if name in RESERVED:
            raise UsageError(f"{where}: `{name}` cannot be set here: use {RESERVED[name]}.")
        if name not in known:
            raise UsageError(
                f"{where}: unknown option `{name}`{near(name, known)} Known options: "
                f"{', '.join(known)}."
            )
        if value is None:
            continue
        if name in NAMED or name in NAMED.values():
            named[NAMED.get(name, name)] = value
        else:
            rest[name] = value
    _check_headers(rest, where)
    try:
        checked = GenerateConfig.model_validate(rest)
    except ValidationError as exc:
        raise UsageError(f"{where}: {first_problem(exc)}") from exc
    return named, checked.model_dump(mode="json", include={*rest}, exclude_none=True)


def _check_args(args: Mapping[str, Any], where: str) -> None:
    for name in args:
        if name in RESERVED:
            raise UsageError(f"{where}: `{name}` cannot be set here: use {RESERVED[name]}.")
        if SECRET_NAME.search(name):
            raise UsageError(_secret(name, where))
    _check_headers(args, where)


def _check_headers(options: Mapping[str, Any], where: str) -> None:
    """All options are written to run.json, and keys must not be."""
    for option, value in options.items():
        if option.endswith("headers") and isinstance(value, Mapping):
            for name in map(str, value):
                plain = name.replace("-", "_")
                if SECRET_NAME.search(plain) or plain.lower() in _SECRET_HEADERS:
                    raise UsageError(_secret(f"{option}.{name}", where))


def _secret(name: str, where: str) -> str:
    return (
        f"{where}: `{name}` would be written to run.json: put the key into an environment "
        "variable and name that in `key_env` of [models.NAME]."
    )


def _updated(
    settings: ModelSettings,
    named: Mapping[str, Any],
    generate: Mapping[str, JsonValue],
    args: Mapping[str, JsonValue],
    where: str,
) -> ModelSettings:
    _check_args(args, where)
    changes = {**named, "generate": dict(generate), "args": dict(args)}
    try:
        held = ModelSettings.model_validate({**settings.model_dump(), **changes})
    except ValidationError as exc:
        raise UsageError(f"{where}: {first_problem(exc)}") from exc
    _check_provider(held)
    return held


def _check_provider(settings: ModelSettings) -> None:
    """Refuse what would stand in the manifest and never be sent."""
    provider = _provider(settings)
    if settings.top_k is not None and provider in _NO_TOP_K:
        raise UsageError(f"Model {settings.model!r}: `{provider}` has no top_k; leave it out.")
    body = settings.generate.get("extra_body")
    if settings.top_k is not None and isinstance(body, dict) and "top_k" in body:
        raise UsageError(f"Model {settings.model!r}: top_k is set twice, here and in extra_body.")
    if "reasoning_tokens" in settings.generate and provider in _NO_REASONING_TOKENS:
        raise UsageError(
            f"Model {settings.model!r}: `{provider}` sends no reasoning_tokens; use "
            "reasoning_effort, or the field of your server in `extra_body` of --generate-config."
        )


def _provider(settings: ModelSettings) -> str:
    return settings.model.partition("/")[0]


def state_generation(model: Model) -> ModelSettings:
    """How an open model is asked, as settings; headers, and what is no JSON, are left out."""
    given = model.config.model_dump(mode="json", exclude_none=True)
    named = {ours: given.pop(theirs) for theirs, ours in NAMED.items() if theirs in given}
    generate, args = (
        {name: value for name, value in held.items() if _is_statable(name, value)}
        for held in (given, model.model_args)
    )
    return ModelSettings.model_validate(
        {"model": str(model), **named, "generate": generate, "args": args}
    )


def _is_statable(name: str, value: object) -> bool:
    """Whether a manifest can have it: no budget, no secret, and JSON."""
    return (
        name not in RESERVED
        and not name.endswith("headers")
        and not SECRET_NAME.search(name)
        and is_json(value)
    )
