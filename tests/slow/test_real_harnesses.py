"""Real harnesses in their cells: Codex CLI from npm, the OpenAI Agents SDK from PyPI."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.named import read_driver_version, read_installed_version
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import read_manifest
from tests.chat_server import chat_server
from tests.conftest import REPOSITORY
from tests.harnesses.scripted import (
    ANSWER,
    BY_SHELL,
    BY_TOOL,
    LIMITS,
    run_atomic,
    run_workflow,
    scripted_model,
)
from tests.judging.builders import honest
from tests.judging.stored import settings_file
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("bwrap")]
AGENTS_SDK = "0.24.0"


@pytest.fixture(scope="module")
def agents_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK alone: what it needs is installed, in newer versions than it allows."""
    folder = tmp_path_factory.mktemp("pypi")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*install, f"openai-agents=={AGENTS_SDK}"], check=True, capture_output=True)
    folder.chmod(0o755)  # what is lent to a harness must be readable to others
    return folder


@pytest.fixture
def config(loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings with a judge `local` that gives every leaf an 8."""
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    with chat_server(honest) as server:
        yield settings_file(tmp_path, server.url)


def report(run: Path, config: Path) -> str:
    """The run judged, and its report as text; its page lies beside it."""
    for command in (
        ["score", str(run), "--judge", "local"],
        ["report", str(run), "--html", f"{run}.html"],
        ["report", str(run)],
    ):
        result = CliRunner().invoke(app, ["--config", str(config), *command])
        assert result.exit_code == 0, result.output
    return result.output


def test_codex_works_on_both_datasets_with_bridged_tools_and_is_judged(
    codex: str, workflow_dir: Path, atomic_dir: Path, config: Path, tmp_path: Path
) -> None:
    harness = Harness(
        kind="named", target="codex", version=read_installed_version("codex"), limits=LIMITS
    )
    model, out = scripted_model(BY_SHELL), tmp_path / "workflow"
    unit = run_workflow(harness, model, workflow_dir, "0:1", out)[0]
    assert unit.failure is None
    assert unit.answer == ANSWER
    assert [step.step for step in unit.trace] == ["call", "reply", "answer"]
    assert [(call.tool, call.status) for call in unit.calls] == [("Calculator", "done")]
    assert [file.path for file in unit.deliverables] == ["outputs/report.md"]
    kept = ArtefactStore(out / ARTEFACTS).read(unit.deliverables[0].digest)
    assert kept == b"# Report\n"
    assert unit.usage.model_calls == 3
    manifest = read_manifest(out)
    assert (manifest.spec.system.harness, manifest.spec.system.harness_version) == ("codex", codex)
    assert manifest.packages["inspect_swe"] == read_driver_version()
    said = report(out, config)
    assert "strict   1/1  8.00   100.00   100.00" in said
    assert f"codex {codex} · mockllm/model; 3 model calls" in said
    page = Path(f"{out}.html").read_text(encoding="utf-8")
    assert f"codex {codex}" in page
    assert "outputs/report.md" in page
    atomic = run_atomic(harness, scripted_model(), atomic_dir, "1", tmp_path / "atomic")[0]
    assert atomic.failure is None
    assert [step.step for step in atomic.trace or ()] == ["call", "reply", "answer"]


def test_a_named_harness_that_cannot_even_begin_leaves_its_task_unscored(
    workflow_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken installation was taken for the system's own failure, and scored with nothing."""
    program = tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1.2.3 && exit\nexit 1\n')
    (program.parent / "rg").write_text("#!/bin/sh\n")
    for file in program.parent.iterdir():
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    harness = Harness(
        kind="named", target="opencode", version=read_installed_version("opencode"), limits=LIMITS
    )
    model, out = scripted_model(), tmp_path / "run"
    (unit,) = run_workflow(harness, model, workflow_dir, "0:1", out)
    assert unit.failure is not None
    assert "opencode failed before it asked its model: " in unit.failure


def test_the_openai_agents_sdk_works_as_a_command_with_mcp_and_the_model_bridge_and_is_judged(
    agents_sdk: Path, workflow_dir: Path, config: Path, tmp_path: Path
) -> None:
    example = REPOSITORY / "examples" / "openai_agents.py"
    harness = Harness(
        kind="command",
        target=f"env PYTHONPATH={agents_sdk} {sys.executable} {example}",
        version=AGENTS_SDK,
        limits=LIMITS,
        readable=[agents_sdk],
    )
    out = tmp_path / "run"
    unit = run_workflow(harness, scripted_model(BY_TOOL), workflow_dir, "0:1", out)[0]
    assert unit.failure is None
    assert unit.answer == ANSWER, unit.trace
    assert [(call.tool, call.status) for call in unit.calls] == [
        ("Calculator", "done"),
        ("CsvFileGenerator", "done"),
    ]
    assert [file.path for file in unit.deliverables] == ["outputs/table.csv"]
    assert unit.usage.model_calls == 3
    said = report(out, config)
    assert "strict   1/1  8.00   100.00   100.00" in said
    assert f"{example} {AGENTS_SDK} · mockllm/model; 3 model calls" in said
    assert "outputs/table.csv" in Path(f"{out}.html").read_text(encoding="utf-8")
