"""Call a tool of this task over MCP, for harnesses that only have a shell.

    python3 .gta/tools.py                                    lists the tools
    python3 .gta/tools.py NAME '{"argument": "value"}'       calls one

The plugin copies this file into the workspace, next to `.mcp.json`. It needs Python alone.
"""

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request to the server that `.mcp.json` names."""
    config = Path(__file__).resolve().parent.parent / ".mcp.json"
    server = json.loads(config.read_text(encoding="utf-8"))["mcpServers"]["gta"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        **server["headers"],
    }
    sent = urllib.request.Request(server["url"], json.dumps(body).encode(), headers)
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with local.open(sent) as reply:
        answer = json.load(reply)
    if "error" in answer:
        raise SystemExit(answer["error"]["message"])
    result: dict[str, Any] = answer["result"]
    return result


def main() -> int:
    """List the tools, or call one and print the text of its reply."""
    if len(sys.argv) == 1:
        for tool in request("tools/list", {})["tools"]:
            schema = json.dumps(tool["inputSchema"]["properties"], ensure_ascii=False)
            sys.stdout.write(f"{tool['name']}: {tool.get('description', '')}\n    {schema}\n")
        return 0
    arguments = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    result = request("tools/call", {"name": sys.argv[1], "arguments": arguments})
    for part in result["content"]:
        if part["type"] == "text":
            sys.stdout.write(f"{part['text']}\n")
    return 1 if result.get("isError") else 0


if __name__ == "__main__":
    sys.exit(main())
