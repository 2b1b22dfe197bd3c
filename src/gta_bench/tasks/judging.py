"""`gta_bench/judge`: the leaves of a stored Workflow run before a judge."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, Model, get_model
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.errors import GtaError, RunError
from gta_bench.judging.judge import Judge, Known, judge_unit, without_evidence
from gta_bench.judging.options import JudgeOptions, Visibility, judge_name
from gta_bench.records.run import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_workflow_units
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.tasks.context import current_settings, current_spending
from gta_bench.tasks.evidence import EvidenceSource, RunEvidence
from gta_bench.tasks.spending import Spending

ROLE = "judge"
_ROWS = "gta_verdicts"
_sources: dict[Path, EvidenceSource] = {}


@contextmanager
def evidence_source(run: Path, source: EvidenceSource) -> Iterator[None]:
    """What is judged of that run inside the block takes its evidence there."""
    _sources[run] = source
    try:
        yield
    finally:
        del _sources[run]


def open_judge(model: Model, options: JudgeOptions, *, repeats: int = 1) -> Judge:
    """The judge that a model is under these options."""
    config = model.config
    name = judge_name(str(model), options, temperature=config.temperature, seed=config.seed)
    return Judge(model, name, options, repeats)


def judgeable_units(run: Path) -> dict[str, WorkflowUnit]:
    """The units of a stored run that a judge can be asked about, by their samples' ids."""
    manifest = read_manifest(run)
    if manifest.mode != "workflow":
        raise RunError(f"{run} is a run of GTA-Atomic, which needs no judge.")
    found = read_workflow_units(log_folder(run), manifest.tasks, manifest.epochs)
    return {_sample_id(unit): unit for unit in found.units if unit.failure is None}


def _sample_id(unit: WorkflowUnit) -> str:
    return unit.task.id if unit.epoch == 1 else f"{unit.task.id}.{unit.epoch}"


@task(name="judge")
def judge_task(
    run: str,
    visibility: Visibility = "full",
    leaves_per_call: int = 1,
    inputs: bool = True,
    pictures: bool = True,
    context_tokens: int = JudgeOptions().context_tokens,
    batch: bool = False,
    repeats: int = 1,
) -> Task:
    """Judge the leaves of a stored GTA-Workflow run that have no score of this judge yet.

    `run` is the run's folder; the judge is the model of the role `judge`.
    """
    options = JudgeOptions(
        visibility=visibility,
        leaves_per_call=leaves_per_call,
        inputs=inputs,
        pictures=pictures,
        context_tokens=context_tokens,
        batch=batch,
    )
    units = judgeable_units(Path(run))
    samples = [Sample(id=name, input=unit.task.request) for name, unit in units.items()]
    return Task(
        dataset=MemoryDataset(samples, name="gta-judge"),
        solver=judge_leaves(run, units, options, repeats),
        scorer=share_scored(),
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def judge_leaves(
    run: str, units: dict[str, WorkflowUnit], options: JudgeOptions, repeats: int
) -> Solver:
    """Make a unit's evidence and ask the judge for every score that is missing."""
    folder = Path(run)
    known = read_verdicts(folder)
    source = _sources.get(folder) or RunEvidence(folder, current_settings())
    spending = current_spending()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        unit = units[str(state.sample_id)]
        judge = open_judge(get_model(role=ROLE), options, repeats=repeats)
        rows = await judged(folder, unit, judge, source, known, spending)
        state.store.set(_ROWS, [row.model_dump(mode="json") for row in rows])
        state.messages = [
            ChatMessageUser(content=unit.task.request),
            ChatMessageAssistant(content="\n".join(map(_line, rows)) or "Nothing was open."),
        ]
        return state

    return solve


async def judged(
    run: Path,
    unit: WorkflowUnit,
    judge: Judge,
    source: EvidenceSource,
    known: Known,
    spending: Spending,
) -> Sequence[VerdictRow]:
    """The new verdicts on a unit, each kept in the run as soon as it is there."""

    async def keep(rows: Sequence[VerdictRow]) -> None:
        spending.add(rows)
        await asyncio.to_thread(append_verdicts, run, rows)

    try:
        evidence = await source.evidence(unit)
    except GtaError as exc:
        rows = without_evidence(unit.task, judge, str(exc), epoch=unit.epoch, known=known)
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
    )


@scorer(metrics=[])
def share_scored() -> Scorer:
    """The share of the asked leaves that got a score; the scores themselves are the run's rows."""

    async def score(state: TaskState, target: Target) -> Score:
        rows = [VerdictRow.model_validate(row) for row in state.store.get(_ROWS)]
        scored = sum(isinstance(row.verdict, Scored) for row in rows)
        return Score(
            value=scored / len(rows) if rows else 1.0, explanation="\n".join(map(_line, rows))
        )

    return score


def _line(row: VerdictRow) -> str:
    verdict = row.verdict
    if isinstance(verdict, Scored):
        return f"{row.key.leaf}: {verdict.value:g}. {verdict.reason}"
    return f"{row.key.leaf}: unscored, {verdict.cause}. {verdict.detail}"
