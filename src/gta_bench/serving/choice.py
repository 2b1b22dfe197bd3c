"""The `--tools` option of a run: the tools of this machine, or of a server."""

from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from gta_bench.errors import UsageError
from gta_bench.redaction import find_text_secrets

LOCAL = "local"
# Modules of the extra `serve` that the server and its MCP client import.
SERVER_PACKAGES = ("fastapi", "h11", "mcp", "uvicorn")
TOKEN_VARIABLE = "GTA_TOOLS_TOKEN"
Protocol = Literal["http", "mcp", "agentlego"]
PREFIXES: dict[str, Protocol] = {"mcp+": "mcp", "agentlego+": "agentlego"}


class ServerAddress(NamedTuple):
    """A server's address and protocol."""

    protocol: Protocol
    url: str


def parse_tools(text: str) -> ServerAddress | None:
    """Return the server that `--tools` names, or None for the tools of this machine.

    The address is written to the run's manifest, so it must not contain a secret.
    """
    if text == LOCAL:
        return None
    protocol, url = _split_protocol(text)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"--tools {text!r} is neither `{LOCAL}` nor an address such as http://127.0.0.1:16182, "
            "mcp+http://… or agentlego+http://…."
        )
    if (
        parts.username is not None
        or parts.query
        or parts.fragment
        or find_text_secrets(url, "--tools")
    ):
        raise UsageError(f"--tools takes a plain address; set the token in {TOKEN_VARIABLE}.")
    return ServerAddress(protocol, url.rstrip("/"))


def _split_protocol(text: str) -> tuple[Protocol, str]:
    for prefix, protocol in PREFIXES.items():
        if text.startswith(prefix):
            return protocol, text.removeprefix(prefix)
    return "http", text
