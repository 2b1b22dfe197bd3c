"""Verdicts of checks in the tables of judges, and who decides a leaf."""

from collections.abc import Iterable, Mapping, Sequence

from gta_bench.records.checks import CHECK
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint

FULL = 10.0


def is_open_to_judge(leaf: Checkpoint, checked: VerdictRow | None) -> bool:
    """Whether a judge decides a leaf, given the verdict of its checks, if there is one yet."""
    if leaf.by == "check-then-judge":
        verdict = None if checked is None else checked.verdict
        return isinstance(verdict, Scored) and verdict.value >= FULL
    return leaf.by == "judge"


def apply_checks(
    units: Sequence[WorkflowUnit], rows: Iterable[VerdictRow], judges: Iterable[str]
) -> list[VerdictRow]:
    """Return the rows in which every judge's table has the verdicts of checks that count.

    A judge's own verdict on a leaf that a check decides does not count. Without any judge, the
    checks have a table of their own.
    """
    given = list(rows)
    checked = {row.key: row for row in given if row.key.judge == CHECK}
    judged = [row for row in given if row.key.judge != CHECK]
    if not any(leaf.checks for unit in units for leaf in unit.task.leaves()):
        return judged
    names = sorted({*judges, *(row.key.judge for row in judged)}) or [CHECK]
    repeats = _count_repeats(judged)
    decided: dict[tuple[str, int, str], VerdictRow | None] = {}
    for unit in units:
        for leaf in unit.task.leaves():
            row = checked.get(check_key(unit, leaf))
            if not is_open_to_judge(leaf, row):
                decided[unit.task.id, unit.epoch, leaf.id] = row
    kept = [row for row in judged if (row.key.task, row.key.epoch, row.key.leaf) not in decided]
    for name in names:
        for repeat in range(1, repeats.get(name, 1) + 1):
            kept += [
                row.model_copy(
                    update={
                        "key": row.key.model_copy(update={"judge": name, "repeat": repeat}),
                        "model": CHECK,
                    }
                )
                for row in decided.values()
                if row is not None
            ]
    return kept


def drop_gates(units: Iterable[WorkflowUnit], rows: Iterable[VerdictRow]) -> list[VerdictRow]:
    """Return the rows without verdicts of checks that only decide whether a judge is asked.

    Such a check and the judge answer different questions, so they cannot disagree. The units are
    read only if there are verdicts of checks.
    """
    given = list(rows)
    if not any(row.key.judge == CHECK for row in given):
        return given
    gates = {
        check_key(unit, leaf)
        for unit in units
        for leaf in unit.task.leaves()
        if leaf.by == "check-then-judge"
    }
    return [row for row in given if row.key not in gates]


def check_key(unit: WorkflowUnit, leaf: Checkpoint) -> VerdictKey:
    """Return the key under which the verdict of a leaf's checks is stored."""
    return VerdictKey(task=unit.task.id, epoch=unit.epoch, leaf=leaf.id, judge=CHECK)


def _count_repeats(rows: Iterable[VerdictRow]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row.key.judge] = max(found.get(row.key.judge, 1), row.key.repeat)
    return found
