"""`gta run workflow`: a system on GTA-Workflow, from the first call to the judged scores."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from gta_bench.cli.grouping import GroupedCommand, options_of
from gta_bench.cli.judging import judge_with_bar
from gta_bench.cli.options import data_option
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.report import write_reports
from gta_bench.cli.run_options import (
    PlannedRun,
    estimate_begun,
    plan_runs,
    run_options,
    run_settings,
    say_estimate,
)
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.records.run import FeedbackLevel
from gta_bench.running.backends.backend import Backend
from gta_bench.running.estimate import UsageRange, estimate_run
from gta_bench.running.estimate_judging import estimate_judging
from gta_bench.running.feedback import Judged, JudgeRound, run_rounds
from gta_bench.running.judge_run import Judging as Asked
from gta_bench.running.judge_run import plan_judging
from gta_bench.running.preflight import check_start
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings


@click.command("workflow", cls=GroupedCommand)
@run_options
@options_of("Scoring")(
    "--judge",
    "judges",
    multiple=True,
    help="Model that judges what was delivered; judge.model of gta.toml unless given.",
)
@options_of("Scoring")(
    "--feedback-rounds",
    "rounds",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Times that failing leaves go back to the system, which continues in its workspace.",
)
@options_of("Scoring")(
    "--feedback",
    "level",
    type=click.Choice(["pass-fail", "score", "reason"]),
    default="pass-fail",
    show_default=True,
    help="What goes back: the leaf's number; its score too; requirement and reason too.",
)
@data_option
@click.pass_obj
@click.pass_context
def workflow_command(
    context: click.Context,
    config_file: str | None,
    /,
    judges: tuple[str, ...],
    rounds: int,
    level: FeedbackLevel,
    only_estimate: bool,
    preflight: bool,
    folder: str | None,
    **options: Any,
) -> None:
    """GTA-Workflow with a model and an agent.

    The same command continues an unfinished run; more tasks or epochs extend it.
    """
    settings = run_settings(config_file, {"data.workflow": folder}, options)
    judges = judges or ((settings.judge.model,) if settings.judge.model else ())
    if rounds:
        _check_rounds(judges, **options)
    judging = plan_judging(judges, settings) if judges else None
    named = tuple(model.name for model in judging.models) if judging is not None else ()
    planned = plan_runs("workflow", "workflow", settings, judges=named, **options)
    if only_estimate:
        for run in planned.runs:
            own = estimate_run(run.manifest, run.resources, run.out, rounds=rounds)
            say_estimate(run, [*own, *_estimate_judges(run, judging, rounds)])
        return
    check_start(planned.runs, judging, ask=preflight, watching=unit_bar, say=say)
    folders: list[StorePath] = []
    complete = True
    with planned.backend() as backend:
        for run in planned.runs:
            own = estimate_begun(run, rounds=rounds)
            for one in (*own, *_estimate_judges(run, judging, rounds)):
                say(str(one))
            for played, judged in run_rounds(
                run.manifest,
                run.resources,
                run.out,
                lambda folder: unit_bar(str(folder)),
                _judging(judging, settings, backend, run.manifest.spec.tasks),
                rounds=rounds,
                level=level,
                backend=backend,
            ):
                folders.append(played)
                complete = complete and judged.scores.complete and not judged.stopped
    write_reports(folders)
    context.exit(0 if complete else 1)


def _check_rounds(judges: Sequence[str], *, harness: Harness | None, **_: Any) -> None:
    if len(judges) != 1:
        raise UsageError("--feedback-rounds needs exactly one --judge: its verdicts go back.")
    if harness is not None:
        raise UsageError("--feedback-rounds is for our agents: a harness ends with its task.")


def _estimate_judges(run: PlannedRun, asked: Asked | None, rounds: int) -> list[UsageRange]:
    if asked is None:
        return []
    return estimate_judging(run.manifest, run.resources, run.out, asked, rounds=rounds)


def _judging(
    planned: Asked | None, settings: Settings, backend: Backend, tasks: tuple[str, ...]
) -> JudgeRound:
    asked = None if planned is None else replace(planned, tasks=tasks)

    def judge(folder: StorePath) -> Judged:
        found = judge_with_bar(folder, asked, backend) if asked is not None else []
        stopped = any(one.stopped for one in found)
        name = found[0].judge if found else ""
        return Judged(name, score_workflow_run(folder, settings), stopped)

    return judge
