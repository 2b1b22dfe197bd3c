"""Small Workflow units and verdicts, made for one test each."""

from collections.abc import Iterable, Mapping

from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask

SEVEN = Thresholds(7, 7)
TREE = (
    Checkpoint(
        id="a",
        weight=2,
        children=(
            Checkpoint(id="a1", requirements="first"),
            Checkpoint(id="a2", requirements="second", weight=3),
        ),
    ),
    Checkpoint(id="b", requirements="third"),
)


def unit(name: str = "1", **changes: object) -> WorkflowUnit:
    task = WorkflowTask(
        id=name, request="Do it.", category="Plans", tools=(), attachments=(), checkpoints=TREE
    )
    return WorkflowUnit.model_validate({"task": task, **changes})


def rows(
    values: Mapping[str, float | str],
    task: str = "1",
    *,
    judge: str = "j",
    repeat: int = 1,
    **changes: object,
) -> Iterable[VerdictRow]:
    """A row for each leaf: a number is its score, a word the cause why it has none."""
    for leaf, value in values.items():
        verdict = (
            Unscored.model_validate({"cause": value})
            if isinstance(value, str)
            else Scored(value=value, reason=f"{leaf} is worth {value}")
        )
        key = VerdictKey(task=task, leaf=leaf, judge=judge, repeat=repeat)
        yield VerdictRow.model_validate({"key": key, "verdict": verdict, **changes})
