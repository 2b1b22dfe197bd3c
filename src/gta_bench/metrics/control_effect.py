"""A run under a control against the same system's run without it."""

from collections.abc import Sequence

from gta_bench.metrics.table import ANS_ACC_I
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import (
    ControlEffect,
    Disturbance,
    RunScores,
    StrictEndToEndCounts,
    TaskEffect,
    UnitScore,
)


def is_plain_twin(plain: RunManifest, controlled: RunManifest) -> bool:
    """Whether the two differ by the control alone: same system, data and tool replies."""
    return (
        not plain.spec.controls
        and bool(controlled.spec.controls)
        and all(
            getattr(plain.spec, name) == getattr(controlled.spec, name)
            for name in ("dataset", "mode", "system")
        )
        and plain.dataset_digest == controlled.dataset_digest
        and plain.prompts == controlled.prompts
        and _replies(plain) == _replies(controlled)
    )


def control_effect(plain: RunScores, controlled: RunScores) -> ControlEffect:
    """Unit by unit, over those that both runs have and that can be solved at all."""
    values = {(unit.task, unit.epoch): value for unit, value in _values(plain)}
    tasks = tuple(
        TaskEffect(
            task=unit.task,
            epoch=unit.epoch,
            plain=values[unit.task, unit.epoch],
            controlled=value,
            disturbance=unit.disturbance,
        )
        for unit, value in _values(controlled)
        if (unit.task, unit.epoch) in values
    )
    hit = [task for task in tasks if task.hit]
    return ControlEffect(
        units=len(tasks),
        solved_plain=sum(task.solved[0] for task in tasks),
        solved_controlled=sum(task.solved[1] for task in tasks),
        kept=sum(task.kept for task in tasks),
        lost=sum(task.lost for task in tasks),
        won=sum(task.solved == (False, True) for task in tasks),
        hit=len(hit),
        hit_solved_plain=sum(task.solved[0] for task in hit),
        hit_kept=sum(task.kept for task in hit),
        disturbance=total_disturbance([task.disturbance for task in tasks]),
        tasks=tasks,
    )


def total_disturbance(parts: Sequence[Disturbance]) -> Disturbance:
    """The counts of all units together."""
    return Disturbance(
        **{name: sum(getattr(part, name) for part in parts) for name in Disturbance.model_fields}
    )


def _replies(manifest: RunManifest) -> str | None:
    return None if manifest.spec.tape is None else manifest.spec.tape.digest


def _values(scores: RunScores) -> list[tuple[UnitScore, float]]:
    return [
        (unit, min(1.0, value))
        for unit in scores.units
        if isinstance(unit.strict, StrictEndToEndCounts)
        for value, whole in (ANS_ACC_I.part(unit.strict),)
        if whole
    ]
