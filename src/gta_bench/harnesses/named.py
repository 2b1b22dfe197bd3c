"""Harnesses that Inspect can drive (package inspect_swe), with our tools bridged."""

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
from inspect_ai.tool import ToolError as InspectToolError
from pydantic import JsonValue

from gta_bench.agents.contract import reply_text
from gta_bench.agents.toolcalling import make_tool_info
from gta_bench.errors import EnvironmentProblem, ToolError, ToolUnavailable, UsageError
from gta_bench.harnesses.cell import Cell
from gta_bench.harnesses.choice import HOME, WORKSPACE, Harness, Plan
from gta_bench.harnesses.contract import Assignment, HarnessOutcome
from gta_bench.packages import require_packages
from gta_bench.records.tools import ToolSpec


@dataclass(frozen=True)
class _Known:
    """A harness of inspect_swe: its function there, its program, and its npm package.

    A `copied` harness does not run where it is installed: inspect_swe installs the same version in
    the cell with npm.
    """

    function: str
    program: str
    package: str
    options: Mapping[str, Any] = field(default_factory=dict)
    copied: bool = False


DRIVER = "inspect_swe"
# A web search by the model's provider would bypass the network of the cell.
CATALOG = {
    "claude-code": _Known(
        "claude_code", "claude", "@anthropic-ai/claude-code", {"disallowed_tools": ["WebSearch"]}
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


def find_harness(name: str) -> _Known:
    """Return the harness of that name."""
    if name not in CATALOG:
        known = ", ".join(CATALOG)
        raise UsageError(f'Unknown harness {name!r}. Known: {known}; or any --harness "COMMAND".')
    return CATALOG[name]


def find_program(name: str) -> Path:
    """Return the path of a harness's program on this machine."""
    known = find_harness(name)
    program = shutil.which(known.program)
    if program is None:
        raise EnvironmentProblem(
            f"{known.program} is not installed here: npm install -g {known.package}."
        )
    return Path(program).absolute()


def read_installed_version(name: str) -> str:
    """Return the version that the program reports."""
    program = find_program(name)
    ran = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    found = re.search(r"\d+(\.\d+)+\S*", ran.stdout)
    if ran.returncode != 0 or found is None:
        raise EnvironmentProblem(f"`{program} --version` prints no version; reinstall it.")
    return found.group()


def read_driver_version() -> str:
    """Return the version of inspect_swe, which drives the harnesses."""
    require_packages("--harness-name", DRIVER, extra="harness")
    return version(DRIVER)


def plan_named(harness: Harness, given: Assignment) -> Plan:
    """Plan the cell of a named harness, with its program and everything installed with it."""
    program, workspace = find_program(harness.target), given.workspace
    installed = find_installation(program)
    return harness.plan_cell(workspace, readable=installed, search=[program.parent])


async def run_named(harness: Harness, given: Assignment, cell: Cell) -> HarnessOutcome:
    """Let the harness work on the task's prompt; its last message is the answer."""
    import inspect_swe

    # Some harnesses call tools from code that the model wrote, so no single call is proposed.
    bridged = [_make_tool(spec, given) for spec in given.tools.specs().values()]
    tools = BridgedToolsSpec(name="gta", tools=bridged, require_proposal=False)
    known = find_harness(harness.target)
    make = getattr(inspect_swe, known.function)
    which = read_installed_version(harness.target) if known.copied else "sandbox"
    agent: Agent = make(version=which, cwd=WORKSPACE, bridged_tools=[tools], **known.options)
    state = await agent(AgentState(messages=[ChatMessageUser(content=given.prompt)]))
    return HarnessOutcome(state.output.completion)


def _make_tool(spec: ToolSpec, given: Assignment) -> Tool:
    async def execute(**arguments: JsonValue) -> str:
        try:
            return reply_text((await given.tools.call(given.workspace, spec.name, arguments)).parts)
        except (ToolError, ToolUnavailable) as exc:
            raise InspectToolError(str(exc)) from exc

    info = make_tool_info(spec)
    return ToolDef(
        execute, name=spec.name, description=info.description, parameters=info.parameters
    ).as_tool()


def find_installation(program: Path) -> list[Path]:
    """Return the folders that a program was installed into, with npm or by hand."""
    found = []
    for path in dict.fromkeys((program, program.resolve())):
        modules = [folder for folder in path.parents if folder.name == "node_modules"]
        folder = modules[-1] if modules else path.parent
        if not folder.is_relative_to("/usr"):
            found.append(folder)
    return found
