"""`gta run atomic`: a system on GTA-Atomic, from the first call to the scores."""

from typing import Any

import click

from gta_bench.cli.grouping import GroupedCommand, options_of
from gta_bench.cli.options import data_option, similarity_option
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
from gta_bench.records.run import Mode
from gta_bench.records.units import AtomicUnit
from gta_bench.running.backends.backend import Backend
from gta_bench.running.estimate import estimate_run
from gta_bench.running.preflight import check_start
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.logs import read_units
from gta_bench.similarity.catalog import Similarity, chosen_similarity, load_similarity, scored


@click.command("atomic", cls=GroupedCommand)
@options_of("Tasks")(
    "--mode",
    type=click.Choice(["step", "end-to-end"]),
    required=True,
    help="step: every turn predicted from the reference; end-to-end: the loop with real tools.",
)
@run_options
@similarity_option
@data_option
@click.pass_obj
@click.pass_context
def atomic_command(
    context: click.Context,
    config_file: str | None,
    /,
    mode: Mode,
    only_estimate: bool,
    preflight: bool,
    similarity: str | None,
    folder: str | None,
    **options: Any,
) -> None:
    """GTA-Atomic with a model and an agent.

    The same command continues an unfinished run; more tasks or epochs extend it.
    """
    overrides = {"data.atomic": folder, "scoring.similarity": similarity}
    settings = run_settings(config_file, overrides, options)
    planned = plan_runs("atomic", mode, settings, **options)
    if only_estimate:
        for run in planned.runs:
            say_estimate(run, estimate_run(run.manifest, run.resources, run.out))
        return
    similar = load_similarity(chosen_similarity(settings.scoring))
    check_start(planned.runs, ask=preflight, watching=unit_bar, say=say)
    with planned.backend() as backend:
        complete = [_run(run, backend, similar) for run in planned.runs]
    write_reports([run.out for run in planned.runs])
    context.exit(0 if all(complete) else 1)


def _run(run: PlannedRun, backend: Backend, similarity: Similarity) -> bool:
    for one in estimate_begun(run):
        say(str(one))
    with unit_bar(str(run.out)) as listener:
        execute(run.manifest, run.resources, run.out, listener, backend=backend)
    spec = read_manifest(run.out).spec  # it may have more tasks and epochs than this command
    found = read_units(log_folder(run.out), spec.tasks, spec.epochs, AtomicUnit)
    assert spec.mode != "workflow"
    scores = scored(found.units, spec.mode, similarity, found.not_run)
    write_scores(run.out, scores)
    return scores.n == scores.n_units
