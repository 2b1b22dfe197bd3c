"""`gta run atomic`: a system on GTA-Atomic, from the first call to the scores."""

from pathlib import Path

import click

from gta_bench.agents.catalog import DEFAULT_AGENT
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.cli.harness import harness_options
from gta_bench.cli.options import config_path, data_option, similarity_option
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.product import product_options, refuse_with_product
from gta_bench.cli.report import write_reports
from gta_bench.cli.scoring import scored
from gta_bench.cli.targets import run_targets
from gta_bench.cli.tooling import tooling_options
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.run import Images, Mode
from gta_bench.runs.directory import write_scores
from gta_bench.settings import read_settings
from gta_bench.similarity.catalog import load_similarity
from gta_bench.tasks.atomic_run import AtomicRun, execute, plan
from gta_bench.tasks.estimate import estimate
from gta_bench.tasks.evaluation import finished
from gta_bench.tasks.models import NO_MODEL
from gta_bench.tasks.tooling import Tooling


@click.command("atomic")
@click.option(
    "--mode",
    type=click.Choice(["step", "end-to-end"]),
    required=True,
    help="step: every turn predicted from the reference; end-to-end: the loop with real tools.",
)
@click.option("--model", "models", multiple=True, help="provider/model or a name of gta.toml.")
@click.option(
    "--agent",
    default=DEFAULT_AGENT,
    show_default=True,
    help="toolcalling, react, react-upstream, gold, silent or pkg.mod:function.",
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
    help="Decisions in a task, end-to-end.",
)
@click.option("--max-connections", type=click.IntRange(1), help="Model calls at once.")
@click.option("--max-retries", type=click.IntRange(0), help="Retries of a failed model call.")
@click.option("--timeout", type=click.IntRange(1), help="Seconds for one model call.")
@click.option("--max-tokens", type=click.IntRange(1), help="Longest reply, in tokens.")
@click.option("--temperature", type=click.FloatRange(0), help="Sampling temperature.")
@tooling_options
@product_options
@harness_options
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
    models: tuple[str, ...],
    agent: str,
    out: str,
    tasks: str | None,
    epochs: int,
    images: Images,
    max_turns: int,
    max_connections: int | None,
    max_retries: int | None,
    timeout: int | None,
    max_tokens: int | None,
    temperature: float | None,
    tooling: Tooling,
    product: Product | None,
    harness: Harness | None,
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
            "budget.max_connections": max_connections,
            "budget.max_retries": max_retries,
            "budget.timeout": timeout,
        },
    ).settings
    refuse_with_product(
        product,
        {
            "--mode step": mode == "step",
            "--model": bool(models),
            "--harness": harness is not None,
            "--tools, --tape or --control": not tooling.plain,
        },
    )
    sampling = {"max_tokens": max_tokens, "temperature": temperature}
    given = {name: value for name, value in sampling.items() if value is not None}
    runs = [
        (
            target,
            AtomicRun(
                data=Path(settings.data.atomic),
                mode=mode,
                model=model._replace(settings=model.settings.model_copy(update=given)),
                agent=agent,
                images=images,
                tasks=tasks,
                epochs=epochs,
                settings=settings,
                max_turns=max_turns,
                similarity=settings.scoring.similarity,
                tooling=tooling,
                product=product,
                harness=harness,
            ),
        )
        for target, model in (
            run_targets(Path(out), models, agent, settings, harness)
            if product is None
            else [(Path(out), NO_MODEL)]
        )
    ]
    if mode == "step" and not tooling.plain:
        raise UsageError(
            "--tools, --tape and --control need --mode end-to-end: step mode calls no tool."
        )
    if mode == "step" and harness is not None:
        raise UsageError("A harness needs --mode end-to-end: step mode asks a model only.")
    if only_estimate and mode != "step":
        raise UsageError("--estimate knows step mode only: end-to-end prompts depend on replies.")
    if only_estimate:
        for _, one in runs:
            say(estimate(one))
        return
    complete = [_run(target, one) for target, one in runs]
    write_reports([target for target, _ in runs])
    context.exit(0 if all(complete) else 1)


def _run(out: Path, wanted: AtomicRun) -> bool:
    similarity = load_similarity(wanted.similarity)
    manifest = plan(wanted)
    total = len(manifest.tasks) * manifest.epochs
    with unit_bar(str(out), total, finished(out)) as listener:
        found = execute(wanted, manifest, out, listener)
    scores = scored(found.units, wanted.mode, similarity, found.not_run)
    write_scores(out, scores)
    return scores.n == scores.n_units
