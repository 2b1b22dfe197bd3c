"""What a report says first: the finding in a sentence, outcomes by cause, and what to do next."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, NamedTuple

from gta_bench.errors import format_count, join_first
from gta_bench.metrics import table
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.run_scores import NOT_RUN
from gta_bench.records.failures import FailureCause, FailureCount
from gta_bench.records.run import RunManifest, RunMode
from gta_bench.records.scores import RunScores, StrictStepCounts
from gta_bench.records.statistics import Difference
from gta_bench.records.workflow_scores import JudgeScores
from gta_bench.reports.certainty import RunMetrics
from gta_bench.reports.estimates import Estimate, pair_tasks, split_tasks
from gta_bench.reports.gains import Loss
from gta_bench.reports.tables import line
from gta_bench.statistics.pooled import compute_difference
from gta_bench.statistics.proportions import holm

# What is counted as one outcome in each mode, as singular and plural.
Noun = Literal["leaf", "step", "task", "unit"]
PLURALS: Final[Mapping[Noun, str]] = {
    "leaf": "leaves",
    "step": "steps",
    "task": "tasks",
    "unit": "units",
}
# Causes that are not the system's fault.
FAULTLESS: Final[frozenset[FailureCause]] = frozenset({"infrastructure", "judge unscored"})
# docs/concepts/failures.md explains them at length.
CAUSES: Final[Mapping[FailureCause, str]] = {
    "infrastructure": "It broke through no fault of the system.",
    "judge unscored": "The judge gave no usable score. Never counted as 0.",
    "format": "No reply, an empty one, or one that breaks the protocol.",
    "wrong tool": "Another tool than the reference's, or none.",
    "arguments": "The right tool, called with other arguments.",
    "tool unavailable": "The tool could not be offered here.",
    "tool error": "The tool failed and never worked in the task.",
    "context": "The dialogue no longer fit into the context window.",
    "turn limit": "The work ended with a call and without an answer.",
    "missing deliverable": "A file was requested and none was delivered.",
    "wrong content": "Everything ran; the answer or file is not good enough.",
}
# What the value of a headline says.
MEANINGS: Final[Mapping[str, str]] = {
    table.ANS_ACC.name: "on average, a final answer is worth {value} % of a right one",
    table.ARG_ACC.name: "{value} % of the calls to make have the right tool and arguments",
}
PASSED: Final = "passed"
UNSCORED: Final = "unscored"
ALPHA: Final = 0.05
# How another run compares with the best one, in the order of the sentences.
PairVerdict = Literal["behind", "ahead", "tied"]
VERDICTS: Final[tuple[PairVerdict, ...]] = ("behind", "ahead", "tied")


class OutcomeCounts(NamedTuple):
    """What became of all leaves, steps or tasks of a run: passed, or failed by first cause.

    `unscored` ones were never run, so that they have no cause.
    """

    noun: Noun
    passed: int
    causes: tuple[FailureCount, ...]
    unscored: int = 0

    @property
    def failed(self) -> int:
        """How many have a cause."""
        return sum(one.failures for one in self.causes)

    @property
    def whole(self) -> int:
        """How many there are."""
        return self.passed + self.failed + self.unscored

    @property
    def text(self) -> str:
        """The number with its noun."""
        return format_count(self.whole, self.noun, PLURALS[self.noun])

    def counts(self) -> list[tuple[str, int]]:
        """Return every outcome with its number, passed first."""
        causes = [(one.cause, one.failures) for one in self.causes]
        return [(PASSED, self.passed), *causes, (UNSCORED, self.unscored)]


class RunFinding(NamedTuple):
    """What the first sentence is made of; a headline is None if nothing could be measured.

    `n` of `n_units` units have a value of it; `missing` leaves have no score.
    """

    mode: RunMode
    headline: Estimate | None
    n: int
    n_units: int
    outcomes: OutcomeCounts | None
    missing: int = 0


def leaf_outcomes(judge: JudgeScores) -> OutcomeCounts:
    """Return what became of all leaves, according to one judge."""
    causes = count_failures(judge.failures)
    failed = sum(one.failures for one in causes)
    return OutcomeCounts("leaf", max(0, judge.strict.n_leaves - failed), causes)


def atomic_outcomes(scores: RunScores, *, epochs: int = 1) -> OutcomeCounts:
    """Return what became of all steps, or end to end of all tasks in all epochs.

    A unit without result counts as one, whatever its number of steps.
    """
    causes = count_failures(scores.failures)
    waiting = sum(one.cause == NOT_RUN for one in scores.unscored)
    own = sum(one.failures for one in causes) - (len(scores.unscored) - waiting)
    if scores.mode == "end-to-end":
        noun: Noun = "task" if epochs == 1 else "unit"
        return OutcomeCounts(noun, max(0, scores.n - own), causes, waiting)
    steps = sum(
        unit.strict.inst_total for unit in scores.units if isinstance(unit.strict, StrictStepCounts)
    )
    return OutcomeCounts("step", max(0, steps - own), causes, waiting)


def state_finding(finding: RunFinding) -> str:
    """Return what was found, in one or two sentences for people who know only the benchmark."""
    said = _state_workflow(finding) if finding.mode == "workflow" else _state_atomic(finding)
    return " ".join(filter(None, (said, _state_cause(finding))))


def _state_workflow(finding: RunFinding) -> str:
    one, waiting = finding.headline, finding.n_units - finding.n
    tasks = format_count(finding.n_units, "task")
    if finding.outcomes is None:
        return f"No judge has scored this run yet: {finding.n} of {tasks} are finished."
    leaves = format_count(finding.missing, "leaf", "leaves")
    if one is None:
        return f"No task is fully judged: {leaves} of {finding.outcomes.whole:,} have no score."
    passed = round(one.value * finding.n / 100)
    if not waiting:
        return f"{_count_passed(passed, finding.n_units, 'task')}."
    wait = f"{leaves} without a score" if finding.missing else "a result"
    said = (
        f"{_count_passed(passed, finding.n, 'fully judged task')}. The other {waiting:,} "
        f"{_verb(waiting, 'wait')} for {wait}"
    )
    if one.bounds is None:
        return f"{said}."
    span = f"{one.bounds.low:.1f} to {one.bounds.high:.1f} %"
    return f"{said}, so {table.label(one.metric)} can still end anywhere from {span}."


def _count_passed(passed: int, n: int, noun: str) -> str:
    if n == 1:
        return f"The only {noun} {'passes' if passed else 'does not pass'}"
    whole = format_count(n, noun)
    return f"All {whole} pass" if passed == n else f"{passed:,} of {whole} pass"


def _state_atomic(finding: RunFinding) -> str:
    one, waiting = finding.headline, finding.n_units - finding.n
    if one is None:
        return f"Nothing could be measured in {format_count(finding.n_units, 'task')}."
    value = f"{one.value:.1f}"
    said = f"{table.label(one.metric)} is {value}: {MEANINGS[one.metric].format(value=value)}."
    if waiting:
        units = format_count(finding.n_units, "task")
        said += f" {waiting:,} of {units} {_verb(waiting, 'have')} no result yet."
    return said


def _state_cause(finding: RunFinding) -> str:
    """Name the most frequent cause that is the system's own, if anything failed."""
    outcomes, one = finding.outcomes, finding.headline
    if outcomes is None:
        return ""
    own = [one for one in outcomes.causes if one.cause not in FAULTLESS]
    if not own:
        perfect = one is not None and math.isclose(one.value, 100)
        whole = perfect and finding.n == finding.n_units and not outcomes.causes
        return "Nothing failed." if whole else ""
    failed = sum(one.failures for one in own)
    if failed == 1:
        return f"The only {outcomes.noun} that failed has the cause {own[0].cause}."
    nouns = format_count(failed, f"failed {outcomes.noun}", f"failed {PLURALS[outcomes.noun]}")
    if own[0].failures == failed:
        return f"The cause of all {nouns} is {own[0].cause}."
    return f"The most frequent cause is {own[0].cause}: {own[0].failures:,} of {nouns}."


def _verb(number: int, verb: str) -> str:
    if number != 1:
        return verb
    return {"have": "has"}.get(verb, f"{verb}s")


class Contender(NamedTuple):
    """A run in a comparison: its headline, and what must be equal for a comparison.

    The names of `terms` say what differs otherwise, such as "another judge".
    """

    label: str
    metrics: RunMetrics
    headline: Estimate
    terms: Mapping[str, Hashable]

    def scored_tasks(self) -> frozenset[str]:
        """Return the tasks with a value of the headline's metric."""
        parts = self.metrics.parts.get(self.headline.metric, {})
        return frozenset(task for task, own in split_tasks(parts).items() if any(own.seen))


def state_comparison(runs: Sequence[Contender]) -> str:
    """Say which run is best, and from which others it can be distinguished on the common tasks.

    Only runs with the same scored tasks have a highest score. Each task counts once; the tests
    against the other runs are corrected for their number.
    """
    group = _find_group(runs)
    best = max(group, key=lambda one: one.headline.value)
    others = [one for one in runs if one is not best]
    found = {one.label: pair_runs(best, one) for one in others}
    known = {label: one for label, one in found.items() if one is not None}
    equal = [one.label for one in group if math.isclose(one.headline.value, best.headline.value)]
    verdicts = _group_verdicts(known, [label for label in equal if label != best.label])
    reasons: dict[str, list[str]] = {}
    for one in others:
        if one.label not in known:
            reasons.setdefault(_find_reason(best, one), []).append(one.label)
    return " ".join(
        [
            _state_highest(best, equal, group) if known else "No run can be called the best.",
            *(_state_verdict(best.label, *key, labels) for key, labels in verdicts.items()),
            *(
                f"{_list(labels)} cannot be compared with {best.label}: {reason}."
                for reason, labels in reasons.items()
            ),
        ]
    )


def _find_group(runs: Sequence[Contender]) -> list[Contender]:
    """Return most runs with the same terms and scored tasks, those with the best one if equal.

    If no two runs have them, it is the run that can be compared with most others.
    """
    groups: dict[Hashable, list[Contender]] = {}
    for one in runs:
        groups.setdefault((*one.terms.items(), one.scored_tasks()), []).append(one)

    alone = len(groups) == len(runs)

    def rank(group: Sequence[Contender]) -> tuple[int, int, float]:
        rest = [one for one in runs if alone and one is not group[0]]
        pairs = sum(pair_runs(group[0], one) is not None for one in rest)
        return len(group), pairs, max(one.headline.value for one in group)

    return max(groups.values(), key=rank)


def _state_highest(best: Contender, equal: Sequence[str], group: Sequence[Contender]) -> str:
    metric, value = table.label(best.headline.metric), f"{best.headline.value:.1f}"
    if len(group) == 1:
        return f"No two runs have the same scored tasks, so none has the highest {metric}."
    tasks = format_count(len(best.scored_tasks()), "scored task")
    among = f"Of {len(group)} runs with the same {tasks},"
    if len(equal) == 1:
        return f"{among} {best.label} has the highest {metric}, {value}."
    return f"{among} {_list(equal)} share the highest {metric}, {value}."


def _group_verdicts(
    found: Mapping[str, Difference], equal: Sequence[str]
) -> dict[tuple[PairVerdict, int], list[str]]:
    """Return the other runs by verdict and number of common tasks; equal ones need no verdict."""
    adjusted = holm([one.p_value for one in found.values()])
    groups: dict[tuple[PairVerdict, int], list[str]] = {}
    for (label, one), p_value in zip(found.items(), adjusted, strict=True):
        verdict: PairVerdict = "tied"
        if p_value < ALPHA and one.interval.estimate:
            verdict = "behind" if one.interval.estimate > 0 else "ahead"
        if verdict != "tied" or label not in equal:
            groups.setdefault((verdict, one.interval.n), []).append(label)
    return dict(sorted(groups.items(), key=lambda item: (VERDICTS.index(item[0][0]), -item[0][1])))


def _state_verdict(best: str, verdict: PairVerdict, n: int, labels: Sequence[str]) -> str:
    """Say how other runs compare with the best one on their common tasks."""
    common, listed = f"on their {format_count(n, 'common task')}", _list(labels)
    if verdict == "behind":
        return f"{best} is ahead of {listed} {common}."
    if verdict == "ahead":
        are = "is" if len(labels) == 1 else "are"
        return f"{common.capitalize()} {listed} {are} ahead of {best}."
    return f"{best} cannot be distinguished from {listed} {common}; that does not make them equal."


def _find_reason(one: Contender, two: Contender) -> str:
    """Say why two runs cannot be compared."""
    names = [name for name, value in one.terms.items() if two.terms.get(name) != value]
    if names:
        return " and ".join(names)
    shared = {*one.metrics.spec.tasks} & {*two.metrics.spec.tasks}
    return "no common task is scored in both" if shared else "other tasks"


def _list(labels: Sequence[str]) -> str:
    return join_first(labels) if len(labels) > 2 else " and ".join(labels)


def pair_runs(one: Contender, two: Contender) -> Difference | None:
    """Return the difference on the common tasks; None if the runs cannot be compared."""
    shared = sorted({*one.metrics.spec.tasks} & {*two.metrics.spec.tasks})
    if one.terms != two.terms or not shared:
        return None
    metric = one.headline.metric
    sides = [run.metrics.parts.get(metric) for run in (one, two)]
    if sides[0] is None or sides[1] is None:
        return None
    epochs = one.metrics.spec.epochs, two.metrics.spec.epochs
    pair = pair_tasks(sides[0], sides[1], shared, epochs=epochs)
    if not pair.common:
        return None
    return compute_difference(*pair.ratios(), top=table.metric(metric).top)


class NextStep(NamedTuple):
    """Something to do about a run: why, and the command or the unit to look at."""

    title: str
    text: str
    command: str = ""
    task: str = ""
    epoch: int = 1


def list_next_steps(
    name: str,
    manifest: RunManifest,
    finding: RunFinding,
    worst: Loss | None,
    *,
    judge: str = "",
    gain: str = "",
    most: int = 3,
) -> list[NextStep]:
    """Return what to do next, first what the result depends on most.

    `worst` is the largest loss, in points of `gain`; `judge` is the one of the finding.
    """
    steps = _suggest(name, manifest, finding, worst, judge, gain)
    return list(islice(steps, most))


def _suggest(
    name: str, manifest: RunManifest, finding: RunFinding, worst: Loss | None, judge: str, gain: str
) -> Iterator[NextStep]:
    outcomes, spec = finding.outcomes, manifest.spec
    if outcomes is None:
        text = "Scores, causes and groups need a judge."
        yield NextStep("Judge the run", text, f"gta score {name} --judge MODEL")
        return
    counts = {one.cause: one for one in outcomes.causes}
    if "judge unscored" in counts:
        one = counts["judge unscored"]
        asked = judge if "/" in judge else "MODEL"
        yield NextStep(
            f"Judge {format_count(one.failures, 'unscored leaf', 'unscored leaves')}",
            f"They are in {format_count(one.tasks, 'task')}, which have no root score until then.",
            f"gta score {name} --judge {asked}",
        )
    broken = counts["infrastructure"].tasks if "infrastructure" in counts else 0
    if finding.mode != "workflow" and finding.n < finding.n_units:
        broken = max(broken, finding.n_units - finding.n)
    if broken:
        imported = manifest.imported_from is not None
        then = "Then import the results again" if imported else "The same command completes the run"
        yield NextStep(
            f"Run {format_count(broken, 'task')} again",
            f"They broke through no fault of the system, or were not run. {then}.",
            "gta import … --out RUN" if imported else f"gta status {name}",
        )
    if worst is not None:
        causes = f" ({', '.join(worst.causes)})" if worst.causes else ""
        what = f"its leaf “{line(worst.what, 60)}”" if finding.mode == "workflow" else "it"
        yield NextStep(
            f"Read task {worst.task} first",
            f"Fixing {what} alone would gain {worst.gain:.2f} points of {gain}{causes}.",
            task=worst.task,
            epoch=worst.epoch,
        )
    if manifest.dataset_tasks is not None and len(spec.tasks) < manifest.dataset_tasks:
        yield NextStep(
            f"Run all {manifest.dataset_tasks:,} tasks",
            "A subset cannot be ranked. The same command without a selection extends this run.",
            f"gta run {spec.dataset} … --out {name}",
        )
    yield NextStep(
        "Compare with another run",
        "Task by task, with a test of the difference.",
        f"gta compare {name} OTHER",
    )
    yield NextStep(
        "Read it in the terminal", "The same numbers as tables or JSON.", f"gta report {name}"
    )
