"""Judging a stored run: the evidence of every unit once, then each judge in turn."""

import asyncio
import re
from collections.abc import Collection
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
from gta_bench.tasks.evidence import EvidenceSource, MadeEvidence, RunEvidence
from gta_bench.tasks.judging import (
    ROLE,
    evidence_source,
    judge_task,
    judgeable_units,
    open_judge,
)
from gta_bench.tasks.models import ChosenModel, choose_model, open_model

JUDGING = "judging"


@dataclass(frozen=True)
class Judging:
    """Which judges are asked, and how."""

    models: tuple[ChosenModel, ...]
    options: JudgeOptions
    repeats: int
    settings: Settings


class JudgedBy(NamedTuple):
    """A judge's name in the run, and how many leaves it was asked about now."""

    judge: str
    asked: int


def plan_judging(names: tuple[str, ...], settings: Settings) -> Judging:
    """The judges of the command line, or the one of gta.toml."""
    chosen = names or ((settings.judge.model,) if settings.judge.model else ())
    if not chosen:
        raise UsageError("No judge is named: --judge provider/model, or judge.model in gta.toml.")
    models = tuple(choose_model(name, settings) for name in chosen)
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


def judge_run(
    run: Path,
    judging: Judging,
    listener: Listener,
    *,
    source: EvidenceSource | None = None,
    models: tuple[Model, ...] = (),
) -> tuple[JudgedBy, ...]:
    """Ask every judge for the scores that the run does not have yet.

    `source` stands for the run's own evidence, `models` for those that `judging` names.
    """
    units = judgeable_units(run)
    evidence = asyncio.run(_made_evidence(run, units.values(), judging.settings, source))
    asked = models or tuple(open_model(one, judging.settings.budget) for one in judging.models)
    done = []
    for model in asked:
        judge = open_judge(model, judging.options, repeats=judging.repeats)
        known = read_verdicts(run)
        open_leaves = {
            name: pending_leaves(
                unit.task, evidence.made(unit), judge, epoch=unit.epoch, known=known
            )
            for name, unit in units.items()
        }
        wanted = [name for name, count in open_leaves.items() if count]
        if wanted:
            with evidence_source(run, evidence):
                _evaluate(run, judge, wanted, judging.settings, listener)
        done.append(JudgedBy(judge.name, sum(open_leaves.values())))
    return tuple(done)


async def _made_evidence(
    run: Path,
    units: Collection[WorkflowUnit],
    settings: Settings,
    source: EvidenceSource | None,
) -> MadeEvidence:
    if source is not None:
        evidence = MadeEvidence(source)
        await evidence.make(units)
        return evidence
    own = RunEvidence(run, settings)
    evidence = MadeEvidence(own)
    async with own.ready():
        await evidence.make(units)
    return evidence


def _evaluate(
    run: Path, judge: Judge, wanted: list[str], settings: Settings, listener: Listener
) -> None:
    # Inspect prints a banner on stdout about hooks that are there when the first model is made.
    from gta_bench.tasks.progress import sample_progress

    task = judge_task(
        run=str(run), repeats=judge.repeats, **judge.options.model_dump(exclude={"reply_tokens"})
    )
    context = RunContext(files=files_folder(run), settings=settings)
    with sample_progress(listener), run_context(context):
        inspect_eval(
            task,
            model=judge.model,
            model_roles={ROLE: judge.model},
            sample_id=wanted,
            log_dir=str(judging_folder(run, judge.name)),
            display="none",
            log_buffer=1,
            log_realtime=False,
            log_images=False,
            max_samples=settings.budget.max_connections,
            ctl_server=False,
            score_display=False,
            log_level="error",
        )


def judging_folder(run: Path, judge: str) -> Path:
    """Where the logs of one judge lie; a name of its own even where two clean to the same."""
    clean = re.sub(r"[^A-Za-z0-9.-]+", "-", judge).strip("-.")
    return run / JUDGING / f"{clean}-{sha256(judge.encode()).hexdigest()[:8]}"
