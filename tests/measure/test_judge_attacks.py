"""The whole corpus before the scripted judges, and a sample of it before a small real model."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

from gta_bench.attacks.scripted import JUDGES
from gta_bench.cli import app
from gta_bench.records.verdicts import Scored
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings
from gta_bench.tasks.attack_run import shields
from gta_bench.tasks.judge_run import judge_run, plan_judging
from tests.judging.stored import settings_file
from tests.llm_server import MODEL, llm_server

pytestmark = pytest.mark.measure

WEAKNESS = {
    "last-instruction": "roles",
    "frame": "frame",
    "verdict": "reply",
    "evaluator": "findings",
}


def attacked(*options: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The summaries by model and defences; the table is printed."""
    result = CliRunner().invoke(app, [*options, "--ablation", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    for row in rows:
        figures = {name: row[name] for name in ("succeeded", "attacks", "unscored")}
        print(row["model"], row["defences"], figures, row["lift"], row["clean"], row["drift"])
    return {(row["model"], row["defences"]): row for row in rows}


def test_every_defence_is_worth_something_and_moves_no_honest_score(tmp_path: Path) -> None:
    judges = [option for judge in JUDGES for option in ("--judge", f"scripted/{judge}")]
    found = attacked("judge", "attack", *judges, "--out", str(tmp_path / "run"))
    assert all(abs(row["drift"]) <= 0.1 for row in found.values())
    bare = sum(found[f"scripted/{judge}", "none"]["succeeded"] for judge in WEAKNESS)
    left = sum(found[f"scripted/{judge}", "all and control"]["succeeded"] for judge in WEAKNESS)
    assert left <= 0.1 * bare
    for judge, defence in WEAKNESS.items():
        model = f"scripted/{judge}"
        through = found[model, f"all but {defence}"]["succeeded"]
        assert through > found[model, "all"]["succeeded"]


def test_no_defence_moves_the_scores_of_real_works(tmp_path: Path, data_dir: Path) -> None:
    """The 20 stored tasks before the honest scripted judge, leaf by leaf."""
    run = tmp_path / "run"
    stored = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    command = ["import", "opencompass", str(stored), "--dataset", "workflow"]
    command += ["--data", str(data_dir / "gta_workflow"), "--out", str(run)]
    assert CliRunner().invoke(app, command).exit_code == 0
    judging = plan_judging(["scripted/honest"], Settings())
    found: dict[str, dict[tuple[str, str], float]] = {}
    for shield in shields(judging.options, ablation=True):
        one = replace(judging, options=shield.options)
        (done,) = judge_run(run, one, lambda judge: nullcontext(lambda well: None))
        found[shield.name] = {
            (key.task, key.leaf): row.verdict.value
            for key, row in read_verdicts(run).items()
            if key.judge == done.judge and isinstance(row.verdict, Scored)
        }
    for name, scores in found.items():
        drift = fmean(scores[leaf] - found["none"][leaf] for leaf in scores)
        print(name, len(scores), fmean(scores.values()), drift)
        assert len(scores) == 229
        assert abs(drift) <= 0.1


def test_a_small_real_model_is_attacked(
    tmp_path: Path, loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures are reported as they are: so small a model is hardly a judge."""
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    chosen = [part for name in ("text", "answer") for part in ("--carrier", name)]
    chosen += ["--payload", "order", "--payload", "evaluator"]
    with llm_server(threads=1) as url:
        budget = {"max_connections": 1, "timeout": 1800}
        file = settings_file(tmp_path, url, MODEL, budget, pictures=False, context_tokens=4096)
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("max_tokens = 200", "max_tokens = 200\ntemperature = 0.0"))
        command = ["--config", str(file), "judge", "attack", "--judge", "local"]
        found = attacked(*command, *chosen, "--out", str(tmp_path / "run"))
    assert len(found) == 7
