"""`gta run workflow`: run a system on GTA-Workflow, from the first call to the judged scores."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import click

from gta_bench.authoring.readiness import describe_readiness, read_thresholds
from gta_bench.cli.options import GroupedCommand, data_option, option_in
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.report import write_reports
from gta_bench.cli.run_options import (
    Options,
    PartwiseRun,
    choose_single,
    estimate_before_start,
    open_run_backend,
    plan_runs,
    run_options,
    run_settings,
    say_estimate,
)
from gta_bench.cli.score import check_with_line, judge_with_bar, say_leaks
from gta_bench.errors import UsageError
from gta_bench.records.checks import CHECK
from gta_bench.records.run import FeedbackLevel
from gta_bench.running.backends.backend import Backend
from gta_bench.running.estimate import UsageRange, estimate_run
from gta_bench.running.estimate_judging import estimate_judging
from gta_bench.running.feedback import Judged, JudgeRound, run_rounds
from gta_bench.running.judge_run import Judging, name_judge, plan_judging
from gta_bench.running.planning import PlannedRun
from gta_bench.running.preflight import check_start
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings


@click.command("workflow", cls=GroupedCommand)
@run_options
@option_in("Scoring")(
    "--judge",
    "judges",
    multiple=True,
    show_default="judge.model in gta.toml; without either, nothing is judged",
    help="Model that judges what was delivered; repeatable.",
)
@option_in("Scoring")(
    "--feedback-rounds",
    "rounds",
    type=click.IntRange(0),
    default=0,
    help="How often to send failed leaves back to the system, which continues in its workspace.",
)
@option_in("Scoring")(
    "--feedback",
    "level",
    type=click.Choice(["pass-fail", "score", "reason"]),
    default="pass-fail",
    help="What to send back for each failed leaf: its number, also its score, or also its "
    "requirement and the judge's reason.",
)
@data_option
def workflow_command(
    judges: tuple[str, ...],
    rounds: int,
    level: FeedbackLevel,
    only_estimate: bool,
    preflight: bool,
    folder: str | None,
    **options: Any,
) -> None:
    """Run a system on GTA-Workflow, then judge and score what it delivered.

    Run the same command again to continue an unfinished run; more tasks or epochs extend it. Exits
    with 1 if a leaf has no score. To judge later or with another judge: `gta score OUT --judge
    MODEL`.
    """
    runs, judging, settings = _plan(judges, folder, options, rounds=rounds)
    if rounds:
        _check_rounds(runs)
    if only_estimate:
        for run in runs:
            own = estimate_run(run.manifest, run.resources, run.out, rounds=rounds)
            say_estimate(run, [*own, *_estimate_judges(run, judging, rounds)])
        return
    check_start(runs, judging, ask=preflight, watching=unit_bar, say=say)
    folders: list[StorePath] = []
    complete = True
    with open_run_backend(runs, options) as backend:
        for run in runs:
            own = estimate_before_start(run, rounds=rounds)
            for one in (*own, *_estimate_judges(run, judging, rounds)):
                say(str(one))
            for played, judged in run_rounds(
                run.manifest,
                run.resources,
                run.out,
                lambda folder: unit_bar(str(folder)),
                _make_judge_round(judging, settings, backend, run.manifest.spec.tasks),
                rounds=rounds,
                level=level,
                backend=backend,
            ):
                folders.append(played)
                complete = complete and judged.scores.complete and not judged.stopped
    write_reports(folders)
    raise click.exceptions.Exit(0 if complete else 1)


class _Planned(NamedTuple):
    runs: list[PlannedRun]
    judging: Judging | None
    settings: Settings


def _plan(
    judges: tuple[str, ...], folder: str | None, options: Options, *, rounds: int = 0
) -> _Planned:
    settings = run_settings({"data.workflow": folder}, options)
    judges = judges or ((settings.judge.model,) if settings.judge.model else ())
    if rounds and len(judges) != 1:
        raise UsageError(
            "--feedback-rounds needs exactly one --judge, whose verdicts are sent back."
        )
    judging = plan_judging(judges, settings) if judges else None
    names = tuple(model.name for model in judging.models) if judging is not None else ()
    runs = plan_runs("workflow", "workflow", settings, options, judges=names)
    return _Planned(_note_readiness(runs), judging, settings)


def plan_partwise(options: Options, judge: str | None) -> PartwiseRun:
    """Plan the run that the options of this command describe, to be run part by part.

    `judge` is the one whose scores are wanted, if this run asks it.
    """
    if options["rounds"]:
        raise UsageError("The gate has no rounds: leave --feedback-rounds out.")
    runs, judging, settings = _plan(options["judges"], options["folder"], options)
    run = choose_single(runs)
    known: list[str] = [CHECK]
    if judging is not None:
        known = [name_judge(model, judging.options) for model in judging.models]

    def score(tasks: tuple[str, ...], backend: Backend, budget: Settings) -> bool:
        planned = None if judging is None else replace(judging, settings=budget)
        return _make_judge_round(planned, settings, backend, tasks)(run.out).stopped

    known.sort(key=lambda one: one != judge)
    return PartwiseRun(run, settings, judging, tuple(known), score)


def _note_readiness(runs: list[PlannedRun]) -> list[PlannedRun]:
    """Say and note in the manifests how many tasks are not ready; only task folders can be.

    A run is never refused for that.
    """
    data, settings = runs[0].resources.data, runs[0].resources.settings
    tasks = runs[0].manifest.spec.tasks
    lacking = describe_readiness(data, tasks, read_thresholds(settings))
    if lacking is None:
        return runs
    say(f"{lacking}. `gta task pilot` says why.")
    note = f"When it began, {lacking}."
    return [
        run._replace(
            manifest=run.manifest.model_copy(update={"notes": (*run.manifest.notes, note)})
        )
        for run in runs
    ]


def _check_rounds(runs: Sequence[PlannedRun]) -> None:
    if any(run.resources.harness is not None for run in runs):
        raise UsageError(
            "--feedback-rounds works with built-in agents only, because a harness ends with its "
            "task: leave it out."
        )


def _estimate_judges(run: PlannedRun, judging: Judging | None, rounds: int) -> list[UsageRange]:
    if judging is None:
        return []
    return estimate_judging(run.manifest, run.resources, run.out, judging, rounds=rounds)


def _make_judge_round(
    planned: Judging | None, settings: Settings, backend: Backend, tasks: tuple[str, ...]
) -> JudgeRound:
    judging = None if planned is None else replace(planned, tasks=tasks)

    def judge(folder: StorePath) -> Judged:
        check_with_line(folder, settings, tasks)
        say_leaks(folder, settings, tasks)
        found = judge_with_bar(folder, judging, backend) if judging is not None else []
        stopped = any(one.stopped for one in found)
        name = found[0].judge if found else ""
        return Judged(name, score_workflow_run(folder, settings), stopped)

    return judge
