"""Any command as a harness: task file, workspace, tools by MCP, a model behind Inspect's bridge."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

from inspect_ai.agent import sandbox_agent_bridge

from gta_bench.errors import EnvironmentProblem
from gta_bench.harnesses.cell import Cell, Ran
from gta_bench.harnesses.cell_plan import TASK, WORKSPACE, Plan
from gta_bench.harnesses.choice import PLACES, Harness, parse_command, shown_files
from gta_bench.harnesses.contract import Assignment, HarnessOutcome
from gta_bench.packages import require_packages
from gta_bench.serving.choice import SERVER_PACKAGES
from gta_bench.serving.tokens import new_token
from gta_bench.serving.wire import input_schema

MCP = "mcp"
MCP_PATH = "/mcp"
MODEL_PORT = 13131
TASK_FILE, TEXT_FILE, MCP_FILE = "task.json", "task.txt", "mcp.json"
SHOWN = 2000
# The bridge's server starts after the bridge is there.
ANSWERS = (
    "for i in $(seq 600); do (exec 3<>/dev/tcp/127.0.0.1/$1) 2>/dev/null && exit 0; "
    "sleep 0.1; done; exit 1"
)


def plan(harness: Harness, given: Assignment) -> Plan:
    """The cell of a command: it sees what it names, and what it may read."""
    words = parse_command(harness.target)
    return harness.cell(
        given.workspace,
        readable=shown_files(words),
        search=[Path(words[0]).parent] if words[0].startswith("/") else [],
        sockets=[MCP],
    )


async def play(harness: Harness, given: Assignment, cell: Cell) -> HarnessOutcome:
    """Run the command to its end."""
    require_packages("--harness", *SERVER_PACKAGES, extra="serve")
    from gta_bench.serving.mcp_face import serve_unit

    token = new_token()
    url = f"http://127.0.0.1:{cell.port(MCP)}{MCP_PATH}"
    _write_papers(given, cell, url, token)
    places = dict(zip(PLACES, (f"{TASK}/{TASK_FILE}", WORKSPACE), strict=True))
    argv = [_filled(word, places) for word in parse_command(harness.target)]
    environment = {
        "GTA_MCP_CONFIG": f"{TASK}/{MCP_FILE}",
        "GTA_MCP_TOKEN": token,
        "GTA_MCP_URL": url,
        "GTA_TASK_FILE": f"{TASK}/{TASK_FILE}",
        "GTA_WORKSPACE": WORKSPACE,
    }
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            serve_unit(given.tools, given.workspace, token, cell.socket(MCP))
        )
        if given.asks_model:
            await stack.enter_async_context(sandbox_agent_bridge(port=MODEL_PORT))
            await _wait_for(cell, MODEL_PORT)
            environment |= _model_environment(MODEL_PORT)
        ran = await cell.run(argv, environment=environment)
    if ran.stop is not None:
        cell.halt(ran.stop)
    return _outcome(ran)


def _outcome(ran: Ran) -> HarnessOutcome:
    printed = ran.stdout.decode("utf-8", "replace").strip()
    said = ran.stderr.decode("utf-8", "replace").strip()[-SHOWN:]
    problem = None if ran.status == 0 else f"The harness ended with status {ran.status}."
    return HarnessOutcome(printed, problem, f"{printed[-SHOWN:]}\n{said}".strip())


def _filled(word: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        word = word.replace(name, path)
    return word


def _write_papers(given: Assignment, cell: Cell, url: str, token: str) -> None:
    """The task as JSON and as text, and the MCP server as most harnesses want it written."""
    task = {
        "id": given.task.id,
        "prompt": given.prompt,
        "request": given.task.request,
        "inputs": [item.path for item in given.task.attachments],
        "outputs": "outputs",
        "answer": "final.txt",
        "tools": [
            {
                "name": spec.name,
                "description": spec.description,
                "input_schema": input_schema(spec),
            }
            for spec in given.tools.specs().values()
        ],
    }
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    for name, text in (
        (TASK_FILE, json.dumps(task, indent=2, ensure_ascii=False)),
        (TEXT_FILE, given.prompt),
        (MCP_FILE, json.dumps({"mcpServers": {"gta": server}}, indent=2)),
    ):
        cell.show("task", name, text + "\n")


def _model_environment(port: int) -> dict[str, str]:
    """Inspect's bridge as the clients of each provider look for it; the model's name is `inspect`.

    The keys open nothing: the bridge asks for none.
    """
    host = f"http://127.0.0.1:{port}"
    return {
        "ANTHROPIC_API_KEY": "inspect",
        "ANTHROPIC_BASE_URL": host,
        "GEMINI_API_KEY": "inspect",
        "GOOGLE_GEMINI_BASE_URL": host,
        "GTA_MODEL": "inspect",
        "OPENAI_API_KEY": "inspect",
        "OPENAI_BASE_URL": f"{host}/v1",
    }


async def _wait_for(cell: Cell, port: int) -> None:
    ran = await cell.run(["bash", "-c", ANSWERS, "bash", str(port)])
    if ran.status != 0:
        raise EnvironmentProblem("Inspect's model bridge does not answer in the harness's cell.")
