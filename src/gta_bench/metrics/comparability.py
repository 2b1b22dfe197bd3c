"""Whether two runs measure the same thing: what forbids a comparison, and what must be said."""

from collections.abc import Iterator, Sequence
from typing import Final

from gta_bench.records.comparison import ComparedRun
from gta_bench.records.run import Limits, RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores

# Differences that a reader must know of; each is a way in which two systems may not have had the
# same chances.
TOLD: Final = (
    *("tools", "network", "max_turns", "limits", "prompts"),
    *("controls", "control_seed", "epochs", "feedback"),
)


def refusals(first: ComparedRun, second: ComparedRun) -> list[str]:
    """Why the two cannot be compared; empty where they can."""
    return list(_refusals(first, second))


def cautions(first: ComparedRun, second: ComparedRun) -> list[str]:
    """What else than the system differs."""
    return list(_cautions(first.manifest, second.manifest))


def common_judges(first: ComparedRun, second: ComparedRun) -> tuple[str, ...]:
    """The judges that saw both runs, by name: the name holds visibility and all other options."""
    return tuple(sorted(set(_judges(first)) & set(_judges(second))))


def _refusals(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    one, two = first.manifest, second.manifest
    if one.dataset != two.dataset:
        yield _differ("datasets", one.dataset, two.dataset)
        return
    if one.dataset_digest != two.dataset_digest:
        yield _differ("dataset digests", one.dataset_digest[:12], two.dataset_digest[:12])
    if one.mode != two.mode:
        yield _differ("modes", one.mode, two.mode)
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
    if not set(one.tasks) & set(two.tasks):
        yield "the runs have no task in common"


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


def _cautions(one: RunManifest, two: RunManifest) -> Iterator[str]:
    for name in TOLD:
        left, right = getattr(one, name), getattr(two, name)
        if left != right:
            yield f"{name}: {_shown(left)} and {_shown(right)}"
    if one.system.images != two.system.images:
        yield f"images: {one.system.images} and {two.system.images}"
    tapes = [
        "none" if run.tape is None else f"{run.tape.mode} {(run.tape.digest or '')[:16]}".strip()
        for run in (one, two)
    ]
    if tapes[0] != tapes[1]:
        yield f"tape: {tapes[0]} and {tapes[1]}"


def _judges(run: ComparedRun) -> tuple[str, ...]:
    scores = run.scores
    if isinstance(scores, WorkflowScores):
        return tuple(judge.judge for judge in scores.judges)
    return ()


def _differ(what: str, one: object, two: object) -> str:
    return f"the {what} differ ({one} and {two})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _shown(value: object) -> str:
    """Digests and the like by what they are for, not in full."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {str(part)[:12]}" for name, part in sorted(value.items())) or "-"
    if isinstance(value, Limits):
        held = value.model_dump(exclude_none=True)
        return ", ".join(f"{name} {most:g}" for name, most in held.items())
    if isinstance(value, tuple):
        return _listed([str(part) for part in value])
    return "none" if value is None else str(value)
