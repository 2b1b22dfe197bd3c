"""mini-swe-agent as a harness with a short prompt: the model writes shell commands.

    pip install mini-swe-agent==2.4.6
    gta run atomic --mode end-to-end --model qwen-1_5b --harness "python mini.py {task_file}"

Tools of the task are the command `tool NAME JSON`, which calls them by MCP over plain HTTP.
"""

import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path

SYSTEM = """You are a helpful assistant that answers a request by shell commands.
Every reply has one short thought and exactly ONE command, like this:

```bash
tool Calculator '{"expression": "6 * 7"}'
```"""
FIRST = """{{task}}

These tools are commands, too:

{{tools}}

Write files only into outputs/. When you know the answer, reply with this command:

```bash
echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo 'your answer'
```"""
WRONG = "Your reply had {{actions|length}} commands in ```bash blocks. Write exactly one."


def call_tool(name: str, *rest: str) -> str:
    """Call a tool of the task and return the text of its reply, or what is wrong in one line."""
    try:
        (text,) = rest
        arguments = json.loads(text)
    except ValueError:
        return f'Error: write the arguments as one JSON object: tool {name} \'{{"name": "value"}}\''
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": f"Bearer {os.environ['GTA_MCP_TOKEN']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(os.environ["GTA_MCP_URL"], json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        answered = json.load(reply)
    if "error" in answered:
        return f"Error: {answered['error']['message']}"
    return "\n".join(part.get("text", "") for part in answered["result"]["content"])


def describe(tool: dict[str, object]) -> str:
    """Return the tool in one line: its purpose, and a command with what it needs."""
    schema = tool["input_schema"]
    assert isinstance(schema, dict)
    arguments = json.dumps({name: "..." for name in schema.get("required", ())})
    return f"- {str(tool['description']).splitlines()[0]} `tool {tool['name']} '{arguments}'`"


def work(file: str) -> None:
    """Let the agent work on the task, and write its answer."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it looks for prices on the web first
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    task = json.loads(Path(file).read_text(encoding="utf-8"))
    programs = Path(tempfile.mkdtemp())
    tool = programs / "tool"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} call "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    model = LitellmTextbasedModel(  # type: ignore[no-untyped-call]
        model_name=f"openai/{os.environ['GTA_MODEL']}",
        model_kwargs={"api_base": os.environ["OPENAI_BASE_URL"], "drop_params": True},
        cost_tracking="ignore_errors",
        action_regex=r"```(?:bash|sh|shell)?[ \t]*\n(.*?)\n?```",
        format_error_template=WRONG,
    )
    path = f"{programs}:{os.environ['PATH']}"
    agent = DefaultAgent(
        model,
        LocalEnvironment(env={"PATH": path}, timeout=120),
        system_template=SYSTEM,
        instance_template=FIRST,
        step_limit=6,
    )
    ended = agent.run(task["prompt"], tools="\n".join(map(describe, task["tools"])))
    Path("final.txt").write_text(ended["submission"], encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "call":
        print(call_tool(*sys.argv[2:]))
    else:
        work(sys.argv[1])
