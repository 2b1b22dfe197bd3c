"""The `gta` command; the only place that speaks to people."""

import errno
import sys
from importlib.metadata import version
from typing import NoReturn

import click

from gta_bench.cli.lazy import LazyGroup, is_reader_gone
from gta_bench.errors import GtaError
from gta_bench.redaction import current_redactor

# Importing a command imports what it needs, so each is imported only when it is called.
COMMANDS = {
    "demo": ("gta_bench.cli.demo:demo", "The whole pipeline on seven bundled tasks."),
    "data": ("gta_bench.cli.data:data", "Fetch, verify and describe the datasets."),
    "tools": ("gta_bench.cli.tools:tools", "List, call, equip and serve the tools."),
    "run": ("gta_bench.cli.run:run", "Measure a system on a dataset."),
    "status": ("gta_bench.cli.status:status", "How far a run is, from any terminal."),
    "tape": ("gta_bench.cli.tape:tape", "Recorded tool calls: make them, compare them."),
    "score": ("gta_bench.cli.score:score", "Score a run again, or a prediction file."),
    "judge": ("gta_bench.cli.judge:judge", "Measure a judge: attacks on it, and its floor."),
    "measure": ("gta_bench.cli.measure:measure", "Metrics of your own over a run."),
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
    "completion": ("gta_bench.cli.completion:completion", "Completion for bash, zsh or fish."),
    "doctor": ("gta_bench.cli.doctor:doctor", "Say what works here and how to mend what does not."),
}

RIGHTS = ". Name a place where you may write, or change its rights."
# What to do about failures of the system, by their number.
ADVICE = {
    errno.ENOSPC: ". Make room, then give the same command again: what is finished is kept.",
    errno.EDQUOT: ". Make room, then give the same command again: what is finished is kept.",
    errno.EACCES: RIGHTS,
    errno.EPERM: RIGHTS,
    errno.EROFS: RIGHTS,
    errno.ENOENT: ". Check the path.",
    errno.ENOTDIR: ". A folder is wanted and a file stands there; name another place.",
    errno.EMFILE: ". Too many files are open: `ulimit -n 4096`, then again.",
}
# What a shell reports of programs that SIGPIPE ended, which Python ignores.
READER_GONE = 128 + 13


def _verbose(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Read first, so that --version knows, wherever it stands."""
    context.meta["verbose"] = wanted


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    if context.meta["verbose"]:
        from gta_bench.cli.about import write_about

        write_about()
    else:
        click.echo(f"gta-bench {version('gta-bench')}")
    context.exit()


@click.group(
    cls=LazyGroup, commands_table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Settings file; gta.toml of this folder unless given.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_verbose,
    help="With --version: all that a bug report needs.",
)
@click.pass_context
def app(context: click.Context, config_file: str | None) -> None:
    """Measure how well LLM agents use real tools (GTA-Atomic and GTA-Workflow)."""
    context.obj = config_file


def main() -> None:
    """Run the command; failures that are not bugs end in one line and an exit code."""
    try:
        code = app.main(prog_name="gta", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as exc:
        exc.show()
        sys.exit(exc.exit_code)
    except click.UsageError as exc:
        command = "gta" if exc.ctx is None else exc.ctx.command_path
        _end(f"{exc.format_message()} See `{command} --help`.", exc.exit_code)
    except click.Abort:
        _end("Stopped.", 130)
    except GtaError as exc:
        _end(str(exc), exc.exit_code)
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename else ""
        _end(f"{where}{exc.strerror or exc}{ADVICE.get(exc.errno or 0, '')}", 3)
    except SystemExit:  # click's answer to a broken pipe
        if is_reader_gone():
            sys.exit(READER_GONE)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _end(said: str, code: int) -> NoReturn:
    click.echo(current_redactor().text(f"gta: {said}"), err=True)
    sys.exit(code)
