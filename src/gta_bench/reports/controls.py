"""What tools are worth to a system: its runs under controls beside its plain run."""

from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.errors import counted
from gta_bench.metrics.control_effect import control_effect, is_plain_twin
from gta_bench.records.controls import ControlEffect, TaskEffect
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.tables import Table

EFFECT_COLUMNS = (
    *("run", "control", "units", "solved without it", "with it", "kept", "lost", "won"),
    *("spoiled replies", "faults", "recovered", "calls of distractors"),
)
LISTED = (("lost", "solved only without the control"), ("won", "solved only with the control"))
TASK_COLUMNS = ("task", "epoch", "without", "with", "what was done", "so")


class Compared(NamedTuple):
    """A run under a control and what it did; `effect` is None where its plain run is not given."""

    run: RunSummary
    plain: RunSummary | None
    effect: ControlEffect | None

    @property
    def control(self) -> str:
        """The controls in a few words."""
        return " + ".join(self.run.manifest.spec.controls)


def compare_controls(runs: Sequence[RunSummary]) -> list[Compared]:
    """Every run under a control, with the first given run that differs by the control alone."""
    compared = []
    for run in runs:
        if not run.manifest.spec.controls:
            continue
        twins = (other for other in runs if is_plain_twin(other.manifest, run.manifest))
        plain = next(twins, None)
        effect = None if plain is None else control_effect(plain.scores, run.scores)
        compared.append(Compared(run, plain, effect))
    return compared


def effect_table(compared: Sequence[Compared]) -> Table:
    """All controls, a row each."""
    return Table(
        EFFECT_COLUMNS,
        tuple(
            (one.run.name, one.control, *(str(number) for number in _numbers(one.effect)))
            for one in compared
            if one.effect is not None
        ),
    )


def task_table(effect: ControlEffect) -> Table:
    """Unit by unit."""
    return Table(
        TASK_COLUMNS,
        tuple(
            (
                task.task,
                str(task.epoch),
                f"{task.plain:.2f}",
                f"{task.controlled:.2f}",
                _done(task),
                verdict(task),
            )
            for task in effect.tasks
        ),
    )


def verdict(task: TaskEffect) -> str:
    """What the control showed of one unit, in a word."""
    return {
        (True, True): "kept",
        (True, False): "lost",
        (False, True): "won",
        (False, False): "unsolved",
    }[task.solved]


def effect_remarks(one: Compared) -> list[str]:
    """What the numbers mean, in sentences, and which tasks it was."""
    effect = one.effect
    if effect is None:
        return [
            f"control {one.control}: give the same system's run without it as well "
            "(same data, and the same tape where there is one) to see its effect."
        ]
    said = [text for kind in one.run.manifest.spec.controls for text in _sentence(kind, effect)]
    alone = one.run.manifest.spec.controls == ("no-tools",)
    for word, meaning in (("kept", "solved without tools"),) if alone else LISTED:
        ids = list(dict.fromkeys(task.task for task in effect.tasks if verdict(task) == word))
        if ids:
            said.append(f"{meaning}: tasks {', '.join(ids)}.")
    return said


def _sentence(control: str, effect: ControlEffect) -> list[str]:
    did, solved = effect.disturbance, effect.solved_plain
    match control.partition("=")[0]:
        case "no-tools":
            return [
                f"{effect.kept} of {counted(solved, 'unit')} that it solves with tools stay solved "
                f"without any; {effect.lost} do not."
            ]
        case "corrupt-replies":
            return [
                f"spoiled: {counted(did.corrupted, 'reply', 'replies')} in "
                f"{counted(effect.hit, 'unit')}; of the "
                f"{effect.hit_solved_plain} of these that it solves, "
                f"{effect.hit_solved_plain - effect.hit_kept} break."
            ]
        case "faults":
            return [
                f"it recovered from {did.recovered} of {counted(did.faults, 'fault')}; of "
                f"{counted(effect.hit_solved_plain, 'unit')} with a fault that it solves, "
                f"{effect.hit_kept} stay solved."
            ]
        case _:
            calls = counted(did.distracted, "call")
            return [f"{calls} went to distractors, in {counted(effect.hit, 'unit')}."]


def _numbers(effect: ControlEffect) -> tuple[int, ...]:
    did = effect.disturbance
    return (
        *(effect.units, effect.solved_plain, effect.solved_controlled),
        *(effect.kept, effect.lost, effect.won),
        *(did.corrupted, did.faults, did.recovered, did.distracted),
    )


def _done(task: TaskEffect) -> str:
    did = task.disturbance
    parts = [
        (did.corrupted, f"spoiled replies: {did.corrupted}"),
        (did.faults, f"faults: {did.faults}, recovered: {did.recovered}"),
        (did.distracted, f"calls of distractors: {did.distracted}"),
    ]
    return "; ".join(text for count, text in parts if count) or "-"
