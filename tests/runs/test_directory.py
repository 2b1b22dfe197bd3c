import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gta_bench.errors import RunError
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.run import Growth, Limits, LoopLimits, RunManifest, System
from gta_bench.runs.directory import open_run, read_manifest, read_scores, write_scores
from gta_bench.runs.store import lock_folder
from tests.builders import manifest as build_manifest


def manifest(**changes: Any) -> RunManifest:
    system = System(model="openai/x", agent="react")
    return build_manifest(**{"system": system, "tasks": ("0", "1"), **changes})


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
        ({"dataset_digest": "e"}, "dataset_digest: d there, e here"),
        ({"mode": "end-to-end"}, "mode: step there, end-to-end here"),
        ({"prompts": {"a": "b"}}, "prompts: - there, a b here"),
        ({"max_turns": 20}, "max_turns: 10 there, 20 here"),
        ({"max_turns": None}, "max_turns: 10 there, none here"),
        ({"limits": Limits(seconds=1800)}, "limits: seconds 900 there, seconds 1800 here"),
        ({"limits": Limits(seconds=900, cost_usd=2)}, "limits"),
        (
            {"system": System(model="openai/y", agent="react")},
            "model: openai/x there, openai/y here",
        ),
        ({"system": System(model="openai/x", agent="gold")}, "agent: react there, gold here"),
        ({"system": System(model="openai/x", agent="react", seed=1)}, "seed: none there, 1 here"),
    ],
)
def test_another_run_does_not_touch_it(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    bounds = {"max_turns": 10, "limits": Limits(seconds=900)}
    open_run(tmp_path, manifest(**bounds))
    with pytest.raises(RunError, match=named):
        open_run(tmp_path, manifest(**{**bounds, **changes}))


def test_more_tasks_or_epochs_extend_the_run_and_fewer_leave_it_as_it_is(tmp_path: Path) -> None:
    open_run(tmp_path, manifest())
    later = datetime(2026, 12, 1, tzinfo=UTC)
    wanted = manifest(tasks=("0", "1", "2"), epochs=3, created=later)
    grown = open_run(tmp_path, wanted)
    assert read_manifest(tmp_path) == grown
    assert (grown.spec.tasks, grown.spec.epochs) == (("0", "1", "2"), 3)
    assert grown.created == manifest().created
    assert grown.growth == (Growth(when=later, tasks=("2",), epochs=1),)
    assert open_run(tmp_path, manifest(tasks=("1",))) == grown
    assert read_manifest(tmp_path) == grown


def test_a_run_that_another_command_works_on_is_not_extended(tmp_path: Path) -> None:
    held = open_run(tmp_path, manifest())
    with lock_folder(tmp_path), pytest.raises(RunError, match="Another command is working on"):
        open_run(tmp_path, manifest(tasks=("0", "1", "2")))
    assert read_manifest(tmp_path) == held


def test_a_manifest_from_before_limits_were_kept_is_read_and_continued(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(flat()))
    later = manifest(max_turns=10, limits=Limits(seconds=900))
    assert open_run(tmp_path, later).spec.loop is None


def test_the_file_has_the_options_of_the_run_beside_the_rest(tmp_path: Path) -> None:
    options = {"max_turns": 7, "epochs": 2, "controls": ["no-tools"], "notes": ["Scripted."]}
    (tmp_path / "run.json").write_text(json.dumps(flat() | options))
    kept = read_manifest(tmp_path)
    assert kept == manifest(
        max_turns=7,
        epochs=2,
        controls=("no-tools",),
        notes=("Scripted.",),
    )
    written = json.loads(kept.model_dump_json())
    assert {name: written[name] for name in (*flat(), *options)} == {
        **(flat() | options),
        "system": kept.spec.system.model_dump(),
    }
    with pytest.raises(RunError, match="max_turns"):
        open_run(tmp_path, kept.with_spec(loop=LoopLimits(max_turns=8)))


@pytest.mark.parametrize("extra", [{"loop": {"max_turns": 3}}, {"no_such_option": 1}])
def test_what_a_manifest_cannot_hold_is_refused_and_not_dropped(
    tmp_path: Path, extra: dict[str, Any]
) -> None:
    (tmp_path / "run.json").write_text(json.dumps(flat() | extra))
    with pytest.raises(RunError, match="1 field cannot be read"):
        read_manifest(tmp_path)


def flat() -> dict[str, Any]:
    return {
        "format": 1,
        "created": "2026-11-15T00:00:00Z",
        "dataset": "atomic",
        "dataset_digest": "d",
        "mode": "step",
        "system": {"model": "openai/x", "agent": "react"},
        "tasks": ["0", "1"],
    }


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
