"""A judged task as a tree with scores, reasons and evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gta_bench.errors import format_count
from gta_bench.metrics.strict.workflow import node_score, succeeds
from gta_bench.records.checks import CHECK
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import JudgeScores, LeafScore, TaskScore
from gta_bench.reports.tables import LONGEST, line


@dataclass(frozen=True)
class VerdictView:
    """One verdict of a judge: its score and reason, or why there is no score."""

    repeat: int
    score: float | None
    reason: str
    used: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeView:
    """A checkpoint; `state` is passed, failed or unscored."""

    id: str
    weight: float
    requirement: str
    score: float | None
    state: str
    verdicts: tuple[VerdictView, ...] = ()
    children: tuple["NodeView", ...] = ()


@dataclass(frozen=True)
class TaskView:
    """A unit according to one judge."""

    judge: str
    repeats: int
    root: NodeView
    scored: int
    leaves: int


def view_task(
    unit: WorkflowUnit,
    judge: JudgeScores,
    verdicts: Mapping[VerdictKey, VerdictRow],
    *,
    leaf_threshold: float,
    root_threshold: float,
) -> TaskView:
    """Return the tree of a unit with the judge's verdict on each leaf."""
    score = next(one for one in judge.tasks if (one.task, one.epoch) == (unit.task.id, unit.epoch))
    known = {leaf.leaf: leaf.value for leaf in score.leaves if leaf.value is not None}
    outcomes = {leaf.leaf: leaf for leaf in score.leaves}

    def view(node: Checkpoint) -> NodeView:
        value = node_score(node, known)
        found = () if node.children else _view_verdicts(score, outcomes[node.id], judge, verdicts)
        return NodeView(
            id=node.id,
            weight=node.weight,
            requirement=node.requirements or "",
            score=value,
            state=score_state(value, leaf_threshold),
            verdicts=tuple(found),
            children=tuple(view(child) for child in node.children),
        )

    root = NodeView(
        id=unit.task.id,
        weight=1,
        requirement=unit.task.category or "",
        score=score.root,
        state=score_state(score.root, root_threshold),
        children=tuple(view(node) for node in unit.task.checkpoints),
    )
    return TaskView(judge.judge, judge.repeats, root, len(known), len(score.leaves))


def format_tree(unit: WorkflowUnit, view: TaskView) -> str:
    """Return the tree as text, with score, reason and evidence of each leaf."""
    epoch = "" if unit.epoch == 1 else f", epoch {unit.epoch}"
    files = ", ".join(file.path for file in unit.deliverables) or "nothing"
    head = [
        f"Task {unit.task.id}{epoch}: {score_text(view.root.score)} by {view.judge}, "
        f"{view.scored} of {format_count(view.leaves, 'leaf', 'leaves')} scored",
        f"delivered {files}",
    ]
    return "\n".join([*head, *_lines(view.root.children, "")])


def score_text(score: float | None) -> str:
    """Return a score with two decimals."""
    return "unscored" if score is None else f"{score:.2f}"


def score_state(score: float | None, threshold: float) -> str:
    """Return passed, failed or unscored."""
    if score is None:
        return "unscored"
    return "passed" if succeeds(score, threshold) else "failed"


def _view_verdicts(
    score: TaskScore,
    outcome: LeafScore,
    judge: JudgeScores,
    verdicts: Mapping[VerdictKey, VerdictRow],
) -> Iterator[VerdictView]:
    # Checks decide once, and their verdicts count for every judge.
    name, repeats = (judge.judge, judge.repeats) if outcome.by is None else (CHECK, 1)
    first = VerdictKey(task=score.task, epoch=score.epoch, leaf=outcome.leaf, judge=name)
    for repeat in range(1, repeats + 1):
        row = verdicts.get(first.model_copy(update={"repeat": repeat}))
        match None if row is None else row.verdict:
            case Scored(value=value, reason=reason, used=used):
                yield VerdictView(repeat, value, reason, used)
            case Unscored(cause=cause, detail=detail):
                yield VerdictView(repeat, None, f"{cause}: {detail}" if detail else cause)
            case None:
                yield VerdictView(repeat, None, ", ".join(outcome.causes))


def _lines(nodes: tuple[NodeView, ...], indent: str) -> Iterator[str]:
    for number, node in enumerate(nodes, start=1):
        last = number == len(nodes)
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        weight = "" if node.weight == 1 else f" (weight {node.weight:g})"
        about = f"{node.id}{weight}: {score_text(node.score)}. {line(node.requirement)}"
        yield f"{indent}{branch}{about}"
        for verdict in node.verdicts:
            used = f" [{', '.join(verdict.used)}]" if verdict.used else ""
            yield f"{indent}{below}   {line(verdict.reason, 3 * LONGEST)}{used}"
        yield from _lines(node.children, f"{indent}{below}")
