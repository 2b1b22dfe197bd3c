"""`gta run atomic`: run a system on GTA-Atomic, from the first call to the scores."""

from inspect import unwrap
from typing import Any, NamedTuple

import click

from gta_bench import api
from gta_bench.cli.options import GroupedCommand, data_option, option_in, similarity_option
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
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores
from gta_bench.running.backends.backend import Backend
from gta_bench.running.estimate import estimate_run
from gta_bench.running.planning import PlannedRun
from gta_bench.running.preflight import check_start
from gta_bench.running.system_run import execute
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import choose_similarity, load_similarity


@click.command("atomic", cls=GroupedCommand)
@option_in("Tasks")(
    "--mode",
    type=click.Choice(["step", "end-to-end"]),
    required=True,
    help="step: predict each turn of the reference dialogue; end-to-end: run the agent loop with "
    "real tools.",
)
@run_options
@similarity_option
@data_option
def atomic_command(
    mode: Mode,
    only_estimate: bool,
    preflight: bool,
    similarity: str | None,
    folder: str | None,
    **options: Any,
) -> None:
    """Run a system on GTA-Atomic and score it.

    Run the same command again to continue an unfinished run; more tasks or epochs extend it. Exits
    with 1 if a unit has no score. Next: `gta report OUT`, `gta compare OUT OTHER`.
    """
    runs, settings = _plan(mode, similarity, folder, options)
    if only_estimate:
        for run in runs:
            say_estimate(run, estimate_run(run.manifest, run.resources, run.out))
        return
    load_similarity(choose_similarity(settings.scoring))  # fails now, not after the run
    check_start(runs, ask=preflight, watching=unit_bar, say=say)
    complete = True
    with open_run_backend(runs, options) as backend:
        for run in runs:
            for one in estimate_before_start(run):
                say(str(one))
            with unit_bar(str(run.out)) as listener:
                execute(run.manifest, run.resources, run.out, listener, backend=backend)
            scores = unwrap(api.score)(run.out, settings=settings)
            assert isinstance(scores, RunScores)
            complete &= scores.n == scores.n_units
    write_reports([run.out for run in runs])
    raise click.exceptions.Exit(0 if complete else 1)


class _Planned(NamedTuple):
    runs: list[PlannedRun]
    settings: Settings


def _plan(mode: Mode, similarity: str | None, folder: str | None, options: Options) -> _Planned:
    overrides = {"data.atomic": folder, "scoring.similarity": similarity}
    settings = run_settings(overrides, options)
    return _Planned(plan_runs("atomic", mode, settings, options), settings)


def plan_partwise(options: Options, _: str | None) -> PartwiseRun:
    """Plan the run that the options of this command describe, to be run part by part."""
    mode, similarity, folder = (options[name] for name in ("mode", "similarity", "folder"))
    runs, settings = _plan(mode, similarity, folder, options)
    run = choose_single(runs)
    load_similarity(choose_similarity(settings.scoring))

    def score(tasks: tuple[str, ...], backend: Backend, budget: Settings) -> bool:
        unwrap(api.score)(run.out, settings=settings)
        return False

    return PartwiseRun(run, settings, None, (), score)
