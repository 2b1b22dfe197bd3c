"""`gta run workflow`: a system on GTA-Workflow, from the first call to the judged scores."""

from collections.abc import Sequence

import click

from gta_bench.cli.judging import judge_with_bar
from gta_bench.cli.options import config_path, data_option
from gta_bench.cli.output import unit_bar
from gta_bench.cli.report import write_reports
from gta_bench.cli.run_options import RunRequest, run_options
from gta_bench.cluster.backend import Backend
from gta_bench.datasets.installed import dataset_root
from gta_bench.errors import UsageError
from gta_bench.records.run import FeedbackLevel
from gta_bench.runs.store import StorePath
from gta_bench.runs.workflow_scoring import score_workflow_run
from gta_bench.settings import Settings, read_settings
from gta_bench.tasks.feedback import Judged, Judging, run_rounds
from gta_bench.tasks.judge_run import check_judges, plan_judging
from gta_bench.tasks.system_run import SystemRun
from gta_bench.tasks.workflow_run import plan


@click.command("workflow")
@run_options
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="Model that judges what was delivered; judge.model of gta.toml unless given.",
)
@click.option(
    "--feedback-rounds",
    "rounds",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Times that failing leaves go back to the system, which continues in its workspace.",
)
@click.option(
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
    wanted: RunRequest,
    judges: tuple[str, ...],
    rounds: int,
    level: FeedbackLevel,
    folder: str | None,
) -> None:
    """GTA-Workflow with a model and an agent; the same command continues an unfinished run.

    With --product a service is measured instead, by the contract of docs/reference.
    """
    settings = read_settings(
        config_path(config_file), overrides={"data.workflow": folder, **wanted.overrides}
    ).settings
    judges = judges or ((settings.judge.model,) if settings.judge.model else ())
    if rounds and len(judges) != 1:
        raise UsageError("--feedback-rounds needs exactly one --judge: its verdicts go back.")
    wanted.check(**{"--feedback-rounds": rounds > 0})
    if rounds and wanted.harness is not None:
        raise UsageError("--feedback-rounds is for our agents: a harness ends with its task.")
    runs = [
        (target, SystemRun(data=dataset_root(settings.data.workflow), **fields))
        for target, fields in wanted.systems(settings)
    ]
    planned = [(target, run, plan(run)) for target, run in runs]
    units = sum(len(manifest.tasks) * manifest.epochs for _, _, manifest in planned)
    folders: list[StorePath] = []
    complete = True
    with wanted.backend(units) as backend:
        for target, run, manifest in planned:
            for played, judged in run_rounds(
                run,
                manifest,
                target,
                lambda folder: unit_bar(str(folder)),
                _judging(judges, settings, backend),
                rounds=rounds,
                level=level,
                backend=backend,
            ):
                folders.append(played)
                complete = complete and judged.scores.complete and not judged.stopped
    write_reports(folders)
    context.exit(0 if complete else 1)


def _judging(judges: Sequence[str], settings: Settings, backend: Backend) -> Judging:
    asked = plan_judging(judges, settings) if judges else None
    if asked is not None:
        check_judges(asked)

    def judge(folder: StorePath) -> Judged:
        found = judge_with_bar(folder, asked, backend) if asked is not None else []
        stopped = any(one.stopped for one in found)
        name = found[0].judge if found else ""
        return Judged(name, score_workflow_run(folder, settings), stopped)

    return judge
