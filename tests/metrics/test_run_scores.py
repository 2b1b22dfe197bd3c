from collections.abc import Mapping

import pytest

from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.run_scores import SCORING_VERSION, score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.units import AtomicUnit, UpstreamPair, Usage
from tests.metrics.atomic_variants import make_task

STEPS = (CallStep(name="OCR", arguments={"image": "inputs/a.jpg"}), AnswerStep(content="7"))


def scored(units: list[AtomicUnit], mode: Mode = "step", **options: object) -> RunScores:
    return score_run(
        units,
        mode,
        similarity=exact_or_half,
        similarity_name="exact-or-half",
        comparable=False,
        **options,  # type: ignore[arg-type]
    )


def unit(name: str, **changes: object) -> AtomicUnit:
    task = make_task(*STEPS, id=name)
    return AtomicUnit.model_validate({"task": task, "trace": reference_steps(task), **changes})


def test_a_run_of_the_reference_has_the_published_and_the_sound_maximum(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    units = [AtomicUnit(task=task, trace=reference_steps(task)) for task in atomic_tasks.values()]
    scores = scored(units)
    assert scores.compat.model_dump()["inst_acc"] == 105.6241426611797
    assert scores.compat.model_dump()["summ_acc"] == 88.66279069767442
    assert scores.strict.model_dump()["inst_acc"] == 100
    assert (scores.n, scores.n_units, scores.unscored) == (229, 229, ())
    assert scores.scoring_version == SCORING_VERSION


def test_an_end_to_end_run_of_the_reference_has_its_maximum_too(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    units = [AtomicUnit(task=task, trace=reference_trace(task)) for task in atomic_tasks.values()]
    scores = scored(units, "end-to-end")
    assert scores.compat.model_dump()["ans_acc_i"] == pytest.approx(91.2664, abs=1e-4)
    assert scores.strict.model_dump()["p_f1"] == 100


def test_replies_that_did_not_end_in_the_ordinary_way_are_counted_by_kind() -> None:
    first = unit("a", stops=("call as text", "cut off"))
    scores = scored([first, unit("b", stops=("cut off", "context"))])
    assert scores.stops == {"cut off": 2, "context": 1, "call as text": 1}
    assert scored([unit("a")]).stops == {}


def test_a_failure_that_is_not_the_systems_is_unscored_and_not_zero() -> None:
    scores = scored([unit("a"), unit("b", trace=None, failure="HTTP 500")])
    assert (scores.n, scores.n_units) == (1, 2)
    assert scores.strict.model_dump()["inst_acc"] == 100
    assert [(one.task, one.cause) for one in scores.unscored] == [("b", "HTTP 500")]


def test_a_unit_that_was_not_run_is_unscored() -> None:
    scores = scored([unit("a")], not_run=[("b", 1), ("b", 2)])
    assert (scores.n, scores.n_units) == (1, 3)
    assert {(one.task, one.epoch, one.cause) for one in scores.unscored} == {
        ("b", 1, "not run yet"),
        ("b", 2, "not run yet"),
    }


def test_a_missing_prediction_fails_under_strict_and_is_not_seen_by_compat() -> None:
    scores = scored([unit("a"), unit("b", trace=None)])
    assert (scores.n, scores.n_units) == (2, 2)
    assert scores.strict.model_dump()["inst_acc"] == 50
    assert scores.compat.n_tasks == 1
    assert [one.compat is None for one in scores.units] == [False, True]


def test_an_imported_unit_is_scored_by_compat_on_the_files_own_paths() -> None:
    task = make_task(*STEPS, id="a")
    gold = tuple(
        step.model_copy(update={"arguments": {"image": "/abs/image/a.jpg"}})
        if isinstance(step, CallStep)
        else step
        for step in reference_steps(task)
    )
    pair = UpstreamPair(trace=reference_steps(task), gold=gold)
    scores = scored([AtomicUnit(task=task, trace=reference_steps(task), upstream=pair)])
    assert scores.strict.model_dump()["arg_acc"] == 100
    assert scores.compat.model_dump()["arg_acc"] == 0


def test_what_the_units_took_is_added_up() -> None:
    first = Usage(
        model_calls=2, input_tokens=10, output_tokens=3, retries=1, seconds=0.5, cost_usd=1
    )
    second = Usage(model_calls=1, input_tokens=5, output_tokens=1, seconds=0.25, cost_usd=0.5)
    scores = scored(
        [unit("a", usage=first, models=("m-1",)), unit("b", usage=second, models=("m-1", "m-2"))]
    )
    assert scores.usage == Usage(
        model_calls=3, input_tokens=15, output_tokens=4, retries=1, seconds=0.75, cost_usd=1.5
    )
    assert scores.models == ("m-1", "m-2")


def test_the_cost_of_a_run_is_unknown_if_that_of_one_unit_is() -> None:
    priced = unit("a", usage=Usage(model_calls=1, input_tokens=5, cost_usd=0.5))
    unpriced = unit("b", usage=Usage(model_calls=1, input_tokens=5))
    assert scored([priced, unpriced]).usage.cost_usd is None


def test_a_unit_that_asked_no_model_does_not_make_the_cost_of_a_run_unknown() -> None:
    """Runs of earlier versions hold such units with a cost of None."""
    priced = unit("a", usage=Usage(model_calls=1, input_tokens=5, cost_usd=0.5))
    idle = unit("b", usage=Usage(seconds=2), trace=None, failure="the model server is down")
    assert scored([priced, idle]).usage.cost_usd == 0.5
    assert scored([idle]).usage.cost_usd is None


def test_scores_survive_writing_and_reading() -> None:
    scores = scored([unit("a"), unit("b", trace=None, failure="x")])
    assert RunScores.model_validate_json(scores.model_dump_json()) == scores
