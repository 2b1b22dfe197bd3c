"""`gta_bench/judge`: a judge scores the leaves of a stored Workflow run."""

import asyncio
from collections.abc import Collection, Iterator, Sequence

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, Model, get_model
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.errors import GtaError, RunError
from gta_bench.judging.judge import (
    Judge,
    Known,
    judge_unit,
    mark_without_evidence,
    verdict_settings,
)
from gta_bench.judging.options import Defense, JudgeOptions, Visibility, judge_name
from gta_bench.judging.own import OwnJudge
from gta_bench.judging.run_evidence import EvidenceSource, RunEvidence
from gta_bench.judging.spending import Spending
from gta_bench.records.progress import short_cause
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Cause, Scored, Unscored, VerdictRow
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import UnitStream
from gta_bench.runs.store import StorePath, store_path
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.tasks.context import UNSCORED, current_context, current_settings, current_spending

ROLE = "judge"
_ROWS = "gta_verdicts"
# Faults of the provider or of this machine, whose details say what to do.
_EXPLAINED: frozenset[Cause] = frozenset(
    {"timeout", "rate_limited", "http_error", "model_error", "evidence_failed", "judge_failed"}
)


def open_judge(model: Model, options: JudgeOptions, *, repeats: int = 1, name: str = "") -> Judge:
    """Return the judge for a model and options; by default, they determine its name.

    Of the options, a function has only those that decide what it sees.
    """
    if isinstance(model.api, OwnJudge):
        options = JudgeOptions(visibility=options.visibility, inputs=options.inputs)
    asked = verdict_settings(model.config, model.model_args)
    return Judge(model, name or judge_name(str(model), options, asked), options, repeats)


def find_judgeable_units(
    run: StorePath, tasks: Collection[str] | None = None
) -> dict[str, WorkflowUnit]:
    """Return the units of a stored run that a judge can score, by the ids of their samples."""
    return {
        unit.task.id if unit.epoch == 1 else f"{unit.task.id}.{unit.epoch}": unit
        for unit in read_judgeable_units(run, tasks)
    }


def read_judgeable_units(
    run: StorePath, tasks: Collection[str] | None = None
) -> Iterator[WorkflowUnit]:
    """Yield the units of a stored run that a judge can score.

    Units that failed through our fault and units that were not delivered are left out. With
    `tasks`, only those are read.
    """
    manifest = read_manifest(run)
    if manifest.spec.mode != "workflow":
        raise RunError(f"{run} is a run of GTA-Atomic, which is scored without a judge.")
    wanted = [task for task in manifest.spec.tasks if tasks is None or task in tasks]
    for unit in UnitStream(log_folder(run), wanted, manifest.spec.epochs, WorkflowUnit):
        if unit.failure is None and unit.delivered:
            yield unit


@task(name="judge")
def judge_task(
    run: str,
    visibility: Visibility = "full",
    leaves_per_call: int = 1,
    inputs: bool = True,
    pictures: bool = True,
    context_tokens: int = JudgeOptions().context_tokens,
    batch: bool = False,
    control: bool = False,
    without: Sequence[Defense] = (),
    repeats: int = 1,
    name: str = "",
) -> Task:
    """Judge the leaves of a stored GTA-Workflow run that have no score of this judge yet.

    `run` is the run's folder. The judge is the model of the role `judge`, and its verdicts are
    stored under `name` (default: a name made from model and options).
    """
    options = JudgeOptions(
        visibility=visibility,
        leaves_per_call=leaves_per_call,
        inputs=inputs,
        pictures=pictures,
        context_tokens=context_tokens,
        batch=batch,
        control=control,
        without=tuple(without),
    )
    folder, context = store_path(run), current_context()
    given = None if context is None else context.material
    source: EvidenceSource
    if given is not None and given.run == folder:
        units, source = given.units, given.evidence
    else:
        units, source = find_judgeable_units(folder), RunEvidence(folder, current_settings())
    samples = [Sample(id=name, input=unit.task.request) for name, unit in units.items()]
    return Task(
        dataset=MemoryDataset(samples, name="gta-judge"),
        solver=judge_leaves(run, units, source, options, repeats, name),
        scorer=share_scored(),
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def judge_leaves(
    run: str,
    units: dict[str, WorkflowUnit],
    source: EvidenceSource,
    options: JudgeOptions,
    repeats: int,
    name: str,
) -> Solver:
    """Render a unit's evidence and ask the judge for every missing score."""
    folder = store_path(run)
    known = read_verdicts(folder)
    spending = current_spending()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        unit = units[str(state.sample_id)]
        judge = open_judge(get_model(role=ROLE), options, repeats=repeats, name=name)
        rows = await judge_and_store(folder, unit, judge, source, known, spending)
        state.store.set(_ROWS, [row.model_dump(mode="json") for row in rows])
        state.store.set(UNSCORED, _unscored_cause(rows))
        state.messages = [
            ChatMessageUser(content=unit.task.request),
            ChatMessageAssistant(
                content="\n".join(map(_format_row, rows)) or "No score was missing."
            ),
        ]
        return state

    return solve


async def judge_and_store(
    run: StorePath,
    unit: WorkflowUnit,
    judge: Judge,
    source: EvidenceSource,
    known: Known,
    spending: Spending,
) -> Sequence[VerdictRow]:
    """Return the new verdicts on a unit; each is stored in the run at once."""

    async def keep(rows: Sequence[VerdictRow]) -> None:
        spending.add(rows)
        await asyncio.to_thread(append_verdicts, run, rows)

    try:
        evidence = await source.evidence(unit)
    except GtaError as exc:
        rows = mark_without_evidence(unit.task, judge, str(exc), epoch=unit.epoch, known=known)
        await keep(rows)
        return rows
    return await judge_unit(
        unit.task,
        evidence,
        judge,
        epoch=unit.epoch,
        known=known,
        pictures=source.picture,
        keep=keep,
        stop=spending.over,
        turn=spending.turn,
    )


@scorer(metrics=[])
def share_scored() -> Scorer:
    """Return the share of the requested leaves that got a score; the run has the scores."""

    async def score(state: TaskState, target: Target) -> Score:
        rows = [VerdictRow.model_validate(row) for row in state.store.get(_ROWS)]
        scored = sum(isinstance(row.verdict, Scored) for row in rows)
        return Score(
            value=scored / len(rows) if rows else 1.0, explanation="\n".join(map(_format_row, rows))
        )

    return score


def _unscored_cause(rows: Sequence[VerdictRow]) -> str | None:
    """Return why the first leaf without a score has none; quotes only faults of the provider."""
    found = (row.verdict for row in rows if isinstance(row.verdict, Unscored))
    first = next(found, None)
    if first is None:
        return None
    detail = f": {first.detail}" if first.cause in _EXPLAINED else ""
    return short_cause(f"no score, {first.cause}{detail}")


def _format_row(row: VerdictRow) -> str:
    verdict = row.verdict
    if isinstance(verdict, Scored):
        return f"{row.key.leaf}: {verdict.value:g}. {verdict.reason}"
    return f"{row.key.leaf}: unscored, {verdict.cause}. {verdict.detail}"
