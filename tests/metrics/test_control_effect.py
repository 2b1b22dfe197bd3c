from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gta_bench.metrics.comparability import is_plain_twin, measure_control_effect
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import WhitelistAnswer
from gta_bench.records.calls import CallRecord
from gta_bench.records.run import Mode, RunManifest, System
from gta_bench.records.scores import RunScores
from gta_bench.records.steps import AnswerStep, CallStep, ReplyStep
from gta_bench.records.tape import TapeUse
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import AtomicUnit
from tests.builders import manifest as build_manifest
from tests.metrics.atomic_variants import make_task

OCR = CallStep(name="OCR", arguments={"image": "inputs/a.jpg"})
SPOILED = CallRecord(tool="OCR", status="done", seconds=0, control="corrupted")


def scores(
    answers: Mapping[str, str | Sequence[str]], *calls: CallRecord, mode: Mode = "end-to-end"
) -> RunScores:
    """A run with these answers; several of a task are its epochs."""
    units = [
        AtomicUnit(
            task=make_task(
                OCR,
                AnswerStep(content="7"),
                id=name,
                answer=WhitelistAnswer(whitelist=(("7",),)),
                tools=(ToolSpec(name="OCR"),),
            ),
            trace=(OCR, ReplyStep(), AnswerStep(content=answer)),
            calls=calls,
            epoch=epoch,
        )
        for name, given in answers.items()
        for epoch, answer in enumerate([given] if isinstance(given, str) else given, 1)
    ]
    return score_run(
        units, mode, similarity=exact_or_half, similarity_name="exact-or-half", comparable=False
    )


def manifest(**changes: Any) -> RunManifest:
    return build_manifest(
        **{
            "mode": "end-to-end",
            "system": System(model="m", agent="a"),
            "tasks": ("1",),
            **changes,
        }
    )


def tape(digest: str | None, mode: str = "replay") -> TapeUse:
    return TapeUse.model_validate({"mode": mode, "origin": "live", "digest": digest})


def test_units_are_compared_one_by_one() -> None:
    plain = scores({"kept": "7", "lost": "7", "won": "8", "neither": "8", "elsewhere": "7"})
    controlled = scores({"kept": "7", "lost": "8", "won": "7", "neither": "9"}, SPOILED)
    effect = measure_control_effect(plain, controlled)
    assert (effect.units, effect.solved_plain, effect.solved_controlled) == (4, 2, 2)
    assert (effect.kept, effect.lost, effect.won) == (1, 1, 1)
    assert (effect.hit, effect.hit_solved_plain, effect.hit_kept) == (4, 2, 1)
    assert effect.disturbance.corrupted == 4
    assert [task.task for task in effect.tasks] == ["kept", "lost", "won", "neither"]


def test_units_that_nothing_was_done_to_were_not_hit() -> None:
    assert measure_control_effect(scores({"a": "7"}), scores({"a": "7"})).hit == 0


def test_step_scores_have_nothing_that_a_control_could_change() -> None:
    step = scores({"a": "7"}, mode="step")
    assert measure_control_effect(step, step).units == 0


PLAIN = manifest(tape=tape("t"))


@pytest.mark.parametrize(
    ("plain", "controlled", "twins"),
    [
        (manifest(), manifest(controls=("no-tools",)), True),
        (PLAIN, manifest(controls=("no-tools",), tape=tape("t")), True),
        (manifest(tape=tape("t", "record")), manifest(controls=("x",), tape=tape("t")), True),
        (PLAIN, manifest(controls=("no-tools",), tape=tape("other")), False),
        (PLAIN, manifest(controls=("no-tools",)), False),
        (PLAIN, PLAIN, False),
        (manifest(controls=("x",)), manifest(controls=("x",)), False),
        (manifest(), manifest(controls=("x",), system=System(model="n", agent="a")), False),
        (manifest(), manifest(controls=("x",), tasks=("1", "2")), True),
    ],
)
def test_twins_differ_by_the_control_alone(
    plain: RunManifest, controlled: RunManifest, twins: bool
) -> None:
    assert is_plain_twin(plain, controlled) is twins


@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        (None, None, None),
        (None, tape("t"), "tape"),
        (tape("t"), None, "tape"),
        (tape("t"), tape("t"), None),
        (tape("t"), tape("u"), "tape"),
        (tape("t"), tape("t", "replay-else-live"), "tape"),
        (tape("t", "record"), tape(None, "record"), None),
    ],
)
def test_a_run_continues_on_the_same_tape_only_and_a_recording_may_have_grown(
    one: TapeUse | None, two: TapeUse | None, difference: str | None
) -> None:
    found = manifest(tape=one).difference(manifest(tape=two))
    assert (found and found.name) == difference
