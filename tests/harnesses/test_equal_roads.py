"""One scripted agent by three roads gives a judge the same: in process, by MCP, by the bridge."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.agents.contract import Decide, DecidedStep, Decision, Setup
from gta_bench.agents.history import History
from gta_bench.cli import app
from gta_bench.harnesses.in_process import AgentTask
from gta_bench.records.run import WorkflowUnit
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_workflow_units

SCRIPT = (
    ("Calculator", {"expression": "6*7"}),
    ("CsvFileGenerator", {"filename": "table", "data_str": '[["a","b"],[1,2]]'}),
    ("Calculator", {"expression": "1/0"}),
)
ANSWER = "The table is in outputs/table.csv."
HARNESS = f"""
import json, os, urllib.request

for name, arguments in {SCRIPT!r}:
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
print({ANSWER!r})
"""


def scripted(setup: Setup) -> Decide:
    """The script as an agent of ours."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        steps: list[DecidedStep] = [
            *(CallStep(name=name, arguments=dict(arguments)) for name, arguments in SCRIPT),
            AnswerStep(content=ANSWER),
        ]
        return Decision(step=steps[history.position])

    return decide


async def bridged(task: AgentTask) -> str:
    """The script as a Python agent."""
    for name, arguments in SCRIPT:
        await task.tool(name)(dict(arguments))
    return ANSWER


def run(data: Path, out: Path, *system: str) -> list[WorkflowUnit]:
    options = ["--data", str(data), "--tasks", "0:2", "--out", str(out)]
    result = CliRunner().invoke(app, ["run", "workflow", *options, *system])
    assert result.exit_code == 0, result.output
    manifest = read_manifest(out)
    units = read_workflow_units(log_folder(out), manifest.tasks, manifest.epochs).units
    assert len(units) == 2
    return list(units)


@pytest.fixture(scope="module")
def in_process(workflow_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[WorkflowUnit]:
    out = tmp_path_factory.mktemp("equal") / "agent"
    agent = "tests.harnesses.test_equal_roads:scripted"
    return run(workflow_dir, out, "--agent", agent, "--model", "mockllm/model")


def assert_same(one: list[WorkflowUnit], two: list[WorkflowUnit]) -> None:
    for first, second in zip(one, two, strict=True):
        assert [file.path for file in first.deliverables] == ["outputs/table.csv"]
        assert second.deliverables == first.deliverables
        assert second.inputs == first.inputs
        assert second.answer == first.answer == ANSWER
        assert second.trace == first.trace
        assert [(call.tool, call.status, call.message) for call in second.calls] == [
            (call.tool, call.status, call.message) for call in first.calls
        ]


def test_a_command_over_mcp_gives_what_the_agent_in_process_gives(
    in_process: list[WorkflowUnit], workflow_dir: Path, tmp_path: Path
) -> None:
    script = tmp_path / "harness.py"
    script.write_text(HARNESS)
    assert_same(in_process, run(workflow_dir, tmp_path / "run", "--harness", f"python3 {script}"))


def test_a_python_agent_by_the_bridge_gives_the_same(
    in_process: list[WorkflowUnit], workflow_dir: Path, tmp_path: Path
) -> None:
    agent = ("--agent-bridge", "tests.harnesses.test_equal_roads:bridged")
    assert_same(in_process, run(workflow_dir, tmp_path / "run", *agent, "--model", "mockllm/model"))
    manifest = read_manifest(tmp_path / "run")
    assert manifest.network == "open"
    assert manifest.notes[-1] == "The agent ran unconfined in the process of the run."
