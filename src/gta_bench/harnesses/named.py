"""Harnesses that Inspect knows how to drive (package inspect_swe), with our tools bridged."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inspect_ai.agent import Agent, AgentState, BridgedToolsSpec
from inspect_ai.model import ChatMessageUser
from inspect_ai.tool import Tool, ToolDef
from inspect_ai.tool import ToolError as ToldError
from pydantic import JsonValue

from gta_bench.agents.history import reply_text
from gta_bench.agents.toolcalling import tool_info
from gta_bench.errors import EnvironmentProblem, ToolError, ToolUnavailable, UsageError
from gta_bench.harnesses.cell import Cell
from gta_bench.harnesses.cell_plan import HOME, WORKSPACE, Plan
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.contract import Assignment, HarnessOutcome
from gta_bench.packages import require_packages
from gta_bench.records.calls import ToolResult
from gta_bench.records.dialogue import ReplyTurn
from gta_bench.records.tools import ToolSpec


@dataclass(frozen=True)
class _Known:
    """A harness of inspect_swe: its function there, its program, and where that comes from.

    One that is `copied` is not run where it is installed: inspect_swe brings the same version into
    the cell by npm.
    """

    function: str
    program: str
    package: str
    options: Mapping[str, Any] = field(default_factory=dict)
    copied: bool = False


DRIVER = "inspect_swe"
# A search that the model's provider makes would be a way around the network of the cell.
CATALOG = {
    "claude-code": _Known(
        "claude_code",
        "claude",
        "@anthropic-ai/claude-code",
        {"disallowed_tools": ["WebSearch"]},
    ),
    "codex": _Known(
        "codex_cli",
        "codex",
        "@openai/codex",
        {"web_search": "disabled", "home_dir": f"{HOME}/.codex"},
    ),
    "gemini": _Known(
        "gemini_cli", "gemini", "@google/gemini-cli", {"web_search": False}, copied=True
    ),
    "kimi-code": _Known("kimi_code", "kimi", "@moonshot-ai/kimi-code"),
    "opencode": _Known("opencode", "opencode", "opencode-ai"),
}


def find(name: str) -> _Known:
    """The harness of that name, or the names that there are."""
    if name not in CATALOG:
        known = ", ".join(CATALOG)
        raise UsageError(f'Unknown harness {name!r}. Known: {known}; or any --harness "COMMAND".')
    return CATALOG[name]


def installed(name: str) -> Path:
    """The program of a harness on this machine."""
    known = find(name)
    program = shutil.which(known.program)
    if program is None:
        raise EnvironmentProblem(
            f"{known.program} is not installed here: npm install -g {known.package}."
        )
    return Path(program).absolute()


def installed_version(name: str) -> str:
    """What the program says of itself."""
    program = installed(name)
    ran = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    found = re.search(r"\d+(\.\d+)+\S*", ran.stdout)
    if ran.returncode != 0 or found is None:
        raise EnvironmentProblem(f"{program} does not say its version; is it installed whole?")
    return found.group()


def driver_version() -> str:
    """The version of what knows how to drive them."""
    require_packages("--harness-name", DRIVER, extra="harness")
    return version(DRIVER)


def plan(harness: Harness, given: Assignment) -> Plan:
    """The cell of a named harness: its program and all that is installed with it."""
    program = installed(harness.target)
    return harness.cell(given.workspace, readable=installation(program), search=[program.parent])


async def play(harness: Harness, given: Assignment, cell: Cell) -> HarnessOutcome:
    """Let it work on the task's prompt; its last message is the answer."""
    agent = _agent(harness.target, given)
    state = await agent(AgentState(messages=[ChatMessageUser(content=given.prompt)]))
    return HarnessOutcome(state.output.completion)


def bridged_tools(given: Assignment) -> list[Tool]:
    """The unit's tools as Inspect's."""
    return [_tool(spec, given) for spec in given.tools.specs().values()]


def told(result: ToolResult) -> str:
    """A tool's result as text, in the form that our own agents are told it."""
    return reply_text(
        tuple(
            ReplyTurn(tool=result.tool, type=part.type, content=part.content)
            for part in result.parts
        )
    )


def _agent(name: str, given: Assignment) -> Agent:
    import inspect_swe

    # Some harnesses call tools from code that the model wrote, so no single call is proposed.
    tools = BridgedToolsSpec(name="gta", tools=bridged_tools(given), require_proposal=False)
    known = find(name)
    make = getattr(inspect_swe, known.function)
    which = installed_version(name) if known.copied else "sandbox"
    agent: Agent = make(version=which, cwd=WORKSPACE, bridged_tools=[tools], **known.options)
    return agent


def _tool(spec: ToolSpec, given: Assignment) -> Tool:
    async def execute(**arguments: JsonValue) -> str:
        try:
            return told(await given.tools.call(given.workspace, spec.name, arguments))
        except (ToolError, ToolUnavailable) as exc:
            raise ToldError(str(exc)) from exc

    info = tool_info(spec)
    return ToolDef(
        execute, name=spec.name, description=info.description, parameters=info.parameters
    ).as_tool()


def installation(program: Path) -> list[Path]:
    """The folders that a program was installed into, by npm or by hand."""
    found = []
    for path in dict.fromkeys((program, program.resolve())):
        modules = [folder for folder in path.parents if folder.name == "node_modules"]
        folder = modules[-1] if modules else path.parent
        if not folder.is_relative_to("/usr"):
            found.append(folder)
    return found
