"""A real local model judges the 20 stored tasks, 229 leaves, in a context of 8192 tokens."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from tests.judging.killed import judged_with_a_kill, scored
from tests.judging.recording_proxy import recording_proxy
from tests.judging.stored import settings_file
from tests.llm_server import MODEL, llm_server

pytestmark = pytest.mark.measure


def test_a_small_real_model_gives_scores_for_nearly_all_leaves(
    tmp_path: Path, data_dir: Path, loopback: None
) -> None:
    stored = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    command = ["import", "opencompass", str(stored), "--dataset", "workflow"]
    command += ["--data", str(data_dir / "gta_workflow"), "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(app, command).exit_code == 0
    with llm_server(threads=1) as url, recording_proxy(url) as proxy:
        budget = {"max_connections": 1, "timeout": 1800}
        settings_file(
            tmp_path, proxy.url, MODEL, budget=budget, pictures=False, context_tokens=8192
        )
        rows = judged_with_a_kill(tmp_path, proxy, kill_after=266, timeout=6 * 3600)
    own = {key: row for key, row in rows.items() if key.judge != "upstream"}
    causes = [getattr(row.verdict, "cause", "scored") for row in own.values()]
    print({cause: causes.count(cause) for cause in set(causes)})
    assert len(own) == 229
    assert len(scored(own)) >= 0.9 * 229
