"""A harness at work on one task in its cell: any command, or a harness that Inspect can drive.

The cell is a sandbox of Inspect, for its model bridge and for the agents of inspect_swe.
"""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal, overload

import anyio
from inspect_ai.agent import sandbox_agent_bridge
from inspect_ai.model import get_model
from inspect_ai.util import (
    ExecResult,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sample_limits,
    sandbox,
    sandboxenv,
)
from typing_extensions import override

from gta_bench.agents.provider import watch_faults
from gta_bench.confine import files
from gta_bench.confine.commands import find_command_files
from gta_bench.confine.limits import MIB
from gta_bench.errors import EnvironmentProblem, RunError
from gta_bench.harnesses import choice, named
from gta_bench.harnesses.cell import TICK, Cell, CellGone
from gta_bench.harnesses.collecting import OUTPUTS
from gta_bench.harnesses.contract import Assignment, HarnessOutcome, assign_blame, list_model_calls
from gta_bench.packages import require_packages
from gta_bench.serving.choice import SERVER_PACKAGES
from gta_bench.serving.tokens import new_token
from gta_bench.serving.wire import input_schema

CELL = "gta_cell"
EXEC_BYTES = 10 * MIB
READ_BYTES = 100 * MIB
WRITE = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
MISSING = 3
READ = f'[ -e "$1" ] || exit {MISSING}; cat "$1"'
FINAL = "final.txt"
MCP = "mcp"
MCP_PATH = "/mcp"
MODEL_PORT = 13131
MODEL_URL = f"http://127.0.0.1:{MODEL_PORT}"
TASK_FILE, TEXT_FILE, MCP_FILE = "task.json", "task.txt", "mcp.json"
SHOWN = 2000
# Waits for the bridge's server, which starts after the bridge itself.
WAIT_FOR_PORT = (
    "for i in $(seq 600); do (exec 3<>/dev/tcp/127.0.0.1/$1) 2>/dev/null && exit 0; "
    "sleep 0.1; done; exit 1"
)
# Inspect's bridge in the variables that the clients of each provider read. The model's name is
# `inspect`. The keys open nothing: the bridge needs none.
MODEL_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "inspect",
    "ANTHROPIC_BASE_URL": MODEL_URL,
    "GEMINI_API_KEY": "inspect",
    "GOOGLE_GEMINI_BASE_URL": MODEL_URL,
    "GTA_MODEL": "inspect",
    "OPENAI_API_KEY": "inspect",
    "OPENAI_BASE_URL": f"{MODEL_URL}/v1",
}
# Raised by Inspect's bridge and the agents of inspect_swe when the program that they run fails.
BROKEN = (RuntimeError, OSError, SandboxUnavailableError)


@sandboxenv(name=CELL)
class CellSandbox(SandboxEnvironment):
    """The sandbox of a sample; the solver opens and closes its cell."""

    cell: Cell | None = None

    @override
    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        return {"default": cls()}

    @override
    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Do nothing: the solver has closed the cell."""

    @override
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        # Inspect looks for root before the cell is open, and there is none. Installers of
        # inspect_swe ask for root later, but write only files of the harness.
        known = (None, "harness") if self.cell is None else (None, "harness", "root")
        if user not in known:
            raise SandboxUserUnsupportedError(f"A cell has only the user 'harness', not {user!r}.")
        ran = await self._cell().run(
            cmd,
            stdin=input.encode() if isinstance(input, str) else input or b"",
            cwd=cwd if cwd and cwd.startswith("/") else f"{choice.WORKSPACE}/{cwd or ''}",
            environment=env,
            seconds=timeout,
            output_bytes=EXEC_BYTES,
        )
        if ran.stop == "timeout":
            raise TimeoutError(f"{cmd[0]} took longer than {timeout} seconds.")
        out, err = (text.decode("utf-8", "replace") for text in (ran.stdout, ran.stderr))
        return ExecResult(ran.status == 0, ran.status, out, err)

    @override
    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        ran = await self._cell().run(["sh", "-c", WRITE, "sh", file], stdin=data)
        if ran.status != 0:
            raise PermissionError(ran.stderr.decode("utf-8", "replace").strip())

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    @override
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        ran = await self._cell().run(["sh", "-c", READ, "sh", file], output_bytes=READ_BYTES)
        if ran.status == MISSING:
            raise FileNotFoundError(file)
        if ran.status != 0:
            raise PermissionError(ran.stderr.decode("utf-8", "replace").strip())
        return ran.stdout.decode("utf-8") if text else ran.stdout

    @override
    def default_polling_interval(self) -> float:
        return 0.2

    def _cell(self) -> Cell:
        if self.cell is None:
            raise SandboxUnavailableError(f"No cell is open; {choice.HOME} does not exist yet.")
        return self.cell


async def work_in_cell(harness: choice.Harness, given: Assignment) -> HarnessOutcome:
    """Let a command or a named harness work; its failures are part of the outcome."""
    plan = plan_command if harness.kind == "command" else named.plan_named
    with watch_faults(get_model().api) as fault:
        async with Cell(plan(harness, given)) as cell:
            sandbox().as_type(CellSandbox).cell = cell
            ended = await _run_within_limits(harness, given, cell)
            await cell.end()
            final = await anyio.to_thread.run_sync(_read_final, cell)
            if cell.stop == "disk":  # the outputs of a harness that filled the disk are dropped
                outputs = given.workspace.root / OUTPUTS
                await anyio.to_thread.run_sync(files.remove_tree, outputs)
                outputs.mkdir()
        answer = ended.answer if final is None else final
        outcome = HarnessOutcome(answer, ended.problem, ended.printed)
        return outcome if cell.stop is not None else await assign_blame(outcome, fault)


async def _run_within_limits(
    harness: choice.Harness, given: Assignment, cell: Cell
) -> HarnessOutcome:
    """Run the harness within its time and cost; the outcome says why it was stopped."""
    limits, ended = harness.limits, HarnessOutcome("")
    run = run_command if harness.kind == "command" else named.run_named
    watch = asyncio.create_task(_watch_cost(cell))
    try:
        with anyio.move_on_after(limits.seconds) as clock:
            ended = await run(harness, given, cell)
    except CellGone:
        ended = HarnessOutcome("", "The harness ended its own cell.")
    except BROKEN as exc:
        # A failure is the harness's own, unless it could not even begin.
        if harness.kind == "named" and cell.stop is None and not list_model_calls():
            raise RunError(f"{harness.target} failed before it asked its model: {exc}") from exc
        ended = HarnessOutcome("", f"The harness failed: {exc}")
    finally:
        watch.cancel()
    if clock.cancelled_caught:
        cell.halt("timeout")
    elif _exceeds_cost(limits):
        cell.halt("cost")
    if cell.stop is None:
        return ended
    return HarnessOutcome(
        "", f"The harness was stopped: {limits.describe(cell.stop)}.", ended.printed
    )


async def _watch_cost(cell: Cell) -> None:
    """Stop a harness that exceeds its cost limit.

    Inspect's own limit would end the whole task, and lose what the harness has done so far.
    """
    while not _exceeds_cost(cell.plan.limits):
        await asyncio.sleep(TICK)
    cell.halt("cost")


def _exceeds_cost(limits: choice.CellLimits) -> bool:
    return limits.cost_usd is not None and sample_limits().cost.usage > limits.cost_usd


def _read_final(cell: Cell) -> str | None:
    """Return the answer that a harness left as a file; None if there is none.

    An empty file is an empty answer. What such a harness prints is not: it may be a banner with a
    number that is somewhere the right one.
    """
    try:
        with files.open_regular(cell.folder / "work" / FINAL) as stream:
            data = files.read_bounded(stream, MIB)
    except OSError:
        return None
    return "" if data is None else data.decode("utf-8", "replace").strip()


def plan_command(harness: choice.Harness, given: Assignment) -> choice.Plan:
    """Plan the cell of a command, which sees the files that it names and those it may read."""
    words = choice.parse_command(harness.target)
    return harness.plan_cell(
        given.workspace,
        readable=find_command_files(words),
        search=[Path(words[0]).parent] if words[0].startswith("/") else [],
        sockets=[MCP],
    )


async def run_command(harness: choice.Harness, given: Assignment, cell: Cell) -> HarnessOutcome:
    """Run the command, with its tools as an MCP server and its model behind Inspect's bridge."""
    require_packages("--harness", *SERVER_PACKAGES, extra="serve")
    from gta_bench.serving.mcp_face import serve_unit

    token = new_token()
    url = f"http://127.0.0.1:{cell.port(MCP)}{MCP_PATH}"
    _write_task_files(given, cell, url, token)
    argv = choice.parse_command(harness.target)
    for name, path in zip(
        choice.PLACEHOLDERS, (f"{choice.TASK}/{TASK_FILE}", choice.WORKSPACE), strict=True
    ):
        argv = [word.replace(name, path) for word in argv]
    environment = {
        "GTA_MCP_CONFIG": f"{choice.TASK}/{MCP_FILE}",
        "GTA_MCP_TOKEN": token,
        "GTA_MCP_URL": url,
        "GTA_TASK_FILE": f"{choice.TASK}/{TASK_FILE}",
        "GTA_WORKSPACE": choice.WORKSPACE,
    }
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            serve_unit(given.tools, given.workspace, token, cell.socket(MCP))
        )
        if given.asks_model:
            await stack.enter_async_context(sandbox_agent_bridge(port=MODEL_PORT))
            waited = await cell.run(["bash", "-c", WAIT_FOR_PORT, "bash", str(MODEL_PORT)])
            if waited.status != 0:
                raise EnvironmentProblem(
                    "Inspect's model bridge does not answer in the harness's cell. "
                    "Run the same command again to repeat this unit."
                )
            environment |= MODEL_ENVIRONMENT
        ran = await cell.run(argv, environment=environment)
    if ran.stop is not None:
        cell.halt(ran.stop)
    printed, errors = (text.decode("utf-8", "replace").strip() for text in (ran.stdout, ran.stderr))
    problem = None if ran.status == 0 else f"The harness ended with status {ran.status}."
    return HarnessOutcome(printed, problem, f"{printed[-SHOWN:]}\n{errors[-SHOWN:]}".strip())


def _write_task_files(given: Assignment, cell: Cell, url: str, token: str) -> None:
    """Write the task as JSON and as text, and the MCP server in the form of most harnesses."""
    task = {
        "id": given.task.id,
        "prompt": given.prompt,
        "request": given.task.request,
        "inputs": [item.path for item in given.task.attachments],
        "outputs": "outputs",
        "answer": "final.txt",
        "tools": [
            {"name": spec.name, "description": spec.description, "input_schema": input_schema(spec)}
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
