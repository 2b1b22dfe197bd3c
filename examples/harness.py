"""A harness in 30 lines: it reads its task, calls tools by MCP over plain HTTP, leaves a file.

gta run workflow --harness "python3 examples/harness.py {task_file} {workspace}" --out runs/mine
"""

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any


def call(method: str, **params: object) -> Any:
    """One request to the tool server; the reply is plain JSON."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {
        "Authorization": f"Bearer {os.environ['GTA_MCP_TOKEN']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(os.environ["GTA_MCP_URL"], json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["result"]


task = json.loads(Path(sys.argv[1]).read_text())
tools = [tool["name"] for tool in call("tools/list")["tools"]]
result = call("tools/call", name="Calculator", arguments={"expression": f"{len(tools)} * 6"})
Path(sys.argv[2], "outputs", "report.md").write_text(f"# {task['id']}\n\n{task['request']}\n")
print("The answer is", result["content"][0]["text"])
