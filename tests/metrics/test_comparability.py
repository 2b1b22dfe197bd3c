from datetime import timedelta

import pytest

from gta_bench.metrics.comparability import (
    describe_shared,
    find_cautions,
    find_changed_tasks,
    find_common_judges,
    find_refusals,
    find_shared_tasks,
)
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.comparison import ComparedRun, UnitFacts
from gta_bench.records.digests import TaskDigests
from gta_bench.records.run import Limits, RunManifest, System
from gta_bench.records.tape import TapeUse
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import WorkflowScores
from tests.builders import manifest as build_manifest
from tests.metrics.workflow_units import SEVEN, rows, unit

LEAVES = {"a1": 7.0, "a2": 7.0, "b": 7.0}


def manifest(**changes: object) -> RunManifest:
    workflow = {"dataset": "workflow", "mode": "workflow", "dataset_digest": "d" * 64}
    return build_manifest(**{**workflow, **changes})


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


def later(run: ComparedRun) -> ComparedRun:
    """The same again, as another run."""
    held = run.manifest.model_copy(update={"created": run.manifest.created + timedelta(hours=1)})
    return run.model_copy(update={"manifest": held})


def rescored(**changes: object) -> ComparedRun:
    return judged(scores=judged().scores.model_copy(update=changes))


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (later(judged()), None),
        (judged(), "they are the same run, or copies of it; name two runs"),
        (judged("k"), "the judges differ (j and k)"),
        (judged("j [visibility=upstream]"), "the judges differ (j and j [visibility=upstream])"),
        (unjudged(), "no judge has scored run; run `gta score run --judge MODEL`"),
        (judged(prompts="q"), "the prompts of j differ; judge both again"),
        (
            judged(manifest=manifest(dataset_digest="e" * 64)),
            "the dataset digests differ (dddddddddddd and eeeeeeeeeeee) "
            "and no task is the same in both; `gta data diff OLD NEW RUN` shows what changed",
        ),
        (judged(manifest=manifest(tasks=("9",))), "the runs have no task in common"),
        (
            rescored(scoring_version=1),
            "the scoring versions differ (4 and 1); run `gta score` on both",
        ),
        (
            rescored(leaf_threshold=6),
            "the thresholds differ ((7.0, 7.0) and (6, 7.0)); run `gta score` on both",
        ),
        (atomic(), "the datasets differ (workflow and atomic)"),
    ],
)
def test_what_forbids_a_comparison(second: ComparedRun, reason: str | None) -> None:
    assert find_refusals(judged(), second) == ([] if reason is None else [reason])


def test_atomic_runs_need_one_mode_and_one_similarity() -> None:
    assert find_refusals(atomic(), later(atomic())) == []
    assert find_common_judges(atomic(), atomic()) == ()
    assert find_refusals(atomic(), atomic("other")) == [
        "the similarity models differ (exact and other); run `gta score` on both"
    ]
    other = atomic().model_copy(update={"manifest": manifest(dataset="atomic", mode="end-to-end")})
    assert find_refusals(atomic(), other) == ["the modes differ (step and end-to-end)"]


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({}, None),
        ({"tools": "http://a"}, "tools: local and http://a"),
        ({"network": "open"}, "network: none and open"),
        ({"max_turns": 20}, "max_turns: none and 20; max_calls: none and 32"),
        ({"control_seed": 7}, "control_seed: 0 and 7"),
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
    assert "; ".join(find_cautions(judged(), other)) == (caution or "")


def test_prompts_of_both_runs_are_not_named() -> None:
    one = judged(manifest=manifest(prompts={"files": "a" * 64, "tools": "b" * 64}))
    two = judged(manifest=manifest(prompts={"files": "a" * 64, "tools": "c" * 64}))
    assert find_cautions(one, two) == ["prompts: tools bbbbbbbbbbbb and tools cccccccccccc"]


def test_a_run_that_was_judged_with_two_prompts_is_compared_with_nothing() -> None:
    """A second judging under new prompts was broken off: equal mixtures are not equal leaves."""
    mixed = judged(judge_prompts={"j": ("p", "q")})
    assert find_refusals(mixed, later(mixed)) == ["the prompts of j differ; judge both again"]


def test_limits_that_look_alike_when_rounded_are_still_told_apart() -> None:
    one = judged(manifest=manifest(limits=Limits(seconds=1800)))
    two = judged(manifest=manifest(limits=Limits(seconds=1800.001)))
    assert [said.partition(":")[0] for said in find_cautions(one, two)] == ["limits"]
    assert find_cautions(one, one) == []


def digests(**changes: object) -> TaskDigests:
    known = {"request": "a" * 32, "inputs": "b" * 32, "tools": "c" * 32, "weighs": "d" * 32}
    return TaskDigests.model_validate({**known, "leaf": {"cp1": "e" * 32}, **changes})


def of_dataset(name: str, **tasks: TaskDigests) -> ComparedRun:
    """A run over a dataset of that digest, with a finished unit of these tasks."""
    units = {(task, 1): UnitFacts(usage=Usage(), digests=one) for task, one in tasks.items()}
    held = manifest(dataset_digest=name * 64, tasks=tuple(tasks))
    return judged(manifest=held, units=units)


OTHER = "f" * 32


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"request": OTHER}, False),
        ({"inputs": OTHER}, False),
        ({"tools": OTHER}, False),
        ({"weighs": OTHER}, False),
        ({"leaf": {"cp1": OTHER}}, False),
        ({"leaf": {}}, False),
        # The first versions did not record them.
        ({"inputs": None}, True),
        ({"tools": None, "inputs": None}, True),
        ({"tools": None, "request": OTHER}, False),
    ],
)
def test_a_task_of_two_datasets_is_the_same_by_what_it_asks_and_how_it_scores(
    changes: dict[str, object], same: bool
) -> None:
    one = of_dataset("d", x=digests(), y=digests())
    two = of_dataset("e", x=digests(), y=digests(**changes), z=digests())
    assert find_shared_tasks(one, two) == ({"x", "y"} if same else {"x"})
    assert find_changed_tasks(one, two) == (set() if same else {"y"})
    assert find_refusals(one, two) == []


def test_only_where_no_task_is_the_same_two_datasets_forbid_a_comparison() -> None:
    one, two = of_dataset("d", x=digests()), of_dataset("e", x=digests(request=OTHER))
    assert find_refusals(one, two) == [
        "the dataset digests differ (dddddddddddd and eeeeeeeeeeee) and no task is the same in "
        "both; `gta data diff OLD NEW RUN` shows what changed"
    ]


def test_within_one_dataset_digests_of_tasks_are_not_looked_at() -> None:
    one, two = of_dataset("d", x=digests()), of_dataset("d", x=digests(request=OTHER))
    assert (find_shared_tasks(one, two), find_changed_tasks(one, two)) == ({"x"}, set())
    assert find_cautions(one, two) == []


def test_another_dataset_and_what_is_not_known_of_its_tasks_are_told() -> None:
    one = of_dataset("d", x=digests(), y=digests())
    two = of_dataset("e", x=digests(tools=None), y=digests())
    assert find_cautions(one, two) == [
        "dataset digests: dddddddddddd and eeeeeeeeeeee",
        "inputs or tools of 1 of the tasks: not recorded in both runs",
    ]


def test_what_two_versions_share_is_counted_with_what_the_rest_needs() -> None:
    tasks = {name: digests() for name in ("same", "asks", "leaf", "check", "weight", "alone")}
    changes: dict[str, dict[str, object]]
    changes = {"asks": {"inputs": OTHER}, "leaf": {"leaf": {"cp1": OTHER}}}
    changes |= {"1": {"leaf": {"a1": OTHER}}, "weight": {"weighs": OTHER}}
    before = {**tasks, "1": digests(leaf={"a1": "e" * 32})}
    after = {
        name: one.model_copy(update=changes.get(name, {}))
        for name, one in before.items()
        if name != "alone"
    }
    one, two = of_dataset("d", **before), of_dataset("e", **after)
    (table,) = two.scores.judges if isinstance(two.scores, WorkflowScores) else ()
    leaves = tuple(leaf.model_copy(update={"by": "check"}) for leaf in table.tasks[0].leaves)
    checked = table.model_copy(
        update={"tasks": (table.tasks[0].model_copy(update={"leaves": leaves}),)}
    )
    two = two.model_copy(update={"scores": two.scores.model_copy(update={"judges": (checked,)})})
    found = describe_shared(one, two)
    assert found is not None
    assert (found.same, found.common, found.leaves, found.n_leaves) == (2, 6, 3, 5)
    assert (found.rescore, found.judge, found.run) == (("1", "weight"), ("leaf",), ("asks",))
    assert describe_shared(one, one) is None


def test_an_atomic_task_with_another_reference_must_be_run_again() -> None:
    one, two = (
        atomic().model_copy(
            update={
                "manifest": manifest(dataset="atomic", mode="step", dataset_digest=name * 64),
                "units": {("x", 1): UnitFacts(usage=Usage(), digests=own)},
            }
        )
        for name, own in (
            ("d", digests(weighs=None)),
            ("e", digests(weighs=None, leaf={"cp1": OTHER})),
        )
    )
    found = describe_shared(one, two)
    assert found is not None and (found.same, found.run) == (0, ("x",))
