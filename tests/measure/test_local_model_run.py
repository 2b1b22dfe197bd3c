"""A small real model as agent and as judge of five real Workflow tasks, from start to report."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gta_bench.runs.verdicts import read_verdicts
from tests.judging.killed import scored
from tests.judging.stored import settings_file
from tests.llm_server import MODEL, llm_server

pytestmark = pytest.mark.measure

TASKS = "7,71,111,122,127"
LEAVES = 41


def test_from_the_first_call_to_the_report(
    tmp_path: Path, workflow_dir: Path, loopback: None
) -> None:
    with llm_server(threads=1) as url:
        settings_file(
            tmp_path,
            url,
            MODEL,
            budget={"max_connections": 1, "timeout": 1800},
            pictures=False,
            context_tokens=4096,
        )
        command = ["run", "workflow", "--model", "local", "--judge", "local", "--agent", "react"]
        command += ["--max-turns", "3", "--tasks", TASKS, "--data", str(workflow_dir)]
        ran = subprocess.run(
            [sys.executable, "-m", "gta_bench.cli", *command, "--out", "run"],
            cwd=tmp_path,
            env={**os.environ, "GTA_TEST_KEY_A": "none"},
            capture_output=True,
            text=True,
            check=False,
        )
    print(ran.stdout, ran.stderr)
    assert ran.returncode in (0, 1), "scored, or with leaves left to judge"
    rows = read_verdicts(tmp_path / "run")
    print(Counter(getattr(row.verdict, "cause", "scored") for row in rows.values()))
    assert len(rows) == LEAVES
    assert len(scored(rows)) >= 0.9 * LEAVES
    assert "GTA-Workflow" in ran.stdout
