"""Which tool servers a run uses: `[tool_servers]` of gta.toml, and the servers of `.mcp.json`."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gta_bench.confine.commands import find_command_files, find_installations, locate
from gta_bench.confine.service import ServicePlan
from gta_bench.errors import ConfigError
from gta_bench.redaction import protect
from gta_bench.settings import (
    CONFIG_FILE,
    Settings,
    ToolServerSettings,
    expand_variables,
    first_problem,
    read_server_secrets,
)

MCP_FILE: Final = ".mcp.json"
# The fields that other programs write there too; further ones are theirs alone.
_SHARED: Final = ("command", "args", "env", "url", "headers")
_TYPES: Final = (None, "stdio", "http", "streamable-http", "streamableHttp")


def choose_servers(
    settings: Settings, names: Collection[str], folder: Path | None = None
) -> Settings:
    """Return the settings with all of these servers; those of `.mcp.json` are added.

    What gta.toml says about a server of that file, such as its network, is added to it. From here
    on, its keys are redacted in all output of this process.
    """
    chosen = {
        name: _find_server(settings, name, (folder or Path()) / MCP_FILE) for name in sorted(names)
    }
    for name, server in chosen.items():
        protect(read_server_secrets(name, server))
    return settings.model_copy(update={"tool_servers": {**settings.tool_servers, **chosen}})


def _find_server(settings: Settings, name: str, file: Path) -> ToolServerSettings:
    own = settings.tool_servers.get(name)
    if own is None or (own.command is None and own.url is None):
        shared = _read_shared(file)
        if name not in shared:
            known = ", ".join(sorted({*settings.tool_servers, *shared})) or "none"
            raise ConfigError(
                f"Tool server {name!r} has no `command` or `url`, neither in [tool_servers.{name}] "
                f"of {CONFIG_FILE} nor in {MCP_FILE}. Known servers: {known}."
            )
        given = {} if own is None else own.model_dump(exclude_unset=True)
        where = f"{file}: {name}"
        own = _read_server(_read_entry(shared[name], where) | given, where)
    if (own.command is None) == (own.url is None):
        raise ConfigError(f"Tool server {name!r} needs `command` or `url`, and not both.")
    if own.url is not None and (own.state is not None or own.state_command):
        raise ConfigError(
            f"Tool server {name!r} has a `url`, so its state is out of reach: remove `state` and "
            "`state_command`, or start the server with `command`."
        )
    return own


def _read_shared(file: Path) -> dict[str, dict[str, Any]]:
    """Return the servers of `.mcp.json` by name; other clients may use some that we cannot."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))["mcpServers"]
        return dict(data.items())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as exc:
        raise ConfigError(f"{file}: has no object `mcpServers` with servers by name.") from exc


def _read_entry(entry: Any, where: str) -> dict[str, Any]:
    """Return what we use of an entry."""
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: is not an object with the settings of a server.")
    if entry.get("type") not in _TYPES:
        raise ConfigError(f"{where}: type {entry['type']!r} is not supported: use stdio or http.")
    return {key: entry[key] for key in _SHARED if key in entry}


def _read_server(data: dict[str, Any], where: str) -> ToolServerSettings:
    try:
        return ToolServerSettings.model_validate(data)
    except ValidationError as exc:
        raise ConfigError(f"{where}: {first_problem(exc)}") from exc


def plan_service(name: str, server: ToolServerSettings, task: Path) -> ServicePlan:
    """Plan the cell of a server that is a command, for the task whose files are in `task`."""
    where = f"[tool_servers.{name}]"
    assert server.command is not None
    words = [expand_variables(word, where) for word in (server.command, *server.args)]
    argv = locate(words)
    if argv is None:
        raise ConfigError(f"{where}: program {words[0]!r} not found; install it.")
    return ServicePlan(
        argv=argv,
        task=task,
        environment={key: expand_variables(text, where) for key, text in server.env.items()},
        readable=list_readable(server, argv),
        files=server.files,
        network=server.network,
    )


def list_readable(server: ToolServerSettings, argv: list[str]) -> list[Path]:
    """Return what the server sees of this machine besides the system's own programs."""
    named = find_command_files(argv)
    declared = [Path(path).expanduser().absolute() for path in server.readable]
    missing = [path for path in declared if not path.exists()]
    if missing:
        raise ConfigError(f"`readable` of a tool server: {missing[0]} does not exist.")
    return [*named, *find_installations(named), *declared]
