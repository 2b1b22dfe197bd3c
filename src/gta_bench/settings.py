"""Settings of a command: defaults, environment, `gta.toml`, command line.

The only module that reads the environment.
"""

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal, NamedTuple, Self, get_args, get_type_hints
from urllib.parse import unquote, urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gta_bench.errors import ConfigError, suggest_name
from gta_bench.redaction import (
    ADDRESS,
    PLAIN_NAME,
    SECRET_NAME,
    find_address_secrets,
    find_text_secrets,
    is_secret,
    protect,
)

CONFIG_FILE = "gta.toml"
# The variable that names the folder with `gta_atomic`, `gta_workflow` and `gta_prompts`.
DATA_VARIABLE: Final = "GTA_DATA"
# The variable with which the Hub's own programs name a mirror.
HUB_VARIABLE: Final = "HF_ENDPOINT"


def _check_scheme(address: object) -> object:
    """Give an example in the error, because addresses are often written without `http://`."""
    if isinstance(address, str) and "://" not in address:
        problem = f"an address must begin with http:// or https://, such as http://{address}"
        raise PydanticCustomError("address", "{problem}", {"problem": problem})
    return address


# `${NAME}` and `${NAME:-default}`, as in .mcp.json.
VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
SECRET_HEADER: Final = re.compile(r"^(Proxy-)?Authorization$|^Cookie$", re.IGNORECASE)
Origin = Literal["default", "GTA_DATA", "HF_ENDPOINT", "gta.toml", "command line"]
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
# Tools are named after their server, and model APIs accept no other characters.
SERVER_NAME: Final = r"^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$"
ServerName = Annotated[str, Field(pattern=SERVER_NAME, max_length=32)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Url = Annotated[str, BeforeValidator(_check_scheme), Field(pattern=r"^https?://[^\s/]+")]
ScoreSetting = Annotated[float, Field(ge=0, le=10)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Section(BaseModel):
    """A table of gta.toml: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DataSettings(Section):
    """Where the datasets are, and the hosts that `gta data fetch` downloads from."""

    atomic: str = Field("data/gta_atomic", description="Folder of GTA-Atomic.")
    workflow: str = Field("data/gta_workflow", description="Folder of GTA-Workflow.")
    prompts: str = Field(
        "data/gta_prompts", description="Folder of the published texts for `react-upstream`."
    )
    github: Url = Field("https://github.com", description="Host of the GitHub releases.")
    huggingface: Url = Field("https://huggingface.co", description="Host of the Hub, or a mirror.")


class DatasetSettings(Section):
    """A dataset with a short name that `--data` accepts: a folder, or one that is downloaded."""

    path: str = Field(description="Folder of the dataset, in either layout; downloads go there.")
    git: str | None = Field(None, description="Address of the git repository that it comes from.")
    hf: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = Field(
        None, description="Name of the dataset on the Hugging Face Hub, such as `org/name`."
    )
    revision: str | None = Field(None, description="Commit, tag or branch of `git` or `hf`.")
    folder: str | None = Field(None, description="Folder of the dataset inside of `git` or `hf`.")
    digest: str | None = Field(
        None, description="Its digest when it was added; a changed dataset is refused."
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.git is not None and self.hf is not None:
            raise PydanticCustomError("source", "a dataset has either `git` or `hf`")
        if self.git is None and self.hf is None and (self.revision or self.folder):
            raise PydanticCustomError("source", "`revision` and `folder` need `git` or `hf`")
        parts = PurePosixPath(self.folder or ".")
        if parts.is_absolute() or ".." in parts.parts or (self.folder or "").startswith(":"):
            raise PydanticCustomError("folder", "`folder` is a path inside of the repository")
        return self


class ModelSettings(Section):
    """A model with a short name that `--model` and `judge.model` accept."""

    model: str = Field(description="Inspect's name of the model, such as `openai/gpt-5`.")
    base_url: Url | None = Field(None, description="Address of an OpenAI-compatible server.")
    key_env: VariableName | None = Field(None, description="Environment variable with the key.")
    temperature: float | None = Field(None, ge=0, description="Sampling temperature.")
    max_tokens: int | None = Field(None, ge=1, description="Maximum number of tokens per reply.")
    seed: int | None = Field(None, description="Sampling seed, if the provider supports one.")
    top_p: float | None = Field(
        None, gt=0, le=1, description="Sample from the likeliest tokens up to this probability."
    )
    top_k: int | None = Field(None, ge=1, description="Sample from this many likeliest tokens.")
    presence_penalty: float | None = Field(
        None, ge=-2, le=2, description="Penalty for tokens that are already in the reply."
    )
    stop: list[Annotated[str, Field(min_length=1)]] | None = Field(
        None, description="Stop sequences: texts that end a reply."
    )
    reasoning_effort: ReasoningEffort | None = Field(
        None, description="How much the model reasons, from `none` and `minimal` to `max`."
    )
    generate: dict[str, JsonValue] = Field(
        {}, description="Further options of Inspect's GenerateConfig, such as `extra_body`."
    )
    args: dict[str, JsonValue] = Field(
        {}, description="Arguments for the model's provider, as in `inspect eval -M`."
    )
    input_price: float | None = Field(None, ge=0, description="USD per million input tokens.")
    output_price: float | None = Field(None, ge=0, description="USD per million output tokens.")


class EndpointSettings(Section):
    """A server that tool backends call."""

    url: Url = Field(description="Base address, such as `http://localhost:8000/v1`.")
    model: str | None = Field(None, description="Name of the model to request.")
    key_env: VariableName | None = Field(None, description="Environment variable with the key.")


class ToolSettings(Section):
    """Which backend a tool uses."""

    backend: str | None = Field(
        None, description="Backend of the tool; the error for an unknown name lists them."
    )
    endpoint: Name | None = Field(None, description="A name from `[endpoints]`.")


class ToolServerSettings(Section):
    """An MCP server whose tools tasks can use: a command, or an address with headers.

    `${VARIABLE}` and `${VARIABLE:-default}` in its texts are read from the environment.
    """

    command: str | None = Field(
        None, description="Program of a server that speaks over standard input and output."
    )
    args: list[str] = Field([], description="Arguments of `command`.")
    env: dict[VariableName, str] = Field({}, description="Environment variables of `command`.")
    url: str | None = Field(None, description="Address of a server that speaks streamable HTTP.")
    headers: dict[str, str] = Field({}, description="Headers of every request to `url`.")
    files: Literal["none", "read", "write"] = Field(
        "none",
        description="What `command` can do with the task's files, in `inputs` and `outputs` of its "
        "folder /workspace: nothing, read them, or also write outputs.",
    )
    readable: list[str] = Field([], description="Files and folders here that `command` can read.")
    network: Literal["none", "open"] = Field(
        "none", description="What `command` can reach: nothing, or the Internet."
    )
    state: str | None = Field(
        None,
        description="File or folder in /workspace that is the state of `command`, for checks; `.` "
        "is all of it.",
    )
    state_command: list[str] = Field(
        [], description="Instead of `state`: a program that prints the state, with its arguments."
    )
    start_seconds: Limit = Field(30.0, description="Time limit until the server lists its tools.")
    call_seconds: Limit = Field(60.0, description="Time limit of a call.")

    @model_validator(mode="after")
    def _check_state(self) -> Self:
        if self.state is None:
            return self
        if self.state_command:
            raise PydanticCustomError("state", "give `state` or `state_command`, not both")
        path = PurePosixPath(self.state)
        of_task = path.parts[:1] in (("inputs",), ("outputs",))
        if path.is_absolute() or ".." in path.parts or of_task:
            raise PydanticCustomError(
                "state", "`state` is a path in /workspace, and not in `inputs` or `outputs`"
            )
        return self


class JudgeSettings(Section):
    """The judge of GTA-Workflow's checkpoints."""

    model: str | None = Field(None, description="An Inspect model or a name from `[models]`.")
    repeats: int = Field(1, ge=1, description="Verdicts to request for each leaf.")
    leaves_per_call: int = Field(1, ge=1, description="Leaves of a task to judge in one call.")
    visibility: Literal["full", "upstream"] = Field(
        "full", description="Show all evidence, or only what the published judge would have seen."
    )
    inputs: bool = Field(True, description="Show the task's input files to the judge.")
    pictures: bool = Field(
        True, description="Show pictures to the judge; turn off for text-only models."
    )
    context_tokens: int = Field(
        128_000, ge=2048, description="Maximum number of tokens per call; longer evidence is cut."
    )
    batch: bool = Field(False, description="Use the provider's batch mode if it has one.")
    control: bool = Field(
        False, description="Run a negative-control question first; discard judges that fail it."
    )
    panel: Literal["mean", "majority"] | None = Field(
        None, description="Also score by all judges together: their mean, or the majority."
    )
    leaf_threshold: ScoreSetting = Field(7.0, description="Lowest score of a leaf that passes.")
    root_threshold: ScoreSetting = Field(7.0, description="Lowest score of a task that passes.")


class ScoringSettings(Section):
    """How answers in free text are compared."""

    similarity: str | None = Field(
        None,
        description="How to compare free text: `all-mpnet-base-v2` (used for published scores), "
        "`wordllama`, `exact-or-half`, or a folder with a sentence-transformers model. If not set: "
        "the first if it was fetched, otherwise the second.",
    )


class BudgetSettings(Section):
    """Limits of one command that runs or judges."""

    cost_usd: Limit | None = Field(
        None, description="USD after which no more units are started and no more judges are asked."
    )
    hours: Limit | None = Field(
        None,
        description="Hours after which no more units are started and no more judges are asked.",
    )
    max_connections: int = Field(
        10, ge=1, description="Maximum number of concurrent model calls, over all workers."
    )
    rpm: int | None = Field(
        None, ge=1, description="Maximum number of model requests a minute, over all workers."
    )
    max_retries: int = Field(
        5, ge=0, description="Maximum number of retries of a failed model call."
    )
    timeout: int = Field(300, ge=1, description="Time limit of a model call, in seconds.")
    max_attempts: int = Field(
        3,
        ge=1,
        description="Maximum number of attempts of a harness at a unit; the last is judged.",
    )


class Settings(Section):
    """All settings, as in gta.toml; a run's manifest stores those that it used.

    >>> from gta_bench import Settings
    >>> Settings.model_validate({"judge": {"repeats": 3}}).judge.repeats
    3
    """

    data: DataSettings = DataSettings()
    datasets: dict[Name, DatasetSettings] = {}
    models: dict[Name, ModelSettings] = {}
    endpoints: dict[Name, EndpointSettings] = {}
    tools: dict[Name, ToolSettings] = {}
    tool_servers: dict[ServerName, ToolServerSettings] = {}
    scoring: ScoringSettings = ScoringSettings()
    judge: JudgeSettings = JudgeSettings()
    budget: BudgetSettings = BudgetSettings()


# The type of each table; that of an entry if the table has named entries, as `models` has.
TABLES: dict[str, type[Section]] = {
    name: (get_args(kind) or (kind,))[-1] for name, kind in get_type_hints(Settings).items()
}


class Setting(NamedTuple):
    """One effective value, and where it comes from."""

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

    `overrides` has dotted keys, such as `data.atomic`; None means not given. From here on, every
    key that the settings or the environment name is redacted in all output of this process.
    """
    if file is None and Path(CONFIG_FILE).is_file():
        file = Path(CONFIG_FILE)
    written = {} if file is None else _read_toml(file)
    known = {key for key, _ in iter_leaves(written)}
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    found: dict[str, JsonValue] = {}
    if folder := environment.get(DATA_VARIABLE):
        for name in ("atomic", "workflow", "prompts"):
            if f"data.{name}" not in known:
                found[f"data.{name}"] = str(Path(folder) / f"gta_{name}")
    origins: dict[str, Origin] = dict.fromkeys(found, DATA_VARIABLE)
    if (hub := environment.get(HUB_VARIABLE)) and "data.huggingface" not in known:
        found["data.huggingface"], origins["data.huggingface"] = hub, HUB_VARIABLE
    merged = _merge(written, {**found, **given})
    label = str(file) if file is not None else "command line"
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as exc:
        raise ConfigError(f"{label}: {first_problem(exc)}") from exc
    _check_names(settings, label)
    protect(read_secrets(settings, environment))
    origins.update({**dict.fromkeys(known, "gta.toml"), **dict.fromkeys(given, "command line")})
    values = iter_leaves(settings.model_dump(mode="json"))
    listed = tuple(Setting(key, value, origins.get(key, "default")) for key, value in values)
    return LoadedSettings(settings, file, listed)


def read_key(variable: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the key in that environment variable, or None if it is unset or empty."""
    return environment.get(variable) or None


class OtlpVariables(NamedTuple):
    """OpenTelemetry's standard variables: addresses and headers by signal, and the resource.

    Addresses are complete; None if neither a variable nor `base` names one.
    """

    traces: str | None
    logs: str | None
    trace_headers: Mapping[str, str]
    log_headers: Mapping[str, str]
    resource: Mapping[str, str]


def read_otlp_variables(
    base: str | None = None, environment: Mapping[str, str] = os.environ
) -> OtlpVariables:
    """Read the variables OTEL_…; `base` is used instead of the addresses that they have.

    Headers often contain a key, so they are redacted in all output from here on.
    """
    prefix = "OTEL_EXPORTER_OTLP"
    given = base or environment.get(f"{prefix}_ENDPOINT") or ""
    root = given.rstrip("/").removesuffix("/v1/traces").removesuffix("/v1/logs")

    def read(signal: str) -> tuple[str | None, dict[str, str]]:
        own = None if base else environment.get(f"{prefix}_{signal.upper()}_ENDPOINT")
        name = f"{prefix}_{signal.upper()}_HEADERS"
        headers = environment.get(name) or environment.get(f"{prefix}_HEADERS") or ""
        return own or (f"{root}/v1/{signal}" if root else None), _read_pairs(headers)

    traces, trace_headers = read("traces")
    logs, log_headers = read("logs")
    for address in filter(None, (traces, logs)):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.query:
            # Not quoted, as it may contain a key.
            raise ConfigError(
                "The address of an OpenTelemetry server is http(s)://HOST:PORT/PATH, without a "
                f"password or a query: keys belong in {prefix}_HEADERS."
            )
    for value in {*trace_headers.values(), *log_headers.values()}:
        protect({word: f"{prefix}_HEADERS" for word in value.split() if is_secret(word)})
    resource = {
        "service.name": environment.get("OTEL_SERVICE_NAME") or "gta-bench",
        **_read_pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", "")),
    }
    return OtlpVariables(traces, logs, trace_headers, log_headers, resource)


def _read_pairs(text: str) -> dict[str, str]:
    """Read `name=value,name=value`, where values are percent-encoded."""
    pairs = (pair.partition("=") for pair in text.split(","))
    return {name.strip(): unquote(value.strip()) for name, sep, value in pairs if sep}


def can_open_pages(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> bool:
    """Check whether a browser can be opened: there is a display, or BROWSER names one."""
    named = any(environment.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    return named or platform in ("darwin", "win32")


def list_key_variables(settings: Settings) -> dict[str, str]:
    """Return the environment variables that the settings name, with what needs each."""
    needs = {}
    for table in ("models", "endpoints"):
        for name, entry in getattr(settings, table).items():
            if entry.key_env is not None:
                needs[entry.key_env] = f"{table}.{name}"
    return needs


def read_secrets(settings: Settings, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return every value that must not be written anywhere, with the name of its source.

    These are keys that the settings name, variables with a name such as X_API_KEY, and passwords
    and keys inside addresses. Paths and values that could be ordinary words (see `is_secret`) do
    not count.
    """
    named = {name for name in environment if SECRET_NAME.search(name)} | {
        *list_key_variables(settings)
    }
    found = read_variables(sorted(named), environment)
    for name, value in environment.items():
        for address in ADDRESS.findall(value):
            found |= find_address_secrets(address, name)
    for table in ("models", "endpoints"):
        for name, entry in getattr(settings, table).items():
            url = entry.base_url if isinstance(entry, ModelSettings) else entry.url
            found |= find_address_secrets(url or "", f"{table}.{name}")
    for name, server in settings.tool_servers.items():
        found |= read_server_secrets(name, server, environment)
    return found


def read_server_secrets(
    name: str, server: ToolServerSettings, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the secrets in a tool server's settings, and in the variables that they name."""
    texts = {**server.env, **server.headers}
    # Not quoted one by one: `--api-key` and its value are two arguments.
    commands = (shlex.join(server.args), shlex.join(server.state_command))
    every = [*texts.values(), *commands, server.url or ""]
    variables = {found[1] for text in every for found in VARIABLE.finditer(text)}
    secrets = read_variables(
        (variable for variable in sorted(variables) if not PLAIN_NAME.search(variable)), environment
    )
    source = f"tool_servers.{name}"
    for key, text in texts.items():
        plain = not (SECRET_NAME.search(key) or SECRET_HEADER.search(key))
        if not plain and is_secret(text) and not VARIABLE.search(text):
            secrets[text] = source
    for text in (VARIABLE.sub("", text) for text in every):
        secrets |= find_text_secrets(text, source) if text.strip() else {}
    return secrets


def expand_variables(text: str, where: str, environment: Mapping[str, str] = os.environ) -> str:
    """Replace `${NAME}` and `${NAME:-default}` by values of the environment.

    >>> expand_variables("Bearer ${KEY:-none}", "headers", {})
    'Bearer none'
    """

    def value(found: re.Match[str]) -> str:
        known = environment.get(found[1]) or found[2]
        if known is None:
            raise ConfigError(f"{where}: environment variable {found[1]} is not set: export it.")
        return known

    return VARIABLE.sub(value, text)


def read_variables(
    names: Iterable[str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the secrets in these variables, with their names; a path to a key is no secret."""
    values = ((environment.get(name, "").strip(), name) for name in names)
    return {
        value: name
        for value, name in values
        if is_secret(value) and not (value.startswith("/") and _is_file(value))
    }


def _is_file(value: str) -> bool:
    try:
        return Path(value).exists()
    except OSError:  # a key can be longer than file names can be
        return False


def quiet_ray(environment: MutableMapping[str, str] = os.environ) -> None:
    """Turn Ray's usage statistics off, unless the environment sets them."""
    environment.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray 2.60 warns at every start about a later change in GPU handling.
    environment.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


def bind_ray_to_loopback(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make a Ray cluster that this process starts reachable from this machine only.

    Ray has no option for this: it replaces 127.0.0.1 with the machine's address, unless this
    variable says that there are no clusters, as on macOS. Call it before Ray is imported.
    """
    environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def use_haproxy(environment: MutableMapping[str, str] = os.environ) -> None:
    """Use Ray Serve's fast proxy in a cluster that this process starts; call before the import."""
    environment["RAY_SERVE_ENABLE_HA_PROXY"] = "1"
    environment["RAY_SERVE_THROUGHPUT_OPTIMIZED"] = "1"


def settings_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of gta.toml, for editors."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **Settings.model_json_schema(), "title": "gta.toml"}


def _read_toml(file: Path) -> dict[str, JsonValue]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(
            f"{file}: is not UTF-8 text (byte {exc.start}); save it as UTF-8."
        ) from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{file}: is not valid TOML: {exc}.") from exc


def _merge(
    written: Mapping[str, JsonValue], given: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    merged = dict(written)
    for dotted, value in given.items():
        table, _, key = dotted.partition(".")
        section = merged.setdefault(table, {})
        if isinstance(section, dict):  # the validation that follows rejects anything else
            merged[table] = {**section, key: value}
    return merged


def first_problem(error: ValidationError) -> str:
    """Return the first validation error as the end of a sentence, to follow the file name."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"] if part != "[key]")
    if problem["type"] == "extra_forbidden":
        section = TABLES[str(problem["loc"][0])] if len(problem["loc"]) > 1 else Settings
        known = sorted(section.model_fields)
        hint = suggest_name(str(problem["loc"][-1]), known)
        return f"unknown key `{where}`{hint} Known keys here: {', '.join(known)}."
    if problem["type"] == "missing":
        return f"`{where}` is missing."
    value, message = problem["input"], problem["msg"]
    message = message[0].lower() + message[1:]
    return f"`{where}`: {message}, got {value!r} ({type(value).__name__})."


def _check_names(settings: Settings, label: str) -> None:
    """Raise ConfigError for a name that is not in the table that it refers to."""
    for tool, entry in settings.tools.items():
        if entry.endpoint is not None and entry.endpoint not in settings.endpoints:
            known = ", ".join(sorted(settings.endpoints)) or "none"
            raise ConfigError(
                f"{label}: `tools.{tool}.endpoint` is {entry.endpoint!r}, "
                f"which is not in [endpoints]. Known endpoints: {known}."
            )
    judge = settings.judge.model
    if judge is not None and "/" not in judge and judge not in settings.models:
        known = ", ".join(sorted(settings.models)) or "none"
        raise ConfigError(
            f"{label}: `judge.model` is {judge!r}, which is neither provider/model nor a name "
            f"from [models]. Known models: {known}."
        )


def iter_leaves(tree: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield every value that is not a table, with its dotted key."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from iter_leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
