"""A tool server that dies under a harness: its task has no score, whatever it answers."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import read_units
from tests.builders import parameter, tool, workflow_task, write_workflow
from tests.harnesses.mcp_calls import calling_harness
from tests.needs import needs
from tests.served.support import TOKEN
from tests.served.test_runs import server_process

CALCULATOR = tool("Calculator", parameter("expression"))
CALL = ("Calculator", {"expression": "6*7"})
HARNESS = calling_harness([CALL, CALL], "Whatever came of it, I am done.")


@pytest.mark.slow
@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize(
    "road", [pytest.param("command", marks=[needs("bwrap"), pytest.mark.measure]), "bridged"]
)
def test_a_lost_tool_server_is_no_fault_of_the_harness(
    road: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTA_TOOLS_TOKEN", TOKEN)
    data = write_workflow(tmp_path / "data", {"1": workflow_task(tools=[CALCULATOR])}, [CALCULATOR])
    script = tmp_path / "harness.py"
    script.write_text(HARNESS)
    system = {
        "command": ["--harness", f"python3 {script}"],
        "bridged": ["--agent-bridge", "tests.harnesses.agents:careless", "--model", "mockllm/m"],
    }[road]
    out = tmp_path / "run"
    with server_process(0, lives=1) as port:
        tools = ["--tools", f"http://127.0.0.1:{port}"]
        options = ["--data", str(data), "--out", str(out), *tools, *system, "--no-preflight"]
        result = CliRunner().invoke(app, ["run", "workflow", *options])
    assert result.exit_code == 1, result.output
    (unit,) = read_units(log_folder(out), ["1"], 1, WorkflowUnit).units
    assert unit.failure is not None
    assert "tool server" in unit.failure
