"""`gta run atomic`: a system on GTA-Atomic, from the first call to the scores."""

import click

from gta_bench.cli.options import config_path, data_option, similarity_option
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.report import write_reports
from gta_bench.cli.run_options import RunRequest, run_options
from gta_bench.cluster.backend import Backend
from gta_bench.datasets.installed import dataset_root
from gta_bench.errors import UsageError
from gta_bench.records.run import Mode, RunManifest
from gta_bench.runs.directory import write_scores
from gta_bench.runs.store import StorePath
from gta_bench.settings import read_settings
from gta_bench.similarity.catalog import load_similarity
from gta_bench.similarity.scoring import scored
from gta_bench.tasks.atomic_run import AtomicRun, execute, plan
from gta_bench.tasks.estimate import estimate


@click.command("atomic")
@click.option(
    "--mode",
    type=click.Choice(["step", "end-to-end"]),
    required=True,
    help="step: every turn predicted from the reference; end-to-end: the loop with real tools.",
)
@run_options
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Say what it would take; send nothing."
)
@similarity_option
@data_option
@click.pass_obj
@click.pass_context
def atomic_command(
    context: click.Context,
    config_file: str | None,
    mode: Mode,
    wanted: RunRequest,
    only_estimate: bool,
    similarity: str | None,
    folder: str | None,
) -> None:
    """GTA-Atomic with a model and an agent; the same command continues an unfinished run."""
    settings = read_settings(
        config_path(config_file),
        overrides={
            "data.atomic": folder,
            "scoring.similarity": similarity,
            **wanted.overrides,
        },
    ).settings
    wanted.check(**{"--mode step": mode == "step"})
    runs = [
        (
            target,
            AtomicRun(
                data=dataset_root(settings.data.atomic),
                mode=mode,
                similarity=settings.scoring.similarity,
                **fields,
            ),
        )
        for target, fields in wanted.systems(settings)
    ]
    if mode == "step" and not wanted.tooling.plain:
        raise UsageError(
            "--tools, --tape and --control need --mode end-to-end: step mode calls no tool."
        )
    if mode == "step" and wanted.harness is not None:
        raise UsageError("A harness needs --mode end-to-end: step mode asks a model only.")
    if only_estimate and mode != "step":
        raise UsageError("--estimate knows step mode only: end-to-end prompts depend on replies.")
    if only_estimate:
        for _, one in runs:
            say(estimate(one))
        return
    planned = [(target, one, plan(one)) for target, one in runs]
    units = sum(len(manifest.tasks) * manifest.epochs for _, _, manifest in planned)
    with wanted.backend(units) as backend:
        complete = [_run(target, one, manifest, backend) for target, one, manifest in planned]
    write_reports([target for target, _ in runs])
    context.exit(0 if all(complete) else 1)


def _run(out: StorePath, wanted: AtomicRun, manifest: RunManifest, backend: Backend) -> bool:
    similarity = load_similarity(wanted.similarity)
    with unit_bar(str(out)) as listener:
        found = execute(wanted, manifest, out, listener, backend=backend)
    scores = scored(found.units, wanted.mode, similarity, found.not_run)
    write_scores(out, scores)
    return scores.n == scores.n_units
