"""The list of a run's tasks, failed ones first: a row each, with the data to filter and sort it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.metrics import table
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure, FailureCause
from gta_bench.records.scores import StrictStepCounts, UnitScore
from gta_bench.records.visible import show_hidden
from gta_bench.records.workflow_scores import TaskScore
from gta_bench.reports.findings import PLURALS, Noun
from gta_bench.web.components import CauseCount, TaskRow, describe_strip
from gta_bench.web.material import UNITS_LISTED, AtomicRun, RunMaterial, UnitScan, anchor, run_mode
from gta_bench.web.sections import unit_name
from gta_bench.web.task_view import score_state

# The order of the list, and the numbers of the states in its data.
STATES: Final = ("failed", "unscored", "passed")
CAUSES_IN_ROW: Final = 3
# Rows without a card that are part of the page without its script.
ROWS_SHOWN: Final = 300


class ListedUnit(NamedTuple):
    """A unit with its outcome; `value` orders units of the same state, the lowest first."""

    key: UnitKey
    state: str
    value: float
    score: str
    noun: Noun
    states: tuple[str, ...] = ()
    strip: str = ""

    @property
    def rank(self) -> tuple[int, float]:
        """Its place in the list."""
        return STATES.index(self.state), self.value


class TaskList(NamedTuple):
    """The units of a run in the order of the list, with their causes.

    `left_out` is how many more the run has.
    """

    units: tuple[ListedUnit, ...]
    causes: Mapping[UnitKey, Counter[FailureCause]]
    counts: Mapping[str, int]
    left_out: int

    def cause_names(self) -> list[str]:
        """Return the causes that occur, the most frequent first."""
        whole: Counter[str] = Counter()
        for own in self.causes.values():
            whole.update(own.keys())
        return [name for name, _ in whole.most_common()]


def list_units(
    run: RunMaterial, scan: UnitScan, gains: Mapping[UnitKey, float], *, most: int = UNITS_LISTED
) -> TaskList:
    """Return the first `most` units: failed ones first, those with the largest gains before all."""
    counts: Counter[str] = Counter()

    def counted() -> Iterator[ListedUnit]:
        for one in _outcomes(run, scan):
            counts[one.state] += 1
            yield one._replace(value=-gains[one.key]) if one.key in gains else one

    units = tuple(nsmallest(most, counted(), key=lambda one: one.rank))
    shown = {one.key for one in units}
    causes = _count_causes(_failures(run), shown)
    return TaskList(units, causes, counts, sum(counts.values()) - len(units))


def _failures(run: RunMaterial) -> Iterable[Failure]:
    if isinstance(run, AtomicRun):
        return run.summary.scores.failures
    judges = run.summary.scores.judges
    return judges[0].failures if judges else ()


def _count_causes(
    failures: Iterable[Failure], shown: Collection[UnitKey]
) -> dict[UnitKey, Counter[FailureCause]]:
    found: dict[UnitKey, Counter[FailureCause]] = {}
    for one in failures:
        if (one.task, one.epoch) in shown:
            found.setdefault((one.task, one.epoch), Counter())[one.cause] += 1
    return found


def _outcomes(run: RunMaterial, scan: UnitScan) -> Iterator[ListedUnit]:
    """Yield every unit; those without a score are unscored."""
    scored: set[UnitKey] = set()
    for one in _scored_units(run):
        scored.add(one.key)
        yield one
    noun: Noun = "leaf" if run_mode(run) == "workflow" else "step"
    for key in scan.keys:
        if key not in scored:
            yield ListedUnit(key, "unscored", 0.0, "\N{EN DASH}", noun, (), "no score")


def _scored_units(run: RunMaterial) -> Iterator[ListedUnit]:
    if not isinstance(run, AtomicRun):
        scores = run.summary.scores
        for task in scores.judges[0].tasks if scores.judges else ():
            yield _judged_unit(task, scores.leaf_threshold, scores.root_threshold)
        return
    failed: dict[UnitKey, set[str]] = {}
    for one in run.summary.scores.failures:
        failed.setdefault((one.task, one.epoch), set()).add(one.place)
    for score in run.summary.scores.units:
        yield _atomic_unit(score, failed.get((score.task, score.epoch), set()))


def _judged_unit(task: TaskScore, leaf_threshold: float, root_threshold: float) -> ListedUnit:
    states = tuple(
        "unscored"
        if leaf.value is None
        else ("passed" if succeeds(leaf.value, leaf_threshold) else "failed")
        for leaf in task.leaves
    )
    state = score_state(task.root, root_threshold)
    value = -states.count("failed") if task.root is None else task.root
    score = "\N{EN DASH}" if task.root is None else f"{task.root:.2f}"
    strip = describe_strip(states, "leaf", PLURALS["leaf"])
    return ListedUnit((task.task, task.epoch), state, value, score, "leaf", states, strip)


def _atomic_unit(score: UnitScore, failed: Collection[str]) -> ListedUnit:
    key = (score.task, score.epoch)
    counts = score.strict
    state = "failed" if failed else "passed"
    if isinstance(counts, StrictStepCounts):
        total = max(counts.inst_total, 1)
        states = tuple(
            "failed" if f"step {number}" in failed else "passed"
            for number in range(1, counts.inst_total + 1)
        )
        right = states.count("passed")
        strip = describe_strip(states, "step", PLURALS["step"])
        return ListedUnit(key, state, right / total, f"{right}/{total}", "step", states, strip)
    worth, whole = table.ANS_ACC_I.part(counts)
    if not whole:
        return ListedUnit(key, state, 1.0, "\N{EN DASH}", "task", (), "nothing to score")
    kind = "answer" if counts.answer_total else "image"
    return ListedUnit(key, state, worth, f"{worth:.2f}", "task", (), f"{kind} worth {worth:.2f}")


def view_row(number: int, one: ListedUnit, found: TaskList, scan: UnitScan) -> TaskRow:
    """Return the closed row of a unit."""
    causes = found.causes.get(one.key, Counter())
    title, small = scan.about.get(one.key[0], ("", ""))
    work = scan.work.get(one.key)
    return TaskRow(
        anchor=anchor(number, *one.key),
        name=unit_name(*one.key),
        title=title,
        small=small,
        state=one.state,
        score=one.score,
        states=one.states,
        strip=one.strip,
        causes=tuple(CauseCount(*pair) for pair in causes.most_common(CAUSES_IN_ROW)),
        work="" if work is None else work.text,
        work_small="" if work is None else ", ".join(work.kinds),
        order=one.value,
    )


def pack_rows(
    units: Sequence[ListedUnit], found: TaskList, scan: UnitScan
) -> dict[str, object] | None:
    """Return the rows that only the page's script shows, as small as possible.

    Tasks and causes are listed once; a row names them by their index.
    """
    if not units:
        return None
    tasks = {task: index for index, task in enumerate(dict.fromkeys(one.key[0] for one in units))}
    causes = {name: index for index, name in enumerate(found.cause_names())}
    rows = []
    for one in units:
        work = scan.work.get(one.key)
        own = found.causes.get(one.key, Counter()).most_common(CAUSES_IN_ROW)
        rows.append(
            [
                tasks[one.key[0]],
                one.key[1],
                STATES.index(one.state),
                one.score,
                one.strip,
                [number for cause, count in own for number in (causes[cause], count)],
                "" if work is None else work.text,
                round(one.value, 4),
            ]
        )
    return {
        "tasks": [[*map(show_hidden, (task, *scan.about.get(task, ("", ""))))] for task in tasks],
        "causes": list(causes),
        "states": STATES,
        "rows": rows,
    }


def describe_list(found: TaskList, cards: int) -> str:
    """Say what the list leaves out of a card or of the page."""
    listed = len(found.units)
    parts = []
    if cards < listed:
        parts.append(
            f"{format_count(cards, 'task')} of {listed:,} can be opened here, the worst first; "
            "`gta view RUN --task ID` shows any other."
        )
    if found.left_out:
        parts.append(f"{found.left_out:,} more are not listed.")
    return " ".join(parts)
