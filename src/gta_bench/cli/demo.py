"""`gta demo`: the whole pipeline on seven bundled tasks, without key, GPU or download."""

from pathlib import Path

import click

from gta_bench import api
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.report import report_markdown, write_reports
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.local_model import SMOLLM2, local_weights, open_local, serving_model
from gta_bench.demo.script import scripted_model
from gta_bench.demo.script_judge import scripted_judge
from gta_bench.errors import UsageError
from gta_bench.packages import install_command, require_packages
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import files_folder, write_manifest
from gta_bench.settings import ScoringSettings, Settings
from gta_bench.tools.contract import Equipment

SCRIPTED = "The system is a script, not a language model: its scores say nothing about a model."
SCRIPTED_JUDGE = "The judge is a script that looks for fixed words in the evidence."
SMALL = "A real, very small model (135 million parameters): the short tasks are far above it."
SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
# What the tools of the tasks are made of; without them there is nothing to show.
PACKAGES = ("PIL", "matplotlib", "pydantic_monty", "pypandoc", "rapidocr", "scipy", "sympy")


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
    """Run seven bundled tasks through tools, judging, scoring and report.

    The tools are real and work offline. The system and its judge are scripts, not language models;
    a small real model is measured beside them where it is installed (extra `local-model`).
    """
    folder = Path(out)
    if folder.exists():
        raise UsageError(f"{folder} exists already: remove it or name another folder with --out.")
    require_packages("gta demo", *PACKAGES, extra="demo")
    say("Seven tasks of our own. The tools are real; the model is SCRIPTED and so is the judge, so")
    say("their scores say nothing about a model: they show that the pipeline works here.")
    runs: dict[Path, RunScores | WorkflowScores] = {
        folder / "atomic": _atomic(folder / "atomic"),
        folder / "workflow": _workflow(folder / "workflow"),
        **_small_model(folder / "small-model"),
    }
    (folder / "report.md").write_text(report_markdown([*runs]), encoding="utf-8")
    # What was made and judged is nicer to look at than what was answered: it comes first.
    api.report(folder / "report.html", *sorted(runs, reverse=True))
    write_reports([*runs])
    _say_what_was_made([*runs])
    say(f"The report: {folder / 'report.md'}; to be looked at: {folder / 'report.html'}")
    used = [use for scores in runs.values() for use in scores.tools]
    unavailable = sorted({use.tool for use in used if use.unavailable})
    if unavailable:
        say(f"Not available here: {', '.join(unavailable)}. `gta doctor` says how to mend it.")
    context.exit(1 if unavailable or not all(map(_complete, runs.values())) else 0)


def _atomic(out: Path) -> RunScores:
    with unit_bar("5 short tasks") as listener:
        scores = api.run(
            "atomic", out, model=scripted_model(), data=ATOMIC, settings=SETTINGS, listener=listener
        )
    assert isinstance(scores, RunScores)
    _note(out, SCRIPTED)
    return scores


def _workflow(out: Path) -> WorkflowScores:
    with unit_bar("2 long tasks, judged") as listener:
        scores = api.run(
            "workflow",
            out,
            model=scripted_model(),
            data=WORKFLOW,
            judges=[scripted_judge()],
            settings=SETTINGS,
            listener=listener,
        )
    assert isinstance(scores, WorkflowScores)
    _note(out, SCRIPTED, SCRIPTED_JUDGE)
    return scores


def _small_model(out: Path) -> dict[Path, RunScores]:
    """The short tasks again, with a real model, where there is one."""
    weights = local_weights(Equipment(SETTINGS).weights)
    if weights is None:
        say("A small real model would be measured too, with both of these:")
        say(f"{install_command('local-model')} and gta tools fetch {SMOLLM2.name}")
        return {}
    say(f"The same short tasks with a real model, {SMOLLM2.label}: small, so expect little of it.")
    with serving_model(weights) as url, unit_bar("5 short tasks, real model") as listener:
        scores = api.run(
            "atomic",
            out,
            model=open_local(url),
            agent="react",
            max_turns=2,
            data=ATOMIC,
            settings=SETTINGS,
            listener=listener,
        )
    assert isinstance(scores, RunScores)
    _note(out, SMALL)
    return {out: scores}


def _note(out: Path, *notes: str) -> None:
    """What the report says of a run, for readers who see nothing else."""
    write_manifest(out, api.manifest(out).model_copy(update={"notes": notes}))


def _say_what_was_made(runs: list[Path]) -> None:
    for run in runs:
        for file in sorted(files_folder(run).glob("*/outputs/*")):
            say(f"Produced: {file}")


def _complete(scores: RunScores | WorkflowScores) -> bool:
    if isinstance(scores, WorkflowScores):
        return scores.complete
    return scores.n == scores.n_units
