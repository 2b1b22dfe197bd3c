"""Whether two runs measure the same thing: what forbids a comparison, and what must be said."""

from collections.abc import Iterator, Sequence
from typing import Final

from gta_bench.records.comparison import ComparedRun
from gta_bench.records.digests import TaskDigests
from gta_bench.records.run import System, compare_specs, show_setting
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores

# Options that say which system it was, or that forbid a comparison: all others are ways in which
# two systems may not have had the same chances, and a reader must know of them.
_NO_CAUTION: Final = frozenset(
    {
        *("dataset", "mode", "tasks", "similarity", "judges"),
        *(name for name in System.model_fields if name != "images"),
    }
)


def refusals(first: ComparedRun, second: ComparedRun) -> list[str]:
    """Why the two cannot be compared; empty where they can."""
    # A copy that was judged again has other scores, and may be compared.
    if first.model_copy(update={"name": second.name}) == second:
        return ["they are the same run, or copies of it; name two runs"]
    return list(_refusals(first, second))


def cautions(first: ComparedRun, second: ComparedRun) -> list[str]:
    """What else than the system differs."""
    return list(_cautions(first, second))


def shared_tasks(first: ComparedRun, second: ComparedRun) -> set[str]:
    """The tasks that both runs have and that ask and score the same in both.

    Within one dataset every task does. Of two datasets a task is known by a unit of it in each;
    one without is taken to be the same, so that what is missing of it is seen, if any is.
    """
    common = {*first.manifest.spec.tasks} & {*second.manifest.spec.tasks}
    if first.manifest.dataset_digest == second.manifest.dataset_digest:
        return common
    changed = changed_tasks(first, second)
    known_alike = _both_digests(first, second).keys() - changed
    return common - changed if known_alike else set()


def changed_tasks(first: ComparedRun, second: ComparedRun) -> set[str]:
    """The tasks of both runs that ask or score something else in the other's dataset."""
    if first.manifest.dataset_digest == second.manifest.dataset_digest:
        return set()
    both = _both_digests(first, second)
    return {task for task, (one, two) in both.items() if not one.agrees(two)}


def common_judges(first: ComparedRun, second: ComparedRun) -> tuple[str, ...]:
    """The judges that saw both runs, by name: the name holds visibility and all other options."""
    return tuple(sorted(set(_judges(first)) & set(_judges(second))))


def _refusals(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    one, two = first.manifest, second.manifest
    if one.spec.dataset != two.spec.dataset:
        yield _differ("datasets", one.spec.dataset, two.spec.dataset)
        return
    if one.spec.mode != two.spec.mode:
        yield _differ("modes", one.spec.mode, two.spec.mode)
    if first.scores.scoring_version != second.scores.scoring_version:
        versions = (first.scores.scoring_version, second.scores.scoring_version)
        yield f"{_differ('scoring versions', *versions)}; run `gta score` on both"
    if isinstance(first.scores, WorkflowScores) and isinstance(second.scores, WorkflowScores):
        yield from _judge_refusals(first, second)
        ends = [(one.leaf_threshold, one.root_threshold) for one in (first.scores, second.scores)]
        if ends[0] != ends[1]:
            yield f"{_differ('thresholds', *ends)}; run `gta score` on both"
    if isinstance(first.scores, RunScores) and isinstance(second.scores, RunScores):
        likeness = first.scores.similarity, second.scores.similarity
        if likeness[0] != likeness[1]:
            yield f"{_differ('similarity models', *likeness)}; run `gta score` on both"
    if not set(one.spec.tasks) & set(two.spec.tasks):
        yield "the runs have no task in common"
    elif not shared_tasks(first, second):
        digests = one.dataset_digest[:12], two.dataset_digest[:12]
        yield f"{_differ('dataset digests', *digests)} and no task is the same in both"


def _judge_refusals(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    unseen = [run.name for run in (first, second) if not _judges(run)]
    if unseen:
        yield f"no judge has seen {unseen[0]}; `gta score {unseen[0]} --judge MODEL`"
    elif not common_judges(first, second):
        yield _differ("judges", _listed(_judges(first)), _listed(_judges(second)))
    for judge in common_judges(first, second):
        asked = first.judge_prompts.get(judge, ()), second.judge_prompts.get(judge, ())
        # A run may have verdicts of two prompts where its second judging was broken off.
        if len({*asked[0], *asked[1]}) > 1:
            yield f"the prompts of {judge} differ; judge both again"


def _both_digests(
    first: ComparedRun, second: ComparedRun
) -> dict[str, tuple[TaskDigests, TaskDigests]]:
    one, two = _digests(first), _digests(second)
    return {task: (one[task], two[task]) for task in one if task in two}


def _digests(run: ComparedRun) -> dict[str, TaskDigests]:
    """The digests of every task that the run has a unit of."""
    return {task: unit.digests for (task, _), unit in run.units.items() if unit.digests is not None}


def _cautions(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    one, two = first.manifest, second.manifest
    if one.dataset_digest != two.dataset_digest:
        yield f"dataset digests: {one.dataset_digest[:12]} and {two.dataset_digest[:12]}"
        both = _both_digests(first, second).values()
        unknown = sum(one.agrees(two) and None in (one.asks, two.asks) for one, two in both)
        if unknown:
            yield f"inputs or tools of {unknown} of the tasks: not recorded in both runs"
    for name, left, right in compare_specs(one.spec, two.spec):
        # A recording and its later digest are the same tape to a reader.
        same_tape = name == "tape" and show_setting(left) == show_setting(right)
        if name.partition(".")[0] not in _NO_CAUTION and not same_tape:
            yield f"{name}: {show_setting(left)} and {show_setting(right)}"
    if one.prompts != two.prompts:
        yield f"prompts: {show_setting(one.prompts)} and {show_setting(two.prompts)}"


def _judges(run: ComparedRun) -> tuple[str, ...]:
    scores = run.scores
    if isinstance(scores, WorkflowScores):
        return tuple(judge.judge for judge in scores.judges)
    return ()


def _differ(what: str, one: object, two: object) -> str:
    return f"the {what} differ ({one} and {two})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
