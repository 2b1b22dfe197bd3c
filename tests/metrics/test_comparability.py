from datetime import UTC, datetime

import pytest

from gta_bench.metrics.comparability import cautions, common_judges, refusals
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.comparison import ComparedRun
from gta_bench.records.run import Limits, RunManifest, System
from gta_bench.records.tape import TapeUse
from tests.metrics.workflow_units import SEVEN, rows, unit

LEAVES = {"a1": 7.0, "a2": 7.0, "b": 7.0}


def manifest(**changes: object) -> RunManifest:
    return RunManifest.model_validate(
        {
            "created": datetime(2026, 11, 15, tzinfo=UTC),
            "dataset": "workflow",
            "dataset_digest": "d" * 64,
            "mode": "workflow",
            "system": System(model="m", agent="toolcalling"),
            "tasks": ("1", "2"),
            **changes,
        }
    )


def judged(judge: str = "j", prompts: str = "p", **changes: object) -> ComparedRun:
    scores = score_workflow([unit()], rows(LEAVES, judge=judge), thresholds=SEVEN)
    made = {"name": "run", "scores": scores, "units": {}, "judge_prompts": {judge: (prompts,)}}
    return ComparedRun.model_validate({**made, "manifest": manifest(), **changes})


def atomic(similarity: str = "exact") -> ComparedRun:
    scores = score_run([], "step", similarity=exact, similarity_name=similarity, comparable=False)
    held = manifest(dataset="atomic", mode="step")
    return ComparedRun(name="run", manifest=held, scores=scores, units={})


def unjudged() -> ComparedRun:
    scores = score_workflow([unit()], (), thresholds=SEVEN)
    return ComparedRun(name="run", manifest=manifest(), scores=scores, units={})


def rescored(**changes: object) -> ComparedRun:
    return judged(scores=judged().scores.model_copy(update=changes))


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (judged(), None),
        (judged("k"), "the judges differ (j and k)"),
        (judged("j [visibility=upstream]"), "the judges differ (j and j [visibility=upstream])"),
        (unjudged(), "no judge has seen run; `gta score run --judge MODEL`"),
        (judged(prompts="q"), "the prompts of j differ; judge both again"),
        (
            judged(manifest=manifest(dataset_digest="e" * 64)),
            "the dataset digests differ (dddddddddddd and eeeeeeeeeeee)",
        ),
        (judged(manifest=manifest(tasks=("9",))), "the runs have no task in common"),
        (
            rescored(scoring_version=1),
            "the scoring versions differ (2 and 1); run `gta score` on both",
        ),
        (
            rescored(leaf_threshold=6),
            "the thresholds differ ((7.0, 7.0) and (6, 7.0)); run `gta score` on both",
        ),
        (atomic(), "the datasets differ (workflow and atomic)"),
    ],
)
def test_what_forbids_a_comparison(second: ComparedRun, reason: str | None) -> None:
    assert refusals(judged(), second) == ([] if reason is None else [reason])


def test_atomic_runs_need_one_mode_and_one_similarity() -> None:
    assert refusals(atomic(), atomic()) == []
    assert common_judges(atomic(), atomic()) == ()
    assert refusals(atomic(), atomic("other")) == [
        "the similarity models differ (exact and other); run `gta score` on both"
    ]
    other = atomic().model_copy(update={"manifest": manifest(dataset="atomic", mode="end-to-end")})
    assert refusals(atomic(), other) == ["the modes differ (step and end-to-end)"]


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({}, None),
        ({"tools": "http://a"}, "tools: local and http://a"),
        ({"network": "open"}, "network: none and open"),
        ({"max_turns": 20}, "max_turns: none and 20"),
        (
            {"limits": Limits(seconds=1800, cost_usd=0.5)},
            "limits: none and seconds 1800, cost_usd 0.5",
        ),
        ({"controls": ("faults=0.2",)}, "controls: none and faults=0.2"),
        ({"prompts": {"react": "0123456789abcdef"}}, "prompts: - and react 0123456789ab"),
        (
            {"system": System(model="m", agent="toolcalling", images="attached")},
            "images: path and attached",
        ),
        (
            {"tape": TapeUse(mode="replay", digest="f" * 64, origin="live")},
            "tape: none and replay ffffffffffffffff",
        ),
    ],
)
def test_what_must_be_told(changes: dict[str, object], caution: str | None) -> None:
    other = judged(manifest=manifest(**changes))
    assert cautions(judged(), other) == ([] if caution is None else [caution])


def test_a_run_that_was_judged_with_two_prompts_is_compared_with_nothing() -> None:
    """A second judging under new prompts was broken off: equal mixtures are not equal leaves."""
    mixed = judged(judge_prompts={"j": ("p", "q")})
    assert refusals(mixed, mixed) == ["the prompts of j differ; judge both again"]
