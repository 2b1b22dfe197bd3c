"""Whether a task is ready: computed from its pilot.json each time, never taken from there.

Rules have the codes of `gta task lint`: T28 a Python check that differs between two runs, T34 gold
that fails a leaf, T35 work that does nothing and passes a leaf, T36 a cheat that passes, T37 wrong
work that breaks something else than it says, T38 a leaf that no wrong work breaks. A task with
errors of lint itself is unchecked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from gta_bench.authoring.drafts import is_draft
from gta_bench.authoring.lint import lint
from gta_bench.authoring.proofs import AuthoredTask, Proof, read_authored
from gta_bench.authoring.staleness import find_stale, read_pilot
from gta_bench.authoring.subject import PILOT_FILE
from gta_bench.datasets.folders import TASK_FILE
from gta_bench.errors import GtaError, format_count
from gta_bench.metrics.strict.workflow import leaf_shares, root_score, succeeds
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.finding import Finding, Severity
from gta_bench.records.pilot import LeafReadiness, LeafTrial, Pilot, Readiness, ReadinessState
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.runs.directory import write_record
from gta_bench.settings import Settings

NULL: Final = "null"
# Starting values, to be tuned on tasks whose truth is known.
LEAST_GOLDS: Final = 2
GOLD_LEAF: Final = 9.0
GOLD_ROOT: Final = 9.5
NULL_LEAF: Final = 2.0
CHEAT_ROOT: Final = 3.0
LEAST_HITS: Final = 0.9
MOST_ALARMS: Final = 0.05
MOST_FLIPS: Final = 0.1


def write_pilot(folder: Path, pilot: Pilot) -> None:
    """Write `pilot.json`."""
    write_record(folder / PILOT_FILE, pilot)


def has_judged_pilot(authored: AuthoredTask) -> bool:
    """Whether the task has a pilot with a judge that is not stale."""
    pilot = read_pilot(authored.folder)
    if isinstance(pilot, str) or pilot.judge is None:
        return False
    return not find_stale(authored.dataset, authored.task.id, pilot)


def read_readiness(folder: Path, thresholds: Thresholds) -> Readiness:
    """Return the readiness of a task folder; one that cannot be read is unchecked."""
    try:
        authored = read_authored(folder)
    except GtaError as exc:
        return Readiness(task=folder.name, state=_name_failing(folder), reasons=(str(exc),))
    pilot = read_pilot(folder)
    if isinstance(pilot, str):
        return Readiness(task=folder.name, state=_name_failing(folder), reasons=(pilot,))
    return assess(authored, pilot, thresholds)


def _name_failing(folder: Path) -> ReadinessState:
    """Return the state of a task whose pilot does not pass or is missing."""
    return "draft" if is_draft(folder) else "unchecked"


# Rules whose waiver also covers a threshold: too few works, where more make no sense.
COVERING: Final = frozenset({"T33", "T38"})


def assess(authored: AuthoredTask, pilot: Pilot, thresholds: Thresholds) -> Readiness:
    """Return the readiness that a pilot shows, with the rules that it breaks."""
    stale = find_stale(authored.dataset, authored.task.id, pilot)
    if stale:
        reason = f"changed since the pilot: {', '.join(stale)}"
        return Readiness(task=authored.task.id, state="stale", reasons=(reason,))
    outcome = _Outcome(authored, pilot, thresholds)
    findings = [
        one.model_copy(update={"severity": "note", "message": f"waived: {one.message}"})
        if one.check in authored.waived
        else one
        for one in outcome.findings()
    ]
    errors = [one for one in findings if one.severity == "error"]
    reasons = [] if not errors else [format_count(len(errors), "error")]
    linted = [one for one in lint([authored.folder]).findings if one.severity == "error"]
    # The file may have an older pilot than the one that is assessed.
    linted = [one for one in linted if one.check != "T39"]
    if linted:
        reasons.append(f"{format_count(len(linted), 'error')} of `gta task lint`")
    missing = outcome.count_missing()
    if missing:
        reasons.append(f"{format_count(missing, 'score')} missing")
    leaves = tuple(outcome.leaf(leaf) for leaf in authored.task.leaves())
    state: ReadinessState = _name_failing(authored.folder) if reasons else "checked"
    untried = sum(not outcome.is_tried(leaf.id) for leaf in authored.task.leaves())
    if untried:
        reasons.append(f"{format_count(untried, 'leaf', 'leaves')} not judged")
    # A rule that is broken says more than the threshold above it. A waiver lets a task be used, but
    # a task that wrong work passes is not ready, whatever the reason.
    said = authored.waived & COVERING | {one.check for one in (*errors, *linted)}
    shortfalls = [text for code, text in outcome.shortfalls(leaves) if code not in said]
    if state == "checked" and not untried:
        state = "piloted" if shortfalls else "ready"
    return Readiness(
        task=authored.task.id,
        state=state,
        reasons=(*reasons, *shortfalls),
        findings=tuple(findings),
        leaves=leaves,
        judge=pilot.judge,
        cost_usd=pilot.cost_usd,
    )


class _Pair(NamedTuple):
    """A work and its trial of one leaf."""

    work: str
    trial: LeafTrial


class _Outcome:
    """The trials of a pilot, read by kind of work and by leaf."""

    def __init__(self, authored: AuthoredTask, pilot: Pilot, thresholds: Thresholds) -> None:
        self.authored = authored
        self.task: WorkflowTask = authored.task
        self.pilot = pilot
        self.thresholds = thresholds
        self.shares = leaf_shares(self.task)
        self._needed_by = find_dependents(self.task)

    def works(self, kind: str) -> list[str]:
        """The names of all works of a kind."""
        return [name for name in self.pilot.trials if name.partition("/")[0] == kind]

    def value(self, work: str, leaf: str) -> float | None:
        """The mean over repeats; None if the leaf was not tried or a repeat has no score."""
        return mean_score(self.pilot.trials[work][leaf])

    def root(self, work: str) -> float | None:
        """The root score of a work."""
        values = {leaf: self.value(work, leaf) for leaf in self.pilot.trials[work]}
        known = {leaf: value for leaf, value in values.items() if value is not None}
        return root_score(self.task.checkpoints, known)

    def passes(self, value: float | None) -> bool:
        """Whether a score reaches the threshold of a leaf; one that is missing does not."""
        return value is not None and succeeds(value, self.thresholds.leaf)

    def fails(self, value: float | None) -> bool:
        """Whether there is a score, and it is below the threshold."""
        return value is not None and not succeeds(value, self.thresholds.leaf)

    def is_tried(self, leaf: str) -> bool:
        """Whether every work has trials of the leaf."""
        return all(trials[leaf].scores for trials in self.pilot.trials.values())

    def count_missing(self) -> int:
        """The number of scores that were asked for and are missing."""
        return sum(
            score is None
            for trials in self.pilot.trials.values()
            for trial in trials.values()
            for score in trial.scores
        )

    def findings(self) -> Iterator[Finding]:
        """Yield the rules that are broken."""
        for work, leaves in self.pilot.unstable.items():
            for leaf in leaves:
                yield self._finding("T28", work, leaf, "a Python check gave another score again")
        for work in self.works("gold"):
            yield from self._leaf_findings("T34", work, self.fails, "gold gets")
        for work in self.works(NULL):
            yield from self._leaf_findings("T35", work, self.passes, "work that does nothing gets")
        for work in self.works("cheat"):
            root = self.root(work)
            if root is not None and succeeds(root, self.thresholds.root):
                yield self._finding("T36", work, None, f"a cheat passes with {root:.1f}")
        for proof in self.authored.of("wrong"):
            yield from self._wrong_findings(proof)
        broken = {leaf for proof in self.authored.of("wrong") for leaf in proof.breaks}
        for leaf in sorted({*self.shares} - broken, key=[*self.shares].index):
            yield self._finding("T38", "wrong", leaf, "no wrong work breaks it", grade="warning")

    def _leaf_findings(
        self, code: str, work: str, applies: Callable[[float | None], bool], said: str
    ) -> Iterator[Finding]:
        for leaf, trial in self.pilot.trials[work].items():
            if applies(value := mean_score(trial)):
                yield self._finding(code, work, leaf, f"{said} {value:.1f}", trial.reason)

    def _wrong_findings(self, proof: Proof) -> Iterator[Finding]:
        trials = self.pilot.trials[proof.name]
        for leaf in proof.breaks:
            if self.passes(value := mean_score(trials[leaf])):
                said = f"it should fail and gets {value:.1f}"
                yield self._finding("T37", proof.name, leaf, said, trials[leaf].reason)
        for leaf in self.intact(proof):
            if self.fails(value := mean_score(trials[leaf])):
                said = f"it fails with {value:.1f}, but is not in `breaks`"
                yield self._finding("T37", proof.name, leaf, said, trials[leaf].reason)

    def _finding(
        self,
        code: str,
        work: str,
        leaf: str | None,
        said: str,
        reason: str = "",
        *,
        grade: Severity = "error",
    ) -> Finding:
        message = f"{said}: {reason}" if reason else f"{said}."
        return Finding(
            check=code, severity=grade, file=work, message=message, task=self.task.id, field=leaf
        )

    def intact(self, proof: Proof) -> list[str]:
        """The leaves that a wrong work should pass, because the gold that it comes from does."""
        broken = {*proof.breaks}
        for leaf in proof.breaks:
            broken |= self._needed_by[leaf]
        golds = [f"gold/{proof.origin}"] if proof.origin else self.works("gold")
        return [
            leaf
            for leaf in self.pilot.trials[proof.name]
            if leaf not in broken and any(self.passes(self.value(gold, leaf)) for gold in golds)
        ]

    def leaf(self, leaf: Checkpoint) -> LeafReadiness:
        """Return the row of a leaf."""
        pairs = [_Pair(work, trials[leaf.id]) for work, trials in self.pilot.trials.items()]
        golds = [self.value(work, leaf.id) for work in self.works("gold")]
        nulls = [self.value(work, leaf.id) for work in self.works(NULL)]
        wrongs = self.authored.of("wrong")
        hit = self._failed_parts(leaf.id, [one for one in wrongs if leaf.id in one.breaks])
        alarm = self._failed_parts(leaf.id, [one for one in wrongs if leaf.id in self.intact(one)])
        repeated = [
            scores
            for _, trial in pairs
            if len(scores := [one for one in trial.scores if one is not None]) > 1
        ]
        compared = [
            self.passes(trial.check) == self.passes(mean_score(trial))
            for _, trial in pairs
            if trial.by == "judge" and trial.check is not None and mean_score(trial) is not None
        ]
        return LeafReadiness(
            leaf=leaf.id,
            share=self.shares[leaf.id],
            by=leaf.by,
            gold=min((value for value in golds if value is not None), default=None),
            floor=max((value for value in nulls if value is not None), default=None),
            hits=sum(hit),
            wrongs=len(hit),
            alarms=sum(alarm),
            intact=len(alarm),
            spread=max((max(scores) - min(scores) for scores in repeated), default=None),
            flips=sum(len({*map(self.passes, scores)}) > 1 for scores in repeated),
            repeated=len(repeated),
            agreed=sum(compared),
            compared=len(compared),
        )

    def _failed_parts(self, leaf: str, proofs: Sequence[Proof]) -> list[float]:
        """For each work that has scores, the share of its repeats that fail the leaf."""
        tried = [self.pilot.trials[proof.name][leaf].scores for proof in proofs]
        known = [[one for one in scores if one is not None] for scores in tried]
        return [fmean(map(self.fails, scores)) for scores in known if scores]

    def shortfalls(self, leaves: Sequence[LeafReadiness]) -> Iterator[tuple[str, str]]:
        """Yield what is below the thresholds, with the rule whose waiver covers it."""
        golds = self.works("gold")
        if len(golds) < LEAST_GOLDS:
            yield "T33", f"{format_count(len(golds), 'gold work')} of {LEAST_GOLDS}"
        if not self.works("wrong"):
            yield "T38", "no wrong work"
        for one in leaves:
            if one.gold is not None and one.gold < GOLD_LEAF:
                yield "T34", f"gold gets {one.gold:.1f} of {GOLD_LEAF:g} in {one.leaf}"
            if one.floor is not None and one.floor >= NULL_LEAF:
                yield "T35", f"work that does nothing gets {one.floor:.1f} in {one.leaf}"
        for work in (*golds, *self.works("cheat")):
            gold, root = work in golds, self.root(work)
            if root is not None and gold and root < GOLD_ROOT:
                yield "T34", f"{work} has a root score of {root:.1f}, below {GOLD_ROOT:g}"
            elif root is not None and not gold and root >= CHEAT_ROOT:
                yield "T36", f"{work} has a root score of {root:.1f}, not below {CHEAT_ROOT:g}"
        yield from _rate_shortfalls(leaves)


def _rate_shortfalls(leaves: Sequence[LeafReadiness]) -> Iterator[tuple[str, str]]:
    hits = _rate(leaves, "hits", "wrongs")
    if hits is not None and hits < LEAST_HITS:
        yield "T37", f"hits {hits:.0%}, below {LEAST_HITS:.0%}"
    alarms = _rate(leaves, "alarms", "intact")
    if alarms is not None and alarms > MOST_ALARMS:
        yield "T37", f"false alarms {alarms:.0%}, above {MOST_ALARMS:.0%}"
    flips = _rate(leaves, "flips", "repeated")
    if flips is not None and flips > MOST_FLIPS:
        yield "", f"flips {flips:.0%}, above {MOST_FLIPS:.0%}"


def mean_score(trial: LeafTrial) -> float | None:
    """Return the mean of all repeats; None if there is none or one has no score."""
    known = [score for score in trial.scores if score is not None]
    return fmean(known) if known and len(known) == len(trial.scores) else None


def _rate(leaves: Sequence[LeafReadiness], part: str, whole: str) -> float | None:
    total = sum(getattr(one, whole) for one in leaves)
    return sum(getattr(one, part) for one in leaves) / total if total else None


def find_dependents(task: WorkflowTask) -> Mapping[str, set[str]]:
    """Return for each leaf those that need it, directly or through others."""
    needs = {leaf.id: {*leaf.needs} for leaf in task.leaves()}

    def reaches(leaf: str, wanted: str, seen: frozenset[str] = frozenset()) -> bool:
        return wanted in needs[leaf] or any(
            reaches(one, wanted, seen | {leaf}) for one in needs[leaf] - seen
        )

    return {leaf: {one for one in needs if reaches(one, leaf)} for leaf in needs}


def describe_readiness(root: Path, tasks: Sequence[str], thresholds: Thresholds) -> str | None:
    """Say how many of a dataset's tasks are not ready; None if all are, or are not folders."""
    folders = [root / task for task in tasks if (root / task / TASK_FILE).is_file()]
    states = [read_readiness(folder, thresholds).state for folder in folders]
    lacking, drafts = sum(state != "ready" for state in states), states.count("draft")
    if not lacking:
        return None
    note = f" ({format_count(drafts, 'draft')})" if drafts else ""
    return f"not ready: {lacking} of {format_count(len(tasks), 'task')}{note}"


def read_thresholds(settings: Settings) -> Thresholds:
    """Return the lowest scores with which a leaf and a task pass."""
    return Thresholds(leaf=settings.judge.leaf_threshold, root=settings.judge.root_threshold)
