"""`gta demo`: the whole pipeline on three bundled tasks, without key, GPU or download."""

from pathlib import Path

import click

import gta_bench.demo
from gta_bench.agents.catalog import DEFAULT_AGENT
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.report import report_markdown, write_reports
from gta_bench.cli.scoring import scored
from gta_bench.demo.script import NAME, scripted_model
from gta_bench.errors import UsageError
from gta_bench.runs.directory import files_folder, write_scores
from gta_bench.settings import ModelSettings, Settings
from gta_bench.similarity.catalog import load_similarity
from gta_bench.tasks.atomic_run import AtomicRun, execute, plan
from gta_bench.tasks.models import ChosenModel

DATA = Path(gta_bench.demo.__file__).parent / "data"
SIMILARITY = "exact-or-half"


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="gta-demo",
    show_default=True,
    help="A folder that does not exist yet.",
)
@click.pass_context
def demo(context: click.Context, out: str) -> None:
    """Run three bundled tasks through tools, scoring and report.

    The tools are real and work offline. The model is a script, not a language model.
    """
    folder = Path(out)
    if folder.exists():
        raise UsageError(f"{folder} exists already: remove it or name another folder with --out.")
    say("Three tasks of our own. The tools are real; the model is SCRIPTED, so the scores say")
    say("nothing about a model: they show that the pipeline works here.")
    wanted = AtomicRun(
        data=DATA,
        mode="end-to-end",
        model=ChosenModel(NAME, ModelSettings(model=NAME)),
        agent=DEFAULT_AGENT,
        images="path",
        tasks=None,
        epochs=1,
        settings=Settings(),
        similarity=SIMILARITY,
    )
    with unit_bar("demo") as listener:
        found = execute(wanted, plan(wanted), folder, listener, model=scripted_model())
    similarity = load_similarity(SIMILARITY)
    scores = scored(found.units, wanted.mode, similarity, found.not_run)
    write_scores(folder, scores)
    (folder / "report.md").write_text(report_markdown([folder]), encoding="utf-8")
    write_reports([folder])
    for file in sorted(files_folder(folder).glob("*/outputs/*")):
        say(f"Produced: {file}")
    say(f"The report: {folder / 'report.md'}")
    unavailable = [use.tool for use in scores.tools if use.unavailable]
    if unavailable:
        say(f"Not available here: {', '.join(unavailable)}. `gta doctor` says how to mend it.")
    context.exit(0 if scores.n == scores.n_units and not unavailable else 1)
