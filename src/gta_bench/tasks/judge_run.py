"""Judging a stored run: the evidence of every unit once, then each judge in turn."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from inspect_ai import eval as inspect_eval
from inspect_ai.model import Model

from gta_bench.errors import UsageError
from gta_bench.judging.judge import Judge, pending_leaves
from gta_bench.judging.options import JudgeOptions
from gta_bench.records.run import WorkflowUnit
from gta_bench.runs.directory import files_folder
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import JudgeSettings, Settings
from gta_bench.tasks.context import RunContext, run_context
from gta_bench.tasks.evaluation import Listener
from gta_bench.tasks.evidence import MadeEvidence, RunEvidence
from gta_bench.tasks.judging import (
    ROLE,
    evidence_source,
    judge_task,
    judgeable_units,
    open_judge,
)
from gta_bench.tasks.models import ChosenModel, choose_model, open_model
from gta_bench.tasks.spending import Spending, check_price

JUDGING = "judging"


@dataclass(frozen=True)
class Judging:
    """Which judges are asked, and how."""

    models: tuple[ChosenModel, ...]
    options: JudgeOptions
    repeats: int
    settings: Settings


class JudgedBy(NamedTuple):
    """A judge's name in the run; how many verdicts it lacked, and how many it gave now.

    `stopped` names the limit of the budget at which it was asked no more.
    """

    judge: str
    wanted: int
    scored: int
    stopped: str | None = None


# Opens a bar for a judge and the number of units before it.
Watching = Callable[[str, int], AbstractContextManager[Listener]]


def plan_judging(names: Sequence[str], settings: Settings) -> Judging:
    """The judges of these names, asked as the settings say."""
    models = tuple(choose_model(name, settings) for name in names)
    if len({model.name for model in models}) < len(models):
        raise UsageError("The same --judge is given twice.")
    return Judging(models, judge_options(settings.judge), settings.judge.repeats, settings)


def judge_options(settings: JudgeSettings) -> JudgeOptions:
    """The settings as the judge knows them."""
    return JudgeOptions(
        visibility=settings.visibility,
        leaves_per_call=settings.leaves_per_call,
        inputs=settings.inputs,
        pictures=settings.pictures,
        context_tokens=settings.context_tokens,
        batch=settings.batch,
    )


def judge_run(run: Path, judging: Judging, watching: Watching) -> Iterator[JudgedBy]:
    """Ask every judge for the scores that the run does not have yet."""
    units = judgeable_units(run)
    opened = [_opened(one, judging) for one in judging.models]
    spending = Spending(judging.settings.budget)
    evidence = asyncio.run(made_evidence(run, units.values(), judging.settings))
    for model in opened:
        judge = open_judge(model, judging.options, repeats=judging.repeats)
        before = _open_leaves(run, units, evidence, judge)
        if before:
            with evidence_source(run, evidence), watching(judge.name, len(before)) as listener:
                context = RunContext(files_folder(run), judging.settings, spending=spending)
                _evaluate(run, judge, list(before), context, listener)
        wanted = sum(before.values())
        left = sum(_open_leaves(run, units, evidence, judge).values())
        yield JudgedBy(judge.name, wanted, wanted - left, spending.over() if left else None)


def _opened(chosen: ChosenModel, judging: Judging) -> Model:
    model = open_model(chosen, judging.settings.budget)
    check_price(model, judging.settings.budget)
    if judging.options.batch:
        # A batch takes hours, and gathers whatever is in flight.
        model.config.attempt_timeout = None
        model.config.max_connections = None
    return model


def _open_leaves(
    run: Path, units: Mapping[str, WorkflowUnit], evidence: MadeEvidence, judge: Judge
) -> dict[str, int]:
    """The units with leaves that have no score of the judge, and how many each has."""
    known = read_verdicts(run)
    counts = {
        name: pending_leaves(unit.task, evidence.made(unit), judge, epoch=unit.epoch, known=known)
        for name, unit in units.items()
    }
    return {name: count for name, count in counts.items() if count}


async def made_evidence(
    run: Path, units: Collection[WorkflowUnit], settings: Settings
) -> MadeEvidence:
    """The evidence of all these units, rendered where it was not yet."""
    source = RunEvidence(run, settings)
    evidence = MadeEvidence(source)
    async with source.ready():
        await evidence.make(units)
    return evidence


def _evaluate(
    run: Path, judge: Judge, wanted: list[str], context: RunContext, listener: Listener
) -> None:
    # Inspect prints a banner on stdout about hooks that are there when the first model is made.
    from gta_bench.tasks.progress import closed_afterwards, sample_progress

    budget = context.settings.budget
    with sample_progress(listener), closed_afterwards(judge.model), run_context(context):
        inspect_eval(
            judge_task(run=str(run), repeats=judge.repeats, **judge.options.model_dump()),
            model=judge.model,
            model_roles={ROLE: judge.model},
            sample_id=wanted,
            log_dir=str(judging_folder(run, judge.name)),
            display="none",
            log_buffer=1,
            log_realtime=False,
            log_images=False,
            max_samples=len(wanted) if judge.options.batch else budget.max_connections,
            ctl_server=False,
            score_display=False,
            log_level="error",
        )


def judging_folder(run: Path, judge: str) -> Path:
    """Where the logs of one judge lie; a name of its own even where two clean to the same."""
    clean = re.sub(r"[^A-Za-z0-9.-]+", "-", judge).strip("-.")
    return run / JUDGING / f"{clean}-{sha256(judge.encode()).hexdigest()[:8]}"
