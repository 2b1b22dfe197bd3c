"""One attempt of a harness: its workspace, and the tools of its task as an MCP server.

The server listens on 127.0.0.1 while the harness works, and every call is recorded. A harness
finds it in the files that it knows: `.mcp.json` (Claude Code), `.codex/config.toml` (Codex), or
with the command `.gta/tools.py` (every harness with a shell).
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gta_bench.agents.calling import RecordedTools, TaskWork
from gta_bench.agents.contract import files_text
from gta_bench.confine.files import read_bounded
from gta_bench.confine.workspace import Quota, Workspace
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.model import Dataset
from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.harnesses import collecting
from gta_bench.harnesses.prompts import render
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.finished import COMPASS_ATTEMPT, COMPASS_FILES, CompassAttempt
from gta_bench.records.workflow import WorkflowTask
from gta_bench.redaction import Redactor
from gta_bench.serving.choice import TOKEN_VARIABLE, parse_tools
from gta_bench.serving.client import connect
from gta_bench.serving.listening import bind_socket
from gta_bench.serving.mcp_face import serve_unit_on
from gta_bench.serving.tokens import new_token
from gta_bench.settings import read_key
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.offering import list_offered_tools, list_own_tools
from gta_bench.tools.source import ToolSource

COMMAND = (
    "If you cannot use MCP servers: `python3 .gta/tools.py` lists the same tools, and "
    '`python3 .gta/tools.py NAME \'{"argument": "value"}\'` calls one.'
)


@dataclass
class Attempt:
    """What one attempt works with. `written` is the file of its results, once it has ended."""

    task: AtomicTask | WorkflowTask
    number: int
    asks: str | None
    workspace: Workspace
    work: TaskWork
    tools: RecordedTools | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    written: Path | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @classmethod
    async def open(
        cls,
        dataset: Dataset,
        task: AtomicTask | WorkflowTask,
        number: int,
        *,
        tape: str,
        server: str,
    ) -> "Attempt":
        """Copy the task's files into a new workspace, and serve its tools."""
        files = {item.path: dataset.root / item.source for item in task.attachments}
        root = Path(tempfile.mkdtemp(prefix="gta-"))
        workspace = Workspace.create(root, files, follow_links=True)
        work = TaskWork([UserTurn(content=task.request)])
        attempt = cls(task, number, task_digests(dataset, task.id).asks, workspace, work)
        attempt._stack.callback(shutil.rmtree, root, ignore_errors=True)
        try:
            source = await attempt._open_source(dataset, tape, server)
            if source is not None:
                own = list_own_tools(dataset, task)
                offered = list_offered_tools(own, source.specs())
                missing = own.keys() - {spec.name for spec in offered}
                if missing:
                    raise EnvironmentProblem(
                        f"Task {task.id} offers tools that are not on the tape or the server: "
                        f"{', '.join(sorted(missing))}. Serve them with `gta tools serve`."
                    )
                attempt.tools = RecordedTools(source, offered, attempt.work)
                await attempt._serve(attempt.tools)
        except BaseException:
            await attempt.close()
            raise
        return attempt

    @property
    def prompt(self) -> str:
        """The prompt that every harness of gta-bench gets, and how a shell calls the tools."""
        files = files_text(self.task.attachments)
        request = self.task.request if files is None else f"{files}\n\n{self.task.request}"
        prompt = render("task.md", request=request)
        return prompt if self.tools is None else f"{prompt.rstrip()} {COMMAND}"

    async def close(self) -> None:
        """Stop the tools and remove the workspace."""
        await self._stack.aclose()

    async def _open_source(self, dataset: Dataset, tape: str, server: str) -> ToolSource | None:
        if tape:
            name = "workflow" if isinstance(self.task, WorkflowTask) else "atomic"
            unit = TapeUnit(name, self.task.id, self.number)
            return TapedTools(Tape.open(Path(tape)), unit, "replay", Redactor({}))
        if not server:
            return None
        address = parse_tools(server)
        if address is None:
            raise UsageError("`server` must be the address that `gta tools serve` printed.")
        source = await connect(address, read_key(TOKEN_VARIABLE))
        self._stack.push_async_callback(source.aclose)
        return source

    async def _serve(self, tools: RecordedTools) -> None:
        listening = self._stack.enter_context(bind_socket("127.0.0.1", 0))
        token = new_token()
        serving = serve_unit_on(listening, tools, self.workspace, token)
        await self._stack.enter_async_context(serving)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        headers = {"Authorization": f"Bearer {token}"}
        for name, text in list_client_files(url, headers).items():
            file = self.workspace.root / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")


def list_client_files(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the files by which harnesses find the server, by their path in the workspace."""
    server = {"type": "http", "url": url, "headers": dict(headers)}
    quoted = ", ".join(f"{json.dumps(key)} = {json.dumps(one)}" for key, one in headers.items())
    codex = f"[mcp_servers.gta]\nurl = {json.dumps(url)}\nhttp_headers = {{ {quoted} }}\n"
    client = Path(__file__).with_name("tools.py").read_text(encoding="utf-8")
    return {
        ".mcp.json": json.dumps({"mcpServers": {"gta": server}}, indent=2),
        ".claude/settings.json": json.dumps({"enableAllProjectMcpServers": True}),
        ".codex/config.toml": codex,
        ".gta/tools.py": client,
    }


def write_attempt(folder: Path, attempt: CompassAttempt, workspace: Path) -> Path:
    """Write an attempt and the files of its `outputs/` into a folder; returns its file.

    Links are not followed, and files beyond the quota are left out.
    """
    written = folder / COMPASS_ATTEMPT
    shutil.rmtree(written.parent, ignore_errors=True)  # of an earlier try
    written.parent.mkdir(parents=True)
    listing = collecting.list_files(workspace, collecting.OUTPUTS)
    left_out = [*attempt.left_out, *(tuple(one) for one in listing.left_out)]
    for file in listing.files:
        try:
            with collecting.open_below(file.root, file.parts) as stream:
                data = read_bounded(stream, Quota().file_bytes)
        except OSError as exc:
            left_out.append((file.name, collecting.explain_unread(exc)))
            continue
        if data is None:
            left_out.append((file.name, collecting.TOO_LARGE))
            continue
        target = written.parent / COMPASS_FILES / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    whole = attempt.model_copy(update={"left_out": tuple(left_out)})
    written.write_text(whole.model_dump_json(indent=2), encoding="utf-8")
    return written
