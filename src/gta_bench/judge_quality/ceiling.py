"""The ceiling of a judge, from its verdicts on leaves whose truth is known."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from gta_bench.errors import format_count
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.ceiling import Ceiling, CeilingBy, ErrorRates, Suspect, TaskErrors
from gta_bench.reports.tables import Table, line, with_interval
from gta_bench.statistics.ceiling import measure_rate

GROUP_HEADING = ("by", "group", "tasks", "broken", "found % (95 %)", "intact", "passed % (95 %)")
SUSPECT_HEADING = ("task", "leaf", "file", "looks at", "golds", "requirement", "judge")
LONGEST = 60


class KnownLeaf(NamedTuple):
    """A leaf of a work, whether it holds there, and the judge's scores, one for each repeat.

    `gold` works are right, so that all of their leaves hold. `kinds` are the kinds of file that the
    leaf is about, `type` is what its checks look at, and `reason` is what the judge said.
    """

    task: str
    leaf: str
    holds: bool
    gold: bool
    kinds: tuple[str, ...]
    type: str
    scores: tuple[float | None, ...]
    says: str = ""
    reason: str = ""

    @property
    def value(self) -> float | None:
        """The mean of all repeats, as in a run; None if one has no score."""
        known = [score for score in self.scores if score is not None]
        return fmean(known) if known and len(known) == len(self.scores) else None


def group_errors(leaves: Iterable[KnownLeaf], threshold: float) -> Iterator[ErrorRates]:
    """Yield the rates over all scored leaves, then by kind of file, by type of leaf, and by both.

    A leaf about several kinds of file counts for each of them.
    """
    groups: dict[tuple[CeilingBy, str], list[KnownLeaf]] = {("all", "all"): []}
    for leaf in leaves:
        if leaf.value is None:
            continue
        groups["all", "all"].append(leaf)
        groups.setdefault(("leaf", leaf.type), []).append(leaf)
        for kind in leaf.kinds:
            groups.setdefault(("file", kind), []).append(leaf)
            groups.setdefault(("file and leaf", f"{kind}, {leaf.type}"), []).append(leaf)
    order: tuple[CeilingBy, ...] = ("all", "file", "leaf", "file and leaf")
    for (by, name), own in sorted(groups.items(), key=lambda one: (order.index(one[0][0]), one[0])):
        rows = list(sum_by_task(own, threshold))
        yield ErrorRates(
            by=by,
            name=name,
            tasks=len(rows),
            broken=sum(row.broken for row in rows),
            sensitivity=measure_rate((row.found, row.broken) for row in rows),
            intact=sum(row.intact for row in rows),
            specificity=measure_rate((row.passed, row.intact) for row in rows),
        )


def sum_by_task(leaves: Iterable[KnownLeaf], threshold: float) -> Iterator[TaskErrors]:
    """Yield how often the judge is right about the scored leaves of each task."""
    tasks: dict[str, Counter[str]] = {}
    for leaf in leaves:
        if leaf.value is None:
            continue
        passed = succeeds(leaf.value, threshold)
        own = tasks.setdefault(leaf.task, Counter())
        own["intact" if leaf.holds else "broken"] += 1
        if passed == leaf.holds:
            own["passed" if leaf.holds else "found"] += 1
    for task, own in tasks.items():
        yield TaskErrors(
            task=task,
            found=own["found"],
            broken=own["broken"],
            passed=own["passed"],
            intact=own["intact"],
        )


def find_suspects(leaves: Iterable[KnownLeaf], threshold: float) -> Iterator[Suspect]:
    """Yield the leaves that no repeat passed in any gold; those without any score are not known."""
    golds: dict[tuple[str, str], list[KnownLeaf]] = {}
    for leaf in leaves:
        if leaf.gold:
            golds.setdefault((leaf.task, leaf.leaf), []).append(leaf)
    for own in golds.values():
        scores = [score for leaf in own for score in leaf.scores if score is not None]
        if scores and not any(succeeds(score, threshold) for score in scores):
            first = own[0]
            yield Suspect(
                task=first.task,
                leaf=first.leaf,
                says=first.says,
                kinds=first.kinds,
                type=first.type,
                golds=len(own),
                reason=first.reason,
            )


def group_table(groups: Sequence[ErrorRates]) -> Table:
    """Return a row for each group of leaves."""
    return Table(
        GROUP_HEADING,
        tuple(
            (
                one.by,
                one.name,
                str(one.tasks),
                str(one.broken),
                with_interval(one.sensitivity, factor=100),
                str(one.intact),
                with_interval(one.specificity, factor=100),
            )
            for one in groups
        ),
    )


def suspect_table(suspects: Sequence[Suspect]) -> Table:
    """Return a row for each suspect."""
    return Table(
        SUSPECT_HEADING,
        tuple(
            (
                one.task,
                one.leaf,
                ", ".join(one.kinds),
                one.type,
                str(one.golds),
                line(one.says, LONGEST),
                line(one.reason, LONGEST),
            )
            for one in suspects
        ),
    )


def ceiling_remarks(found: Ceiling) -> Iterator[str]:
    """Yield what right work gets, what was left out, and where suspects are."""
    gold = found.gold
    yield (
        f"Right work gets (95 %): Leaf SR {with_interval(gold.leaf_sr)}, Root SR "
        f"{with_interval(gold.root_sr)}, Root Score {with_interval(gold.root_score)}."
    )
    if found.unknown:
        leaves = format_count(found.unknown, "leaf", "leaves")
        yield f"Left out: {leaves} of wrong works that need a broken leaf."
    if found.unscored:
        leaves = format_count(found.unscored, "leaf", "leaves")
        yield f"Left out: {leaves} without a score in every repeat. Run the same command again."
    if found.suspects:
        counts = Counter(kind for one in found.suspects for kind in one.kinds)
        kinds = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
        leaves = format_count(len(found.suspects), "leaf fails", "leaves fail")
        yield (
            f"{leaves} in every right work, by file: {kinds}. The evidence may not show what they "
            "ask for, or the prompt may mislead the judge: look at one of them first."
        )
