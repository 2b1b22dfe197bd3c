import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gta_bench.errors import RunError
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.run import Limits, RunManifest, System
from gta_bench.runs.directory import open_run, read_manifest, read_scores, write_scores


def manifest(**changes: Any) -> RunManifest:
    values: dict[str, Any] = {
        "created": datetime(2026, 1, 1, tzinfo=UTC),
        "dataset": "atomic",
        "dataset_digest": "d",
        "mode": "step",
        "system": System(model="openai/x", agent="react"),
        "tasks": ("0", "1"),
    }
    return RunManifest(**{**values, **changes})


def test_a_new_run_keeps_its_manifest(tmp_path: Path) -> None:
    wanted = manifest()
    assert open_run(tmp_path / "run", wanted) == wanted
    assert read_manifest(tmp_path / "run") == wanted


def test_the_same_command_continues_the_run_that_is_there(tmp_path: Path) -> None:
    first = open_run(tmp_path, manifest())
    later = manifest(created=datetime(2026, 2, 2, tzinfo=UTC), packages={"gta-bench": "9"})
    assert open_run(tmp_path, later) == first


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"dataset_digest": "e"}, "dataset_digest"),
        ({"mode": "end-to-end"}, "mode"),
        ({"tasks": ("0",)}, "tasks"),
        ({"epochs": 2}, "epochs"),
        ({"prompts": {"a": "b"}}, "prompts"),
        ({"max_turns": 20}, "max_turns"),
        ({"max_turns": None}, "max_turns"),
        ({"limits": Limits(seconds=1800)}, "limits"),
        ({"limits": Limits(seconds=900, cost_usd=2)}, "limits"),
        ({"system": System(model="openai/y", agent="react")}, "model 'openai/x'"),
        ({"system": System(model="openai/x", agent="gold")}, "agent 'react'"),
        ({"system": System(model="openai/x", agent="react", seed=1)}, "seed None"),
    ],
)
def test_another_run_does_not_touch_it(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    bounds = {"max_turns": 10, "limits": Limits(seconds=900)}
    open_run(tmp_path, manifest(**bounds))
    with pytest.raises(RunError, match=named):
        open_run(tmp_path, manifest(**{**bounds, **changes}))


def test_a_manifest_from_before_limits_were_kept_is_read_and_continued(tmp_path: Path) -> None:
    old = json.loads(manifest().model_dump_json(exclude={"max_turns", "limits"}))
    (tmp_path / "run.json").write_text(json.dumps(old))
    later = manifest(max_turns=10, limits=Limits(seconds=900))
    assert open_run(tmp_path, later).max_turns is None


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(RunError, match="is not empty and is not a run"):
        open_run(tmp_path, manifest())


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run"):
        read_manifest(tmp_path)
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="fields cannot be read"):
        read_manifest(tmp_path)


def test_scores_are_kept_and_their_lack_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run `gta score"):
        read_scores(tmp_path)
    scores = score_run([], "step", similarity=exact_or_half, similarity_name="x", comparable=False)
    write_scores(tmp_path, scores)
    assert read_scores(tmp_path) == scores
    (tmp_path / "scores.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be read"):
        read_scores(tmp_path)
