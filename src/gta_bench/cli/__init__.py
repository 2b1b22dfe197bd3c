"""The `gta` command; the only place that speaks to people."""

import sys

import click

from gta_bench.cli.lazy import LazyGroup
from gta_bench.errors import GtaError

# Importing a command imports what it needs, so each is imported only when it is called.
COMMANDS = {
    "demo": ("gta_bench.cli.demo:demo", "The whole pipeline on three bundled tasks."),
    "data": ("gta_bench.cli.data:data", "Fetch, verify and describe the datasets."),
    "tools": ("gta_bench.cli.tools:tools", "List, call, equip and serve the tools."),
    "run": ("gta_bench.cli.run:run", "Measure a system on a dataset."),
    "status": ("gta_bench.cli.status:status", "How far a run is, from any terminal."),
    "tape": ("gta_bench.cli.tape:tape", "Recorded tool calls: make them, compare them."),
    "score": ("gta_bench.cli.score:score", "Score a run again, or a prediction file."),
    "judge": ("gta_bench.cli.judge:judge", "Measure a judge: attacks on it, and its floor."),
    "report": ("gta_bench.cli.report:report", "Show the scores of runs."),
    "compare": ("gta_bench.cli.compare:compare", "Compare runs on the same tasks, paired."),
    "results": ("gta_bench.cli.results:results", "Runs as tables for any other analysis."),
    "view": ("gta_bench.cli.view:view", "Open a run to read: its page, or its traces."),
    "leaderboard": (
        "gta_bench.cli.leaderboard:leaderboard",
        "Submit runs, check entries and bundles, build the site.",
    ),
    "import": ("gta_bench.cli.importing:import_group", "Bring finished results into a run."),
    "export": ("gta_bench.cli.exporting:export_group", "Tasks and traces for other frameworks."),
    "config": ("gta_bench.cli.config:config", "Show or check what holds, and where it came from."),
    "doctor": ("gta_bench.cli.doctor:doctor", "Say what works here and how to mend what does not."),
}


@click.group(
    cls=LazyGroup, commands_table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Settings file; gta.toml of this folder unless given.",
)
@click.version_option(package_name="gta-bench", message="gta-bench %(version)s")
@click.pass_context
def app(context: click.Context, config_file: str | None) -> None:
    """Measure how well LLM agents use real tools (GTA-Atomic and GTA-Workflow)."""
    context.obj = config_file


def main() -> None:
    """Run the command; failures that are not bugs end in one line and an exit code."""
    try:
        app()
    except GtaError as exc:
        click.echo(f"gta: {exc}", err=True)
        sys.exit(exc.exit_code)
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename else ""
        click.echo(f"gta: {where}{exc.strerror or exc}", err=True)
        sys.exit(3)
