"""One scripted agent by four roads gives a judge the same: our loop, MCP, bridge, a folder."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.agents.contract import Decide, DecidedStep, Decision, History, Setup
from gta_bench.cli import app
from gta_bench.harnesses.choice import UNCONFINED
from gta_bench.harnesses.in_process import AgentTask
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import WorkflowUnit
from gta_bench.running.judge_run import prepare_evidence
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings
from tests.chat_server import ChatServer
from tests.harnesses.mcp_calls import calling_harness
from tests.judging.builders import honest
from tests.judging.stored import settings_file
from tests.needs import require_programs

SCRIPT = (
    ("Calculator", {"expression": "6*7"}),
    ("CsvFileGenerator", {"filename": "table", "data_str": '[["a","b"],[1,2]]'}),
    ("Calculator", {"expression": "1/0"}),
)
ANSWER = "The table is in outputs/table.csv."
HERE = "tests.harnesses.test_equal_roads"
HARNESS = calling_harness(SCRIPT, ANSWER)


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


def gta(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def units(out: Path) -> list[WorkflowUnit]:
    manifest = read_manifest(out)
    found = read_units(
        log_folder(out), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
    ).units
    assert len(found) == 2
    return list(found)


def write_folder(root: Path, out: Path) -> Path:
    """What a run delivered, as a folder of finished results."""
    store = ArtefactStore(out / ARTEFACTS)
    for unit in units(out):
        files = root / unit.task.id / "files"
        files.mkdir(parents=True)
        (files.parent / "final.txt").write_text(f"{unit.answer}\n")
        for file in unit.deliverables:
            (files / Path(file.path).name).write_bytes(store.read(file.digest))
    return root


@pytest.fixture(scope="module")
def runs(workflow_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    require_programs("bwrap")
    base = tmp_path_factory.mktemp("equal")
    made = {name: base / name for name in ("agent", "command", "bridged", "folder")}
    script = base / "harness.py"
    script.write_text(HARNESS)
    systems = {
        "agent": ("--agent", f"{HERE}:scripted", "--model", "mockllm/model"),
        "command": ("--harness", f"python3 {script}"),
        "bridged": ("--agent-bridge", f"{HERE}:bridged", "--model", "mockllm/model"),
    }
    data: list[str | Path] = ["--data", workflow_dir, "--tasks", "0:2", "--out"]
    for name, system in systems.items():
        gta("run", "workflow", *data, made[name], *system)
    source = write_folder(base / "source", made["agent"])
    gta("import", "folder", source, *data, made["folder"])
    return made


@pytest.mark.parametrize("road", ["command", "bridged"])
def test_a_harness_with_our_tools_does_and_leaves_what_the_agent_does(
    runs: Mapping[str, Path], road: str
) -> None:
    for first, second in zip(units(runs["agent"]), units(runs[road]), strict=True):
        assert [file.path for file in first.deliverables] == ["outputs/table.csv"]
        assert second.deliverables == first.deliverables
        assert second.inputs == first.inputs
        assert second.answer == first.answer == ANSWER
        assert second.trace == first.trace
        assert [(call.tool, call.status, call.message) for call in second.calls] == [
            (call.tool, call.status, call.message) for call in first.calls
        ]


def test_a_python_agent_is_noted_as_unconfined(runs: Mapping[str, Path]) -> None:
    manifest = read_manifest(runs["bridged"])
    assert manifest.spec.network == "open"
    assert manifest.notes[-1] == UNCONFINED


def evidence_digests(run: Path) -> list[str]:
    found = units(run)
    made = asyncio.run(prepare_evidence(run, found, Settings()))
    shown = [made.made(unit) for unit in found]
    assert [len(one.deliverables) if one else 0 for one in shown] == [1, 1]
    return [one.digest for one in shown if one is not None]


@pytest.mark.parametrize("road", ["command", "bridged", "folder"])
def test_the_evidence_has_the_same_digests(runs: Mapping[str, Path], road: str) -> None:
    assert evidence_digests(runs[road]) == evidence_digests(runs["agent"])


@pytest.mark.slow
def test_a_judge_is_asked_the_same_and_gives_the_same_verdicts(
    runs: Mapping[str, Path], judge: ChatServer, tmp_path: Path
) -> None:
    requests: list[str] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(json.dumps(request, sort_keys=True))
        return honest(request)

    judge.reply = reply
    config = settings_file(tmp_path, judge.url)
    asked, given = [], []
    for run in runs.values():
        gta("--config", config, "score", run, "--judge", "local")
        asked.append(sorted(requests))
        given.append({key: row.verdict for key, row in read_verdicts(run).items()})
        requests.clear()
    assert len(asked[0]) == len(given[0]) > 0
    assert all(one == asked[0] for one in asked)
    assert all(one == given[0] for one in given)
