"""The smallest harness: a program that calls our tools over MCP and says something."""

from collections.abc import Iterable, Mapping


def calling_harness(calls: Iterable[tuple[str, Mapping[str, object]]], answer: str) -> str:
    """The program's text; it makes these calls in their order."""
    return f"""
import json, os, urllib.request

for name, arguments in {[(name, dict(arguments)) for name, arguments in calls]!r}:
    params = {{"name": name, "arguments": arguments}}
    body = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}}
    urllib.request.urlopen(urllib.request.Request(
        os.environ["GTA_MCP_URL"],
        json.dumps(body).encode(),
        {{
            "Authorization": "Bearer " + os.environ["GTA_MCP_TOKEN"],
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }},
    )).read()
print({answer!r})
"""
