"""Measure the ceiling of a judge: right and wrong work of task folders, without their checks.

All works are units of one ordinary run, so that they take the path of a system's work to the judge.
Only the checks are gone: the judge decides every leaf, and the task folder says what is true.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from inspect_ai.model import Model

from gta_bench.authoring.pilot import build_work, find_reason, store_units
from gta_bench.authoring.proofs import AuthoredTask, Proof
from gta_bench.authoring.readiness import find_dependents
from gta_bench.errors import UsageError
from gta_bench.harnesses.delivery import store_task_inputs
from gta_bench.judge_quality.attacks.corpus import build_manifest
from gta_bench.judge_quality.ceiling import KnownLeaf, find_suspects, group_errors, sum_by_task
from gta_bench.judge_quality.paired_judges import by_task
from gta_bench.metrics.strict.workflow import BEST, root_score, succeeds
from gta_bench.metrics.workflow_scores import find_deliverable_kinds
from gta_bench.records.ceiling import Ceiling, GoldScores
from gta_bench.records.checks import AnswerContains, AnswerLine
from gta_bench.records.cost import read_cost, sum_costs
from gta_bench.records.digests import content_digest
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.running.check_run import read_score
from gta_bench.running.judge_run import JudgedBy, Judging, Watching, judge_run
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.directory import read_record, write_record
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.verdicts import read_judges, read_verdicts
from gta_bench.statistics.ceiling import measure_rate
from gta_bench.statistics.pooled import compute_interval

AGENT: Final = "ceiling"
CEILING_FILE: Final = "ceiling.json"
# What a leaf is about if no check names a file.
ANSWER: Final = "answer"
UNCHECKED: Final = "no check"
_Known = Mapping[VerdictKey, VerdictRow]


def measure_ceiling(
    tasks: Sequence[AuthoredTask],
    run: Path,
    judging: Judging,
    watching: Watching,
    judged: Callable[[JudgedBy], None] = lambda found: None,
    models: Sequence[Model] | None = None,
) -> Ceiling:
    """Let the judge decide every leaf of right and wrong work, and write `ceiling.json`.

    Verdicts that the folder `run` has are kept if nothing that they depend on has changed.
    `judged` is called with what the judge did, and `models` replace the one that `judging` names.
    """
    _refuse_other_judge(run, judging)
    if not any(authored.of("gold") for authored in tasks):
        raise UsageError("None of the tasks has right work in gold/, such as forged tasks have.")
    manifest = build_manifest(
        AGENT,
        [],
        digest=content_digest(AGENT),
        note="Works whose value is known, without checks: the ceiling of their judges.",
    )
    units = store_units(run, manifest, partial(_build_works, tasks))
    (found,) = judge_run(run, judging, watching, models=models)
    judged(found)
    known = read_verdicts(run)
    score_workflow_run(run, judging.settings)
    ceiling = _summarize(tasks, units, known, found.judge, judging, run)
    write_record(run / CEILING_FILE, ceiling)
    return ceiling


def _refuse_other_judge(run: Path, judging: Judging) -> None:
    """Raise UsageError if the folder has the ceiling of another judge, which would be lost.

    What a name has in brackets, such as the digest of a function, may differ.
    """
    file, asked = run / CEILING_FILE, judging.models[0].name
    if not file.is_file():
        return
    measured = read_record(file, Ceiling, "Remove it, and run `gta judge ceiling` again.").judge
    if measured.partition(" [")[0] != asked.partition(" [")[0]:
        raise UsageError(
            f"{file} is the ceiling of {measured}. Name another folder for {asked} with --out."
        )


def _build_works(tasks: Sequence[AuthoredTask], store: ArtefactStore) -> Iterator[WorkflowUnit]:
    """Yield right and wrong works as units without checks."""
    for authored in tasks:
        inputs = store_task_inputs(authored.dataset, authored.task, store)
        for proof in _list_proofs(authored):
            unit = build_work(authored, proof, inputs, store)
            task = remove_checks(authored.task).model_copy(
                update={"id": _name_work(authored, proof)}
            )
            # The digests are those of a task with checks.
            yield unit.model_copy(update={"task": task, "digests": None})


def _list_proofs(authored: AuthoredTask) -> list[Proof]:
    return [*authored.of("gold"), *authored.of("wrong")]


def _name_work(authored: AuthoredTask, proof: Proof) -> str:
    return f"{authored.task.id}/{proof.name}"


def remove_checks(task: WorkflowTask) -> WorkflowTask:
    """Return the task with every leaf decided by a judge."""

    def strip(node: Checkpoint) -> Checkpoint:
        children = tuple(map(strip, node.children))
        plain = {"checks": (), "by": "judge", "credit": "all", "children": children}
        return node.model_copy(update=plain)

    return task.model_copy(update={"checkpoints": tuple(map(strip, task.checkpoints))})


def _summarize(
    tasks: Sequence[AuthoredTask],
    units: Sequence[WorkflowUnit],
    known: _Known,
    judge: str,
    judging: Judging,
    run: Path,
) -> Ceiling:
    by_name = {unit.task.id: unit for unit in units}
    leaves, golds, unknown = list[KnownLeaf](), list[tuple[str, float]](), 0
    for authored in tasks:
        for proof in _list_proofs(authored):
            unit = by_name[_name_work(authored, proof)]
            rows = {leaf.id: _find_rows(unit, leaf, known, judge, judging.repeats)
                    for leaf in unit.task.leaves()}  # fmt: skip
            own = list(_list_leaves(authored, proof, unit, rows))
            unknown += len(rows) - len(own)
            leaves += own
            values = {leaf.leaf: leaf.value for leaf in own if leaf.value is not None}
            root = root_score(unit.task.checkpoints, values)
            if proof.kind == "gold" and root is not None:
                golds.append((authored.task.id, root))
    chosen = judging.settings.judge
    threshold = chosen.leaf_threshold
    asked = [row for key, row in known.items() if key.judge == judge]
    return Ceiling(
        created=datetime.now(UTC),
        judge=judge,
        digest=read_judges(run).of(judge)[-1].digest,
        repeats=judging.repeats,
        leaf_threshold=threshold,
        root_threshold=chosen.root_threshold,
        cost_usd=sum_costs(map(read_cost, asked)).total,
        works=len(units),
        unknown=unknown,
        unscored=sum(leaf.value is None for leaf in leaves),
        gold=_score_gold(leaves, golds, threshold, chosen.root_threshold),
        groups=tuple(group_errors(leaves, threshold)),
        suspects=tuple(find_suspects(leaves, threshold)),
        rows=tuple(sum_by_task(leaves, threshold)),
    )


def _list_leaves(
    authored: AuthoredTask,
    proof: Proof,
    unit: WorkflowUnit,
    rows: Mapping[str, Sequence[VerdictRow | None]],
) -> Iterator[KnownLeaf]:
    """Yield the leaves of a work whose truth is known.

    A leaf that needs a broken one may hold or not, unless `breaks` names it as well.
    """
    dependents = find_dependents(authored.task)
    open_leaves = {one for leaf in proof.breaks for one in dependents[leaf]} - {*proof.breaks}
    for leaf in authored.task.leaves():
        if leaf.id in open_leaves:
            continue
        yield KnownLeaf(
            task=authored.task.id,
            leaf=leaf.id,
            holds=leaf.id not in proof.breaks,
            gold=proof.kind == "gold",
            kinds=find_kinds(leaf, find_deliverable_kinds(unit)),
            type=leaf.checks[0].label.partition(".")[0] if leaf.checks else UNCHECKED,
            scores=tuple(map(read_score, rows[leaf.id])),
            says=leaf.requirements or "",
            reason=find_reason(rows[leaf.id]),
        )


def find_kinds(leaf: Checkpoint, delivered: tuple[str, ...]) -> tuple[str, ...]:
    """Return the endings of the files that a leaf is about, by its checks, or `answer`.

    A leaf whose checks name no file with an ending is about everything that was delivered.
    """
    files = (getattr(check, "file", None) for check in leaf.checks)
    endings = {PurePosixPath(file).suffix[1:].lower() for file in files if file} - {"", "*"}
    if endings:
        return tuple(sorted(endings))
    if leaf.checks and all(
        isinstance(check, (AnswerContains, AnswerLine)) for check in leaf.checks
    ):
        return (ANSWER,)
    return delivered


def _find_rows(
    unit: WorkflowUnit, leaf: Checkpoint, known: _Known, judge: str, repeats: int
) -> list[VerdictRow | None]:
    return [
        known.get(VerdictKey(task=unit.task.id, leaf=leaf.id, judge=judge, repeat=repeat))
        for repeat in range(1, repeats + 1)
    ]


def _score_gold(
    leaves: Sequence[KnownLeaf],
    roots: Sequence[tuple[str, float]],
    leaf_threshold: float,
    root_threshold: float,
) -> GoldScores:
    rows = sum_by_task((leaf for leaf in leaves if leaf.gold), leaf_threshold)
    passed = measure_rate((row.passed, row.intact) for row in rows)

    def pool(values: Sequence[tuple[str, float]], top: float) -> Interval | None:
        return compute_interval(by_task(values), top=top) if values else None

    succeeded = [(task, float(succeeds(root, root_threshold))) for task, root in roots]
    rate = pool(succeeded, 1.0)
    return GoldScores(
        leaf_sr=None if passed is None else passed.scaled(100),
        root_score=pool(roots, BEST),
        root_sr=None if rate is None else rate.scaled(100),
    )
