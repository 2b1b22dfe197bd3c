"""Select the tasks of a dataset that a command uses: named ones, the first ones, or a sample."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from gta_bench.datasets.digest import describe_digests, task_digests
from gta_bench.datasets.model import Dataset
from gta_bench.errors import UsageError, join_first
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.digests import content_digest
from gta_bench.records.workflow import WorkflowTask

# The strata that a task belongs to, from coarse to fine.
Traits = tuple[str, ...]


class Selection(NamedTuple):
    """How a command selects its tasks, by at most one option; by default, all tasks."""

    tasks: str | None = None
    ids: tuple[str, ...] = ()
    limit: int | None = None
    sample: int | None = None
    sample_seed: int | None = None


class Subset(NamedTuple):
    """Tasks of a dataset under a name that depends on the choice and the contents of the tasks."""

    name: str
    tasks: tuple[str, ...]


def choose_tasks(dataset: Dataset, selection: Selection) -> tuple[str, ...]:
    """The tasks that a command uses; UsageError for two options at once."""
    given = {
        "--tasks": selection.tasks is not None,
        "--task": bool(selection.ids),
        "--limit": selection.limit is not None,
        "--sample": selection.sample is not None,
    }
    used = [name for name, is_used in given.items() if is_used]
    if len(used) > 1:
        raise UsageError(f"{used[0]} and {used[1]} exclude each other. Use only one of them.")
    if selection.sample is not None:
        return sample_tasks(dataset, selection.sample, seed=selection.sample_seed or 0)
    if selection.sample_seed is not None:
        raise UsageError("--sample-seed needs --sample N.")
    if selection.limit is not None:
        return tuple(dataset.tasks)[: selection.limit]
    if selection.ids:
        return _require_known(selection.ids, tuple(dataset.tasks), "--task")
    return select_tasks(dataset.tasks, selection.tasks)


def select_tasks(known: Iterable[str], selection: str | None) -> tuple[str, ...]:
    """Ids by a range of positions (`0:10`) or a list of ids (`3,5,7`); None selects all."""
    ids = tuple(known)
    if selection is None:
        return ids
    start, colon, stop = selection.partition(":")
    if not colon:
        named = [part.strip() for part in selection.split(",")]
        return _require_known(named, ids, "--tasks")
    if not all(part == "" or part.isdecimal() for part in (start, stop)):
        raise UsageError(f"--tasks {selection!r} is not a range. Write it as 0:10.")
    chosen = ids[int(start or 0) : int(stop) if stop else None]
    if not chosen:
        raise UsageError(f"--tasks {selection!r} selects no task; the dataset has {len(ids)}.")
    return chosen


def sample_tasks(dataset: Dataset, size: int, *, seed: int = 0) -> tuple[str, ...]:
    """A stratified sample in the dataset's order; a larger one with the same seed contains it.

    Strata are the kind of answer and the number of steps (GTA-Atomic), or the category and the
    number of leaves (GTA-Workflow).
    """
    known = len(dataset.tasks)
    if size > known:
        raise UsageError(f"A sample of {size} is too large; the dataset has {known} tasks.")
    traits = {name: task_traits(task) for name, task in dataset.tasks.items()}
    chosen = {*sample_order(traits, seed=seed)[:size]}
    return tuple(task for task in dataset.tasks if task in chosen)


def name_subset(dataset: Dataset, tasks: Sequence[str], label: str) -> Subset:
    """The tasks as a subset whose name ends with a digest of their contents and scoring."""
    contents: dict[str, JsonValue] = {
        task: describe_digests(task_digests(dataset, task)) for task in tasks
    }
    return Subset(f"{label}-{content_digest(contents)[:8]}", tuple(tasks))


def task_traits(task: AtomicTask | WorkflowTask) -> Traits:
    """The strata of a task, whose shares a sample keeps."""
    if isinstance(task, AtomicTask):
        kind = "none" if task.answer is None else task.answer.kind
        return kind, str(len(task.steps))
    return str(task.category), str(len(list(task.leaves())))


def sample_order(traits: Mapping[str, Traits], *, seed: int) -> list[str]:
    """All ids in an order in which every prefix is a stratified sample.

    >>> sample_order({"a": ("x",), "b": ("x",), "c": ("y",), "d": ("y",)}, seed=1)
    ['a', 'c', 'b', 'd']
    """
    return _spread(list(traits), traits, 0, seed)


def _spread(ids: Sequence[str], traits: Mapping[str, Traits], level: int, seed: int) -> list[str]:
    """The ids with the members of each group at equal distances, from a random start.

    In every prefix, each group then has its share to within one.
    """
    if not ids or level == len(traits[ids[0]]):
        return sorted(ids, key=lambda one: _draw(seed, "task", one))
    groups: dict[Traits, list[str]] = {}
    for one in ids:
        groups.setdefault(traits[one][: level + 1], []).append(one)
    placed: list[tuple[float, float, str]] = []
    for group, members in groups.items():
        start = _draw(seed, "group", *group)
        for rank, one in enumerate(_spread(members, traits, level + 1, seed)):
            placed.append(((rank + start) / len(members), _draw(seed, "task", one), one))
    return [one for _, _, one in sorted(placed)]


def _draw(seed: int, *parts: str) -> float:
    """A pseudorandom number from 0 to 1, the same on every machine and version of Python."""
    digest = hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def _require_known(named: Sequence[str], ids: Sequence[str], option: str) -> tuple[str, ...]:
    """These ids, each once; UsageError if the dataset does not have one."""
    for task in named:
        if task not in ids:
            raise UsageError(
                f"{option}: the dataset has no task {task!r}. Its ids: {join_first(ids)}."
            )
    return tuple(dict.fromkeys(named))
