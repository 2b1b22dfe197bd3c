"""Compares a system's runs under controls with its plain run.

One pair of runs shows what differed, but not why: two runs without any control differ, too. So the
noise floor comes first, from the epochs of the plain run, and every share has its interval.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gta_bench.errors import format_count
from gta_bench.metrics.comparability import is_plain_twin, measure_control_effect
from gta_bench.packages import missing_packages
from gta_bench.records.scores import ControlEffect, TaskEffect
from gta_bench.records.statistics import Interval
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.tables import Table, with_interval

EFFECT_COLUMNS = (
    *("run", "control", "units", "solved without it", "with it", "change", "kept", "lost", "won"),
    *("lost % (95 %)", "lost by noise % (95 %)"),
    *("corrupted replies", "faults", "recovered", "calls of distractors"),
)
NO_FLOOR = (
    "noise floor unknown: each task ran once without the control, and another such run may differ "
    "as much; use --epochs to measure it."
)
_Count = Callable[[TaskEffect], float]
LISTED = (("lost", "solved only without the control"), ("won", "solved only with the control"))
TASK_COLUMNS = ("task", "epoch", "without", "with", "what was done", "so")


class Compared(NamedTuple):
    """A run under a control and its effect, which is None if its plain run was not given."""

    run: RunSummary
    plain: RunSummary | None
    effect: ControlEffect | None

    @property
    def control(self) -> str:
        """The names of the controls."""
        return " + ".join(self.run.manifest.spec.controls)


def compare_controls(runs: Sequence[RunSummary]) -> list[Compared]:
    """Pair every run under a control with the first run that differs only by the control."""
    compared = []
    for run in runs:
        if not run.manifest.spec.controls:
            continue
        twins = (other for other in runs if is_plain_twin(other.manifest, run.manifest))
        plain = next(twins, None)
        effect = None if plain is None else measure_control_effect(plain.scores, run.scores)
        compared.append(Compared(run, plain, effect))
    return compared


def effect_table(compared: Sequence[Compared]) -> Table:
    """Return a row for each control."""
    return Table(
        EFFECT_COLUMNS,
        tuple(
            (one.run.name, one.control, *_cells(one.effect))
            for one in compared
            if one.effect is not None
        ),
    )


def task_table(effect: ControlEffect) -> Table:
    """Return a row for each unit."""
    return Table(
        TASK_COLUMNS,
        tuple(
            (
                task.task,
                str(task.epoch),
                f"{task.plain:.2f}",
                f"{task.controlled:.2f}",
                _done(task),
                name_effect(task),
            )
            for task in effect.tasks
        ),
    )


def name_effect(task: TaskEffect) -> str:
    """Return the control's effect on one unit, in a word."""
    return {
        (True, True): "kept",
        (True, False): "lost",
        (False, True): "won",
        (False, False): "unsolved",
    }[task.solved]


def effect_remarks(one: Compared) -> list[str]:
    """Describe the effect and name its tasks, the noise floor first."""
    effect = one.effect
    if effect is None:
        return [
            f"control {one.control}: to see its effect, also pass the same system's run without it "
            "(same data, and the same tape if there is one)."
        ]
    lines = _certainty(effect)
    lines += [text for kind in one.run.manifest.spec.controls for text in _sentence(kind, effect)]
    alone = one.run.manifest.spec.controls == ("no-tools",)
    for word, meaning in (("kept", "solved without tools"),) if alone else LISTED:
        ids = list(dict.fromkeys(task.task for task in effect.tasks if name_effect(task) == word))
        if ids:
            lines.append(f"{meaning}: tasks {', '.join(ids)}.")
    return lines


def measure_noise(effect: ControlEffect) -> Interval | None:
    """Return the share of units solved without the control that other such epochs do not solve.

    None if no task ran twice, or none of those was solved.
    """
    epochs: dict[str, list[bool]] = {}
    for task in effect.tasks:
        epochs.setdefault(task.task, []).append(task.solved[0])
    lost = []
    for own in epochs.values():
        solved = sum(own)
        if len(own) > 1 and solved:
            lost.append((solved * (len(own) - solved) / (len(own) - 1), float(solved)))
    return _share(lost)


def measure_change(effect: ControlEffect) -> Interval | None:
    """Return the share of units solved with the control minus without it; None without scipy."""
    if missing_packages("scipy"):
        return None
    from gta_bench.statistics.pooled import Ratio, compute_difference

    plain = _by_task(effect, lambda one: one.solved[0], lambda one: 1)
    controlled = _by_task(effect, lambda one: one.solved[1], lambda one: 1)
    if not plain:
        return None
    sides = (Ratio(*zip(*side, strict=True)) for side in (controlled, plain))
    return compute_difference(*sides).interval


def _sentence(control: str, effect: ControlEffect) -> list[str]:
    did, solved = effect.disturbance, effect.solved_plain
    kept = _of(effect, lambda one: one.kept, lambda one: one.solved[0])
    hit_kept = _of(effect, lambda one: one.hit and one.kept, _hit_and_solved)
    hit_lost = _of(effect, lambda one: one.hit and one.lost, _hit_and_solved)
    match control.partition("=")[0]:
        case "no-tools":
            return [
                f"{effect.kept} of {format_count(solved, 'unit')} solved with tools are also "
                f"solved without any{kept}; {effect.lost} are not."
            ]
        case "corrupt-replies":
            return [
                f"corrupted: {format_count(did.corrupted, 'reply', 'replies')} in "
                f"{format_count(effect.hit, 'unit')}; of the "
                f"{effect.hit_solved_plain} of these that are solved without the control, "
                f"{effect.hit_solved_plain - effect.hit_kept} are not solved with it{hit_lost}."
            ]
        case "faults":
            recovered = _of(
                effect,
                lambda one: one.disturbance.recovered,
                lambda one: one.disturbance.faults,
            )
            return [
                f"it recovered from {did.recovered} of "
                f"{format_count(did.faults, 'fault')}{recovered}; of "
                f"{format_count(effect.hit_solved_plain, 'unit')} with a fault that are solved "
                f"without the control, {effect.hit_kept} are solved with it{hit_kept}."
            ]
        case _:
            calls = format_count(did.distracted, "call")
            return [f"{calls} went to distractors, in {format_count(effect.hit, 'unit')}."]


def _certainty(effect: ControlEffect) -> list[str]:
    """Describe the effect of chance, and whether the runs differ by more; empty without scipy."""
    floor, change, lost = measure_noise(effect), measure_change(effect), _lost(effect)
    if change is None:
        return []
    lines = []
    if floor is not None and lost is not None:
        lines.append(
            f"noise floor: of units solved without the control, {_percent(floor)} are not solved "
            f"in another epoch without it; with the control {_percent(lost)} are not."
        )
    elif len({task.task for task in effect.tasks}) == len(effect.tasks):
        lines.append(NO_FLOOR)
    known = "more than chance" if change.low > 0 or change.high < 0 else "which may be chance"
    return [
        *lines,
        f"solved with the control minus without it, in points: {_points(change)}, {known}.",
    ]


def _lost(effect: ControlEffect) -> Interval | None:
    return _share(_by_task(effect, lambda one: one.lost, lambda one: one.solved[0]))


def _hit_and_solved(one: TaskEffect) -> bool:
    return one.hit and one.solved[0]


def _by_task(effect: ControlEffect, part: _Count, whole: _Count) -> list[tuple[float, float]]:
    """Return numerator and denominator of every task that has something to count."""
    sums: dict[str, tuple[float, float]] = {}
    for task in effect.tasks:
        own = sums.get(task.task, (0.0, 0.0))
        sums[task.task] = own[0] + part(task), own[1] + whole(task)
    return [own for own in sums.values() if own[1]]


def _share(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """Return a share with its interval over tasks; None if there is nothing, or without scipy."""
    if not parts or missing_packages("scipy"):
        return None
    from gta_bench.statistics.pooled import Ratio, compute_interval

    return compute_interval(Ratio(*zip(*parts, strict=True)))


def _of(effect: ControlEffect, part: _Count, whole: _Count) -> str:
    found = _share(_by_task(effect, part, whole))
    return "" if found is None else f" ({_percent(found)})"


def _percent(one: Interval) -> str:
    return f"{100 * one.estimate:.1f} %, {100 * one.low:.1f} to {100 * one.high:.1f}"


def _points(one: Interval) -> str:
    return f"{100 * one.estimate:+.1f} ({100 * one.low:+.1f} to {100 * one.high:+.1f})"


def _cells(effect: ControlEffect) -> tuple[str, ...]:
    did, change = effect.disturbance, measure_change(effect)
    return (
        *map(str, (effect.units, effect.solved_plain, effect.solved_controlled)),
        "-" if change is None else _points(change),
        *map(str, (effect.kept, effect.lost, effect.won)),
        with_interval(_lost(effect), factor=100),
        with_interval(measure_noise(effect), factor=100),
        *map(str, (did.corrupted, did.faults, did.recovered, did.distracted)),
    )


def _done(task: TaskEffect) -> str:
    did = task.disturbance
    parts = [
        (did.corrupted, f"corrupted replies: {did.corrupted}"),
        (did.faults, f"faults: {did.faults}, recovered: {did.recovered}"),
        (did.distracted, f"calls of distractors: {did.distracted}"),
    ]
    return "; ".join(text for count, text in parts if count) or "-"
