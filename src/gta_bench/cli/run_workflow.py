"""`gta run workflow`: a system on GTA-Workflow, from the first call to the judged scores."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click

from gta_bench.agents.catalog import DEFAULT_AGENT
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.cli.harness import harness_options
from gta_bench.cli.judging import judge_with_bar
from gta_bench.cli.options import config_path, data_option
from gta_bench.cli.output import unit_bar
from gta_bench.cli.product import product_options, refuse_with_product
from gta_bench.cli.report import write_reports
from gta_bench.cli.targets import run_targets
from gta_bench.cli.tooling import tooling_options
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.run import FeedbackLevel, Images
from gta_bench.runs.workflow_scoring import score_workflow_run
from gta_bench.settings import Settings, read_settings
from gta_bench.tasks.evaluation import Listener, finished
from gta_bench.tasks.feedback import Judged, Judging, Watching, run_rounds
from gta_bench.tasks.judge_run import plan_judging
from gta_bench.tasks.models import NO_MODEL
from gta_bench.tasks.tooling import Tooling
from gta_bench.tasks.workflow_run import WorkflowRun, plan


@click.command("workflow")
@click.option("--model", "models", multiple=True, help="provider/model or a name of gta.toml.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="Model that judges what was delivered; judge.model of gta.toml unless given.",
)
@click.option(
    "--agent",
    default=DEFAULT_AGENT,
    show_default=True,
    help="toolcalling, react, react-upstream, silent or pkg.mod:function.",
)
@click.option("--out", type=click.Path(), required=True, help="The run's folder.")
@click.option("--tasks", help="A range of positions (0:10) or a list of ids (3,5,7).")
@click.option("--epochs", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--images",
    type=click.Choice(["path", "attached"]),
    default="path",
    show_default=True,
    help="What the model is shown of images; published runs show paths.",
)
@click.option(
    "--max-turns",
    type=click.IntRange(1),
    default=MAX_TURNS,
    show_default=True,
    help="Decisions in a task, and in each round of it.",
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
@click.option("--max-connections", type=click.IntRange(1), help="Model calls at once.")
@click.option("--max-retries", type=click.IntRange(0), help="Retries of a failed model call.")
@click.option("--timeout", type=click.IntRange(1), help="Seconds for one model call.")
@click.option("--max-tokens", type=click.IntRange(1), help="Longest reply, in tokens.")
@click.option("--temperature", type=click.FloatRange(0), help="Sampling temperature.")
@tooling_options
@product_options
@harness_options
@data_option
@click.pass_obj
@click.pass_context
def workflow_command(
    context: click.Context,
    config_file: str | None,
    models: tuple[str, ...],
    judges: tuple[str, ...],
    agent: str,
    out: str,
    tasks: str | None,
    epochs: int,
    images: Images,
    max_turns: int,
    rounds: int,
    level: FeedbackLevel,
    max_connections: int | None,
    max_retries: int | None,
    timeout: int | None,
    max_tokens: int | None,
    temperature: float | None,
    tooling: Tooling,
    product: Product | None,
    harness: Harness | None,
    folder: str | None,
) -> None:
    """GTA-Workflow with a model and an agent; the same command continues an unfinished run.

    With --product a service is measured instead, by the contract of docs/reference.
    """
    settings = read_settings(
        config_path(config_file),
        overrides={
            "data.workflow": folder,
            "budget.max_connections": max_connections,
            "budget.max_retries": max_retries,
            "budget.timeout": timeout,
        },
    ).settings
    judges = judges or ((settings.judge.model,) if settings.judge.model else ())
    if rounds and len(judges) != 1:
        raise UsageError("--feedback-rounds needs exactly one --judge: its verdicts go back.")
    refuse_with_product(
        product,
        {
            "--model": bool(models),
            "--harness": harness is not None,
            "--tools, --tape or --control": not tooling.plain,
            "--feedback-rounds": rounds > 0,
        },
    )
    if rounds and harness is not None:
        raise UsageError("--feedback-rounds is for our agents: a harness ends with its task.")
    sampling = {"max_tokens": max_tokens, "temperature": temperature}
    given = {name: value for name, value in sampling.items() if value is not None}
    folders: list[Path] = []
    complete = True
    targets = (
        run_targets(Path(out), models, agent, settings, harness)
        if product is None
        else [(Path(out), NO_MODEL)]
    )
    for target, model in targets:
        wanted = WorkflowRun(
            data=Path(settings.data.workflow),
            model=model._replace(settings=model.settings.model_copy(update=given)),
            agent=agent,
            images=images,
            tasks=tasks,
            epochs=epochs,
            settings=settings,
            max_turns=max_turns,
            tooling=tooling,
            product=product,
            harness=harness,
        )
        planned = plan(wanted)
        total = len(planned.tasks) * planned.epochs
        for played, judged in run_rounds(
            wanted,
            planned,
            target,
            _watching(total),
            _judging(judges, settings),
            rounds=rounds,
            level=level,
        ):
            folders.append(played)
            complete = complete and judged.scores.complete
    write_reports(folders)
    context.exit(0 if complete else 1)


def _watching(total: int) -> Watching:
    def watch(folder: Path) -> AbstractContextManager[Listener]:
        return unit_bar(str(folder), total, finished(folder))

    return watch


def _judging(judges: Sequence[str], settings: Settings) -> Judging:
    asked = plan_judging(judges, settings) if judges else None

    def judge(folder: Path) -> Judged:
        names = judge_with_bar(folder, asked) if asked is not None else [""]
        return Judged(names[0], score_workflow_run(folder, settings))

    return judge
