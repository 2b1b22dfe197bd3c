"""The scores of a run, unit by unit, as other programs take them: a name, a value, a reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gta_bench.errors import RunError, UsageError
from gta_bench.metrics import table
from gta_bench.metrics.run_scores import NOT_RUN
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.failures import Failure
from gta_bench.records.run import RunManifest, RunMode
from gta_bench.records.scores import RunScores, UnitScore
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.records.workflow_scores import JudgeScores, LeafScore, TaskScore, WorkflowScores
from gta_bench.runs.directory import read_manifest, read_scores, read_workflow_scores
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_unit_rows

# The metric that stands for a whole unit. End to end, it is the one that image tasks have, too.
MAIN: Final[Mapping[RunMode, str]] = {
    "step": table.ARG_ACC.name,
    "end-to-end": table.ANS_ACC_I.name,
    "workflow": table.ROOT_SCORE.name,
}
# The other metrics of a unit of GTA-Atomic whose denominator is fixed by the task.
OTHERS: Final[Mapping[RunMode, tuple[str, ...]]] = {
    "step": (table.INST_ACC.name, table.TOOL_ACC.name, table.SUMM_ACC.name),
    "end-to-end": (),
    "workflow": (),
}
# The name of a leaf's score, and the causes of missing scores besides those of verdicts.
LEAF: Final = "leaf_score"
NO_RESULT: Final = "no_result"
NOT_JUDGED: Final = "not_judged"


@dataclass(frozen=True, kw_only=True)
class OneScore:
    """One score of a unit: of the whole task, or of one leaf.

    `value` is between 0 and `top`; None if there is none. `cause` says which fault of ours or of a
    provider prevented a valid score; without it and without a value, the task has nothing to
    measure. `passed` is None for metrics that decide nothing. `reason` is what a judge or a check
    stated, or the first causes of a failure.
    """

    name: str
    leaf: str | None = None
    judge: str | None = None
    value: float | None = None
    top: float = 10.0
    passed: bool | None = None
    cause: str | None = None
    reason: str = ""
    by_check: bool = False


class UnitScores:
    """The scores of a run, which `gta score` must have scored.

    With `judge`, only that judge's; otherwise those of all judges, one after another.
    """

    def __init__(self, run: StorePath, judge: str | None = None) -> None:
        self.run = run
        self.manifest: RunManifest = read_manifest(run)
        self.scores: RunScores | WorkflowScores
        self.judges: tuple[str, ...] = ()
        if self.manifest.spec.dataset == "workflow":
            scores = read_workflow_scores(run)
            judged = _choose_judges(scores, run, judge)
            self.scores, self.judges = scores, tuple(one.judge for one in judged)
            self._judged: Sequence[_Judged] = [_Judged(one, scores) for one in judged]
            self._rows = read_unit_rows(run)
        else:
            if judge is not None:
                raise UsageError(f"{run} is a run of GTA-Atomic, which no judge scores.")
            atomic = read_scores(run)
            self.scores = atomic
            self._atomic = {(one.task, one.epoch): one for one in atomic.units}
            self._failed = _group_failures(atomic)
        self._unscored = {(one.task, one.epoch): one.cause for one in self.scores.unscored}

    def of(self, key: UnitKey) -> tuple[OneScore, ...]:
        """Return the scores of a unit, that of the whole task first (for each judge)."""
        if isinstance(self.scores, WorkflowScores):
            return tuple(self._list_judged(key))
        return tuple(self._list_atomic(key))

    def _list_atomic(self, key: UnitKey) -> Iterator[OneScore]:
        mode, found = self.manifest.spec.mode, self._atomic.get(key)
        if found is None:
            yield self._make_missing(key, MAIN[mode], None)
            return
        yield _make_atomic(MAIN[mode], found, self._failed.get(key, ()))
        for name in OTHERS[mode]:
            score = _make_atomic(name, found)
            if score.value is not None:
                yield score

    def _list_judged(self, key: UnitKey) -> Iterator[OneScore]:
        for judged in self._judged:
            found = judged.tasks.get(key)
            if found is None or key in self._unscored:
                yield self._make_missing(key, MAIN["workflow"], judged.judge)
            else:
                yield from judged.list_scores(found, self._rows.get(key, ()))

    def _make_missing(self, key: UnitKey, name: str, judge: str | None) -> OneScore:
        reason = self._unscored.get(key, NOT_RUN)
        return OneScore(name=name, judge=judge, top=_top(name), cause=NO_RESULT, reason=reason)


class _Judged:
    """What one judge scored."""

    def __init__(self, table_: JudgeScores, scores: WorkflowScores) -> None:
        self.judge = table_.judge
        self.tasks = {(one.task, one.epoch): one for one in table_.tasks}
        self._scores = scores

    def list_scores(self, task: TaskScore, rows: Sequence[VerdictRow]) -> Iterator[OneScore]:
        """Yield the score of the task, then those of its leaves."""
        leaves = [self._score_leaf(leaf, rows) for leaf in task.leaves]
        lacking = [one for one in leaves if one.value is None]
        root = task.root
        yield OneScore(
            name=table.ROOT_SCORE.name,
            judge=self.judge,
            value=root,
            passed=None if root is None else succeeds(root, self._scores.root_threshold),
            cause=lacking[0].cause if lacking else None,
            reason=self._explain_root(leaves),
        )
        yield from leaves

    def _explain_root(self, leaves: Sequence[OneScore]) -> str:
        lines = [f"{one.leaf}: no score, {one.cause}" for one in leaves if one.value is None]
        least = self._scores.leaf_threshold
        lines += [
            f"{one.leaf}: {one.value:g}, below {least:g}"
            for one in leaves
            if one.value is not None and not one.passed
        ]
        return "\n".join(lines)

    def _score_leaf(self, leaf: LeafScore, rows: Sequence[VerdictRow]) -> OneScore:
        by = CHECK if leaf.by else self.judge
        own = [row.verdict for row in rows if (row.key.leaf, row.key.judge) == (leaf.leaf, by)]
        value = leaf.value
        return OneScore(
            name=LEAF,
            leaf=leaf.leaf,
            judge=self.judge,
            value=value,
            passed=None if value is None else succeeds(value, self._scores.leaf_threshold),
            cause=None if value is not None else next(iter(leaf.causes), NOT_JUDGED),
            reason="\n".join(
                one.reason if isinstance(one, Scored) else f"{one.cause}: {one.detail}"
                for one in own
            ),
            by_check=leaf.by is not None,
        )


def choose_judge(scores: UnitScores, what: str) -> str | None:
    """Return the only judge of these scores; raises if there are several. None for GTA-Atomic."""
    if len(scores.judges) > 1:
        known = "; ".join(scores.judges)
        raise UsageError(f"Several judges scored {scores.run}; {what} needs one of: {known}.")
    return next(iter(scores.judges), None)


def _choose_judges(
    scores: WorkflowScores, run: StorePath, judge: str | None
) -> tuple[JudgeScores, ...]:
    known = "; ".join(one.judge for one in scores.judges)
    if not known:
        raise RunError(f"No judge has scored {run}; run `gta score {run} --judge MODEL`.")
    if judge is None:
        return scores.judges
    found = scores.table(judge)
    if found is None:
        raise UsageError(f"{judge!r} has not scored {run}; its judges: {known}.")
    return (found,)


def _group_failures(scores: RunScores) -> dict[UnitKey, list[Failure]]:
    found: dict[UnitKey, list[Failure]] = {}
    for one in scores.failures:
        found.setdefault((one.task, one.epoch), []).append(one)
    return found


def _make_atomic(name: str, unit: UnitScore, failed: Sequence[Failure] | None = None) -> OneScore:
    """Return a score of a unit; with its failures, also whether it passed."""
    value = table.metric(name).value(unit.strict)
    broken = any(one.cause == "infrastructure" for one in failed or ())
    return OneScore(
        name=name,
        value=value,
        top=_top(name),
        passed=None if failed is None or broken or value is None else not failed,
        cause="infrastructure" if broken else None,
        reason="\n".join(f"{one.place}: {one.cause}. {one.detail}".strip() for one in failed or ()),
    )


def _top(name: str) -> float:
    row = table.metric(name)
    return row.top * row.factor
