"""Real harnesses in their cells: Codex CLI from npm, the OpenAI Agents SDK from PyPI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.named import installed_version
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import read_manifest
from tests.conftest import REPOSITORY
from tests.harnesses.scripted import ANSWER, LIMITS, run_atomic, run_workflow, scripted_model

pytestmark = pytest.mark.slow
CODEX = "0.166.0"
AGENTS_SDK = "0.24.0"


@pytest.fixture(scope="module")
def codex(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codex CLI of the pinned version; the folder of its program."""
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--silent", f"@openai/codex@{CODEX}"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "node_modules" / ".bin"


@pytest.fixture(scope="module")
def agents_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK alone: what it needs is installed, in newer versions than it allows."""
    folder = tmp_path_factory.mktemp("pypi")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*install, f"openai-agents=={AGENTS_SDK}"], check=True, capture_output=True)
    return folder


def test_codex_works_on_both_datasets_with_bridged_tools_and_leaves_files(
    codex: Path,
    workflow_dir: Path,
    atomic_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{codex}:{os.environ['PATH']}")
    # Codex's list of models, for which inspect_swe has a copy, cannot be downloaded in a test.
    monkeypatch.setattr("inspect_swe._util.download._RETRY_DELAYS", ())
    harness = Harness(
        kind="named", target="codex", version=installed_version("codex"), limits=LIMITS
    )
    model, out = scripted_model(shell="exec_command"), tmp_path / "workflow"
    unit = run_workflow(harness, model, workflow_dir, "0:1", out)[0]
    assert unit.failure is None
    assert unit.answer == ANSWER
    assert [step.step for step in unit.trace] == ["call", "reply", "answer"]
    assert [(call.tool, call.status) for call in unit.calls] == [("Calculator", "done")]
    assert [file.path for file in unit.deliverables] == ["outputs/report.md"]
    kept = ArtefactStore(out / ARTEFACTS).read(unit.deliverables[0].digest)
    assert kept == b"# Report\n"
    assert unit.usage.model_calls == 3
    system = read_manifest(out).system
    assert (system.harness, system.harness_version) == ("codex", CODEX)
    atomic = run_atomic(harness, scripted_model(), atomic_dir, "1", tmp_path / "atomic")[0]
    assert atomic.failure is None
    assert [step.step for step in atomic.trace or ()] == ["call", "reply", "answer"]


def test_the_openai_agents_sdk_works_as_a_command_with_mcp_and_the_model_bridge(
    agents_sdk: Path, workflow_dir: Path, tmp_path: Path
) -> None:
    example = REPOSITORY / "examples" / "openai_agents.py"
    harness = Harness(
        kind="command",
        target=f"env PYTHONPATH={agents_sdk} {sys.executable} {example}",
        version=AGENTS_SDK,
        limits=LIMITS,
        readable=[agents_sdk],
    )
    unit = run_workflow(harness, scripted_model(), workflow_dir, "0:1", tmp_path / "run")[0]
    assert unit.failure is None
    assert unit.answer == ANSWER, unit.trace
    assert [(call.tool, call.status) for call in unit.calls] == [("Calculator", "done")]
    assert unit.usage.model_calls == 2
