"""The order in which a study runs its units, so that it is balanced whenever it stops.

The tasks of a dataset are in a stratified random order and divided into blocks. In each round,
every system runs the next block of every dataset, in all epochs. Systems take turns in being the
first, so that drift of a provider or a machine does not fall on the same one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from gta_bench.datasets.model import Dataset
from gta_bench.datasets.selection import sample_order, task_traits
from gta_bench.errors import is_stop_note
from gta_bench.metrics.run_scores import NOT_RUN
from gta_bench.records.attempts import UnitKey
from gta_bench.records.run import RunSpec
from gta_bench.records.scores import RunScores
from gta_bench.records.study import StudyCell
from gta_bench.records.workflow_scores import WorkflowScores

Blocks = tuple[tuple[str, ...], ...]


class RoundPart(NamedTuple):
    """The block of a round for one system on one dataset."""

    cell: StudyCell
    tasks: tuple[str, ...]


# Runs and scores what is left of a part; describes the limit that stopped it, if one did.
PlayPart = Callable[[RoundPart], str | None]


class Coverage(NamedTuple):
    """The units of a run: those with a score, and those that were tried at least."""

    scored: frozenset[UnitKey]
    tried: frozenset[UnitKey]


NOTHING = Coverage(frozenset(), frozenset())


def divide_tasks(dataset: Dataset, tasks: Collection[str], *, seed: int, size: int) -> Blocks:
    """Return the tasks in blocks; the first blocks together are a stratified sample of them."""
    traits = {name: task_traits(task) for name, task in dataset.tasks.items() if name in tasks}
    order = sample_order(traits, seed=seed)
    return tuple(tuple(order[at : at + size]) for at in range(0, len(order), size))


def list_rounds(
    cells: Sequence[StudyCell], blocks: Mapping[str, Blocks]
) -> list[tuple[RoundPart, ...]]:
    """Return the parts of every round; in each one, the next system is the first."""
    rounds = []
    for number in range(max(map(len, blocks.values()))):
        own: list[RoundPart] = []
        for dataset, parts in blocks.items():
            mine = [one for one in cells if one.dataset == dataset]
            turned = mine[number % len(mine) :] + mine[: number % len(mine)]
            if number < len(parts):
                own += (RoundPart(cell, parts[number]) for cell in turned)
        rounds.append(tuple(own))
    return rounds


def run_rounds(
    rounds: Iterable[Sequence[RoundPart]],
    is_done: Callable[[RoundPart], bool],
    find_limit: Callable[[Sequence[RoundPart]], str | None],
    play: PlayPart,
) -> str | None:
    """Run what is left of each round in turn; return the limit that ended it, None at the end.

    `find_limit` says why the parts that are left of a round should not begin.
    """
    for parts in rounds:
        left = [part for part in parts if not is_done(part)]
        if left and (reason := find_limit(left)) is not None:
            return reason
        for part in left:
            if (reason := play(part)) is not None:
                return reason
    return None


def cover(spec: RunSpec, scores: RunScores | WorkflowScores, judge: str | None = None) -> Coverage:
    """Return which units of a run have a score, and which were tried.

    A unit of GTA-Workflow has a score if that judge scored its root; without one, every judge.
    """
    units = list_units(spec.tasks, spec.epochs)
    unscored = {(one.task, one.epoch): one.cause for one in scores.unscored}
    begun = {key for key, why in unscored.items() if why != NOT_RUN and not is_stop_note(why)}
    # Scores that are older than the newest tasks say nothing about them.
    if isinstance(scores, WorkflowScores):
        own = [one for one in scores.judges if one.judge == judge]
        rows = [one.tasks for one in own or scores.judges]
        known = {(one.task, one.epoch) for tasks in rows for one in tasks}
        lacking = {(one.task, one.epoch) for tasks in rows for one in tasks if one.root is None}
    else:
        known, lacking = {(one.task, one.epoch) for one in scores.units}, set()
    scored = (units & known) - unscored.keys() - lacking
    return Coverage(frozenset(scored), frozenset(units & ((known - unscored.keys()) | begun)))


def list_units(tasks: Iterable[str], epochs: int) -> set[UnitKey]:
    """Return the units of these tasks."""
    return {(task, epoch) for task in tasks for epoch in range(1, epochs + 1)}


def count_complete(blocks: Blocks, covered: Sequence[Coverage], *, epochs: int) -> int:
    """Return how many blocks, from the first one on, every system has tried in full."""
    for number, tasks in enumerate(blocks):
        wanted = list_units(tasks, epochs)
        if not all(wanted <= one.tried for one in covered):
            return number
    return len(blocks)
