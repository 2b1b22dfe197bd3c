"""What holds for this run: defaults, environment, `gta.toml`, the command line.

The only module that reads the environment.
"""

import difflib
import os
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import PydanticCustomError

from gta_bench.errors import ConfigError
from gta_bench.redaction import ADDRESS, SECRET_NAME, is_secret, protect, secrets_in_address

CONFIG_FILE = "gta.toml"
# The variable that names the folder with `gta_atomic`, `gta_workflow` and `gta_prompts`.
DATA_VARIABLE: Final = "GTA_DATA"


def _has_scheme(address: object) -> object:
    if isinstance(address, str) and "://" not in address:
        told = f"an address begins with http:// or https://, as in http://{address}"
        raise PydanticCustomError("address", "{told}", {"told": told})
    return address


Origin = Literal["default", "GTA_DATA", "gta.toml", "command line"]


def _has_letters(value: object) -> object:
    if value == "":
        raise PydanticCustomError("empty_stop", "A stop text must not be empty; leave it out")
    return value


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# An address that a client can ask; without its scheme, servers' names are often given.
Url = Annotated[str, BeforeValidator(_has_scheme), Field(pattern=r"^https?://[^\s/]+")]
StopText = Annotated[str, BeforeValidator(_has_letters), Field(min_length=1)]
ScoreSetting = Annotated[float, Field(ge=0, le=10)]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Section(BaseModel):
    """A table of gta.toml: frozen, and no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DataSettings(Section):
    """Where the datasets lie, and the hosts that `gta data fetch` asks."""

    atomic: str = Field("data/gta_atomic", description="Folder of GTA-Atomic.")
    workflow: str = Field("data/gta_workflow", description="Folder of GTA-Workflow.")
    prompts: str = Field(
        "data/gta_prompts", description="Folder of the published texts for `react-upstream`."
    )
    github: Url = Field("https://github.com", description="Host of the GitHub releases.")
    huggingface: Url = Field("https://huggingface.co", description="Host of the Hub, or a mirror.")


class ModelSettings(Section):
    """A model under a short name that `--model` and `judge.model` accept."""

    model: str = Field(description="Inspect's name of the model, such as `openai/gpt-5`.")
    base_url: Url | None = Field(None, description="Address of an OpenAI-compatible server.")
    key_env: VariableName | None = Field(None, description="Environment variable with the key.")
    temperature: float | None = Field(None, ge=0, description="Sampling temperature.")
    max_tokens: int | None = Field(None, ge=1, description="Longest reply, in tokens.")
    seed: int | None = Field(None, description="Seed of the sampling, where the provider has one.")
    top_p: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Sample from the likeliest tokens with this total probability.",
    )
    top_k: int | None = Field(None, ge=1, description="Sample from this many likeliest tokens.")
    presence_penalty: float | None = Field(
        None, ge=-2, le=2, description="Penalty for tokens that the reply already has."
    )
    stop: list[StopText] | None = Field(None, description="Texts at which a reply ends.")
    reasoning_effort: ReasoningEffort | None = Field(
        None, description="How much a model thinks: `none`, `minimal`, `low`, … `max`."
    )
    generate: dict[str, JsonValue] = Field(
        {}, description="Any other option of Inspect's GenerateConfig, such as `extra_body`."
    )
    args: dict[str, JsonValue] = Field(
        {}, description="Arguments of the model's provider, as `-M` of `inspect eval` takes them."
    )
    input_price: float | None = Field(None, ge=0, description="USD per million input tokens.")
    output_price: float | None = Field(None, ge=0, description="USD per million output tokens.")


class EndpointSettings(Section):
    """A server that tool backends call."""

    url: Url = Field(description="Base address, such as `http://localhost:8000/v1`.")
    model: str | None = Field(None, description="Model to ask for.")
    key_env: VariableName | None = Field(None, description="Environment variable with the key.")


class ToolSettings(Section):
    """Which backend a tool uses."""

    backend: str | None = Field(
        None, description="One of its backends; a wrong name is answered with those it has."
    )
    endpoint: Name | None = Field(None, description="A name from `[endpoints]`.")


class JudgeSettings(Section):
    """The judge of GTA-Workflow's checkpoints."""

    model: str | None = Field(None, description="An Inspect model or a name from `[models]`.")
    repeats: int = Field(1, ge=1, description="Verdicts asked for each leaf.")
    leaves_per_call: int = Field(1, ge=1, description="Leaves of a task that share a call.")
    visibility: Literal["full", "upstream"] = Field(
        "full", description="All evidence, or what upstream's judge would have seen."
    )
    inputs: bool = Field(True, description="Show the task's own files to the judge.")
    pictures: bool = Field(True, description="Show pictures; off for models that read text only.")
    context_tokens: int = Field(
        128_000, ge=2048, description="Tokens of one call; evidence is cut to fit."
    )
    batch: bool = Field(False, description="Use the provider's batch mode where it has one.")
    control: bool = Field(
        False, description="Ask first for what cannot be there; take no score from who finds it."
    )
    panel: Literal["mean", "majority"] | None = Field(
        None, description="Score by all judges together too: their mean, or what most of them say."
    )
    leaf_threshold: ScoreSetting = Field(7.0, description="Score from which a leaf succeeds.")
    root_threshold: ScoreSetting = Field(7.0, description="Score from which a task succeeds.")


class ScoringSettings(Section):
    """How answers in free text are compared."""

    similarity: str | None = Field(
        None,
        description="`all-mpnet-base-v2`, `wordllama`, or a folder; unless set, the first where it "
        "was fetched, else the second.",
    )


class BudgetSettings(Section):
    """Limits on a command: a run, or a judging."""

    cost_usd: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="USD after which no unit begins and no judge is asked any more.",
    )
    hours: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Hours after which no unit begins and no judge is asked any more.",
    )
    max_connections: int = Field(10, ge=1, description="Model calls in flight at once.")
    max_retries: int = Field(5, ge=0, description="Times a failed model call is tried again.")
    timeout: int = Field(300, ge=1, description="Seconds that one model call may take.")
    max_attempts: int = Field(
        3,
        ge=1,
        description="Attempts of a harness at a unit; the last one's work is judged.",
    )


class Settings(Section):
    """Everything that can be set; a run's manifest stores what held."""

    data: DataSettings = DataSettings()
    models: dict[Name, ModelSettings] = {}
    endpoints: dict[Name, EndpointSettings] = {}
    tools: dict[Name, ToolSettings] = {}
    scoring: ScoringSettings = ScoringSettings()
    judge: JudgeSettings = JudgeSettings()
    budget: BudgetSettings = BudgetSettings()


TABLES: dict[str, type[Section]] = {
    "data": DataSettings,
    "models": ModelSettings,
    "endpoints": EndpointSettings,
    "tools": ToolSettings,
    "scoring": ScoringSettings,
    "judge": JudgeSettings,
    "budget": BudgetSettings,
}


class Setting(NamedTuple):
    """One value that holds, and where it came from."""

    key: str
    value: JsonValue
    origin: Origin


class LoadedSettings(NamedTuple):
    """The settings, the file they came from (if any), and each value's origin."""

    settings: Settings
    file: Path | None
    values: tuple[Setting, ...]


def read_settings(
    file: Path | None = None,
    *,
    overrides: Mapping[str, JsonValue] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> LoadedSettings:
    """Merge defaults, the environment, the file (default: ./gta.toml) and the command line.

    `overrides` has dotted keys, such as `data.atomic`; None means not given. From here on nothing
    that this process writes holds a key that the settings or the environment name.
    """
    if file is None and Path(CONFIG_FILE).is_file():
        file = Path(CONFIG_FILE)
    written = {} if file is None else _read_toml(file)
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    found = {
        key: value for key, value in _found(environment).items() if not _contains(written, key)
    }
    merged = _merged(written, {**found, **given})
    label = str(file) if file is not None else "command line"
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as exc:
        raise ConfigError(f"{label}: {first_problem(exc)}") from exc
    _check_names(settings, label)
    protect(read_secrets(settings, environment))
    return LoadedSettings(settings, file, tuple(_origins(settings, written, given, found)))


def _found(environment: Mapping[str, str]) -> dict[str, JsonValue]:
    """The settings that the environment has, by their dotted keys."""
    folder = environment.get(DATA_VARIABLE)
    if not folder:
        return {}
    names = ("atomic", "workflow", "prompts")
    return {f"data.{name}": str(Path(folder) / f"gta_{name}") for name in names}


def read_key(variable: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The key in that environment variable, or None where it is unset or empty."""
    return environment.get(variable) or None


def can_open_pages(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> bool:
    """Whether a browser can show something here: there is a display, or BROWSER names one."""
    named = any(environment.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    return named or platform in ("darwin", "win32")


def key_variables(settings: Settings) -> dict[str, str]:
    """The environment variables that the settings name, with what needs each."""
    needs = {}
    for table in ("models", "endpoints"):
        for name, entry in getattr(settings, table).items():
            if entry.key_env is not None:
                needs[entry.key_env] = f"{table}.{name}"
    return needs


def read_secrets(settings: Settings, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Every value that must not be written anywhere, with the name of the place it stands in.

    Keys that the settings name, variables whose names say that they hold a secret, and passwords
    and keys inside addresses. Values that could be ordinary words (`is_secret`) and paths are none.
    """
    named = {name for name in environment if SECRET_NAME.search(name)} | {*key_variables(settings)}
    found = read_variables(sorted(named), environment)
    for name, value in environment.items():
        for address in ADDRESS.findall(value):
            found |= secrets_in_address(address, name)
    for table in ("models", "endpoints"):
        for name, entry in getattr(settings, table).items():
            url = entry.base_url if isinstance(entry, ModelSettings) else entry.url
            found |= secrets_in_address(url or "", f"{table}.{name}")
    return found


def read_variables(
    names: Iterable[str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The secrets that these variables hold, with their names; a path to a key is no key."""
    values = ((environment.get(name, "").strip(), name) for name in names)
    return {
        value: name
        for value, name in values
        if is_secret(value) and not (value.startswith("/") and _is_file(value))
    }


def _is_file(value: str) -> bool:
    try:
        return Path(value).exists()
    except OSError:  # a key can be longer than any file's name
        return False


def quiet_ray(environment: MutableMapping[str, str] = os.environ) -> None:
    """Ray reads the environment only: no word of its use leaves this machine, unless so set."""
    environment.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray 2.60 warns at every start of what a later version will do with GPUs.
    environment.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


def keep_ray_here(environment: MutableMapping[str, str] = os.environ) -> None:
    """A Ray cluster that this process starts is reached by this machine alone.

    Ray has no option for it: it replaces 127.0.0.1 by the machine's address, except where this
    says that there are no clusters, as it does on macOS. Ray reads it at import.
    """
    environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def use_haproxy(environment: MutableMapping[str, str] = os.environ) -> None:
    """Ray Serve's quick proxy, for a cluster that this process starts; it reads these at import."""
    environment["RAY_SERVE_ENABLE_HA_PROXY"] = "1"
    environment["RAY_SERVE_THROUGHPUT_OPTIMIZED"] = "1"


def settings_schema() -> dict[str, JsonValue]:
    """The JSON Schema of gta.toml, for editors."""
    schema = Settings.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "gta.toml",
    }


def _read_toml(file: Path) -> dict[str, JsonValue]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: is not UTF-8 text (byte {exc.start}).") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{file}: is not valid TOML: {exc}.") from exc


def _merged(
    written: Mapping[str, JsonValue], given: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    merged = dict(written)
    for dotted, value in given.items():
        table, _, key = dotted.partition(".")
        section = merged.setdefault(table, {})
        if isinstance(section, dict):  # anything else is refused by the validation that follows
            merged[table] = {**section, key: value}
    return merged


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong with settings, as a sentence without its beginning."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"] if part != "[key]")
    if problem["type"] == "extra_forbidden":
        return f"unknown key `{where}`{_known_keys(problem['loc'])}."
    if problem["type"] == "missing":
        return f"`{where}` is missing."
    value, message = problem["input"], problem["msg"]
    message = message[0].lower() + message[1:]
    return f"`{where}`: {message}, got {value!r} ({type(value).__name__})."


def _known_keys(location: tuple[int | str, ...]) -> str:
    """The keys that may stand at that place, the nearest one first if one is near."""
    section = TABLES[str(location[0])] if len(location) > 1 else Settings
    known = sorted(section.model_fields)
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else "."
    return f"{hint} Known keys here: {', '.join(known)}"


def _check_names(settings: Settings, label: str) -> None:
    """Names that refer to another table must be in it."""
    for tool, entry in settings.tools.items():
        if entry.endpoint is not None and entry.endpoint not in settings.endpoints:
            known = ", ".join(sorted(settings.endpoints)) or "none"
            raise ConfigError(
                f"{label}: `tools.{tool}.endpoint` names {entry.endpoint!r}, "
                f"which is not in [endpoints]. Known endpoints: {known}."
            )
    judge = settings.judge.model
    if judge is not None and "/" not in judge and judge not in settings.models:
        known = ", ".join(sorted(settings.models)) or "none"
        raise ConfigError(
            f"{label}: `judge.model` is {judge!r}, neither a provider/model name "
            f"nor in [models]. Known models: {known}."
        )


def _origins(
    settings: Settings,
    written: Mapping[str, JsonValue],
    given: Mapping[str, JsonValue],
    found: Mapping[str, JsonValue],
) -> Iterator[Setting]:
    for key, value in _leaves(settings.model_dump(mode="json"), ""):
        if key in given:
            yield Setting(key, value, "command line")
        elif _contains(written, key):
            yield Setting(key, value, "gta.toml")
        elif key in found:
            yield Setting(key, value, DATA_VARIABLE)
        else:
            yield Setting(key, value, "default")


def _leaves(tree: Mapping[str, JsonValue], prefix: str) -> Iterator[tuple[str, JsonValue]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _contains(tree: Mapping[str, JsonValue], key: str) -> bool:
    return key in {name for name, _ in _leaves(tree, "")}
