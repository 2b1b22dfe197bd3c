"""Verdicts of checks in the tables of judges, and who decides a leaf."""

from collections.abc import Iterable, Mapping

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
    unit: WorkflowUnit, rows: Iterable[VerdictRow], repeats: Mapping[str, int]
) -> list[VerdictRow]:
    """Return a unit's rows in which every judge's table has the verdicts of checks that count.

    A judge's own verdict on a leaf that a check decides does not count. `repeats` has every judge
    of the run with the number of its repeats.
    """
    given = list(rows)
    kept = [row for row in given if row.key.judge != CHECK]
    if not any(leaf.checks for leaf in unit.task.leaves()):
        return kept
    checked = {row.key: row for row in given if row.key.judge == CHECK}
    decided: dict[str, VerdictRow | None] = {}
    for leaf in unit.task.leaves():
        row = checked.get(check_key(unit, leaf))
        if not is_open_to_judge(leaf, row):
            decided[leaf.id] = row
    kept = [row for row in kept if row.key.leaf not in decided]
    for name, number in repeats.items():
        for repeat in range(1, number + 1):
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


def check_key(unit: WorkflowUnit, leaf: Checkpoint) -> VerdictKey:
    """Return the key under which the verdict of a leaf's checks is stored."""
    return VerdictKey(task=unit.task.id, epoch=unit.epoch, leaf=leaf.id, judge=CHECK)
