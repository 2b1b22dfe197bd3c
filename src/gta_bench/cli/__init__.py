"""The `gta` command; the only package that prints."""

import errno
import sys
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from gta_bench.cli.lazy import LazyGroup, is_reader_gone
from gta_bench.errors import INTERRUPTED, GtaError
from gta_bench.redaction import current_redactor

# Module and name of each command, relative to this package. A command is imported only when it is
# called, because importing it imports what it needs.
COMMANDS = {
    "demo": (".demo:demo", "Run the whole pipeline on seven bundled tasks."),
    "data": (".data:data", "Fetch, verify and describe the datasets."),
    "task": (".task:task", "Write and check tasks of your own."),
    "forge": (".forge:forge", "Generate tasks whose truth is known."),
    "tools": (".tools:tools", "List, call and serve the tools; fetch weights."),
    "run": (".:run", "Run a model or another system on a dataset."),
    "status": (".status:status", "Show the progress of a run."),
    "tape": (".tape:tape", "Create and compare recordings of tool calls."),
    "score": (".score:score", "Score or judge a run, or score a prediction file."),
    "judge": (".:judge", "Evaluate a judge: labels, drift, attacks, floor, ceiling."),
    "measure": (".score:measure", "Apply your own metrics to a run."),
    "report": (".report:report", "Show the scores of one or more runs."),
    "compare": (".compare:compare", "Compare runs task by task."),
    "gate": (".gate:gate", "Decide whether a system got worse, as an exit code."),
    "study": (".study:study", "Plan, run and report a study with questions asked first."),
    "results": (".exporting:results", "Export runs as Parquet or CSV tables."),
    "view": (".view:view", "Open a run in the browser."),
    "leaderboard": (
        ".leaderboard:leaderboard",
        "Submit runs, check entries and bundles, build the site.",
    ),
    "import": (".importing:import_group", "Import finished results as a run."),
    "export": (".exporting:export_group", "Export tasks, traces and scores for other programs."),
    "config": (".config:config", "Show or validate the effective configuration."),
    "completion": (".:completion", "Print a completion script for bash, zsh or fish."),
    "doctor": (".doctor:doctor", "Check the installation and say how to fix problems."),
}
# A run of one dataset imports nothing that only the other one needs.
RUN_COMMANDS = {
    "atomic": (".run_atomic:atomic_command", "Run a system on GTA-Atomic."),
    "workflow": (
        ".run_workflow:workflow_command",
        "Run a system on GTA-Workflow and judge what it delivers.",
    ),
}
JUDGE_COMMANDS = {
    "label": (".judge_label:label", "Let people label leaves in the browser, blind."),
    "list": (".judge_agreement:list_judges", "List the judges that scored a run."),
    "bridge": (".judge_agreement:bridge", "Copy deliverables of a run to compare judges on."),
    "drift": (".judge_agreement:drift", "Compare two judges, or one judge at two dates."),
    "cascade": (".judge_agreement:cascade", "Estimate what asking a cheap judge first would save."),
    "calibrate": (".judge_agreement:calibrate", "Compare a run's judges with human labels."),
    "attack": (".judge_attack:attack", "Test whether deliverables can talk a judge into a score."),
    "floor": (".judge_attack:floor", "Measure what a judge gives to systems that do nothing."),
    "ceiling": (".judge_ceiling:ceiling", "Measure a judge on work known to be right or wrong."),
}

run = LazyGroup(
    name="run", commands_table=RUN_COMMANDS, help="Run a model or another system on a dataset."
)
judge = LazyGroup(
    name="judge",
    commands_table=JUDGE_COMMANDS,
    help="Evaluate a judge against people, against other judges and under attack.",
)

PERMISSIONS = ". Choose a path that you can write to, or change its permissions."
DISK_FULL = ". Free some disk space, then run the same command again: finished work is kept."
# The next step for operating system errors, by errno.
ADVICE = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EACCES: PERMISSIONS,
    errno.EPERM: PERMISSIONS,
    errno.EROFS: PERMISSIONS,
    errno.ENOENT: ". Check the path.",
    errno.ENOTDIR: ". Part of the path is a file, not a folder; choose another path.",
    errno.EMFILE: ". Too many files are open: run `ulimit -n 4096`, then try again.",
}
# What a shell reports for programs that SIGPIPE ended; Python ignores that signal.
READER_GONE = 128 + 13
SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def _store_verbose(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Runs before --version, wherever it is on the command line."""
    context.meta["verbose"] = wanted


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    if context.meta["verbose"]:
        from gta_bench.cli.doctor import write_versions

        write_versions()
    else:
        click.echo(f"gta-bench {version('gta-bench')}")
    context.exit()


@click.group(
    cls=LazyGroup,
    commands_table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    show_default="./gta.toml, if it exists",
    help="Settings file.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_store_verbose,
    help="With --version: also show everything that a bug report needs.",
)
@click.pass_context
def app(context: click.Context, config_file: Path | None) -> None:
    """Measure how well LLM agents use real tools (GTA-Atomic and GTA-Workflow).

    Start with `gta demo`, which needs no key and no download, or with `gta doctor`.
    """
    context.obj = config_file


@click.command()
@click.argument("shell", type=click.Choice([*SHELLS]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL. Install it with:

    \b
    bash: gta completion bash > ~/.local/share/bash-completion/completions/gta
    zsh:  gta completion zsh > _gta     (in a folder of $fpath)
    fish: gta completion fish > ~/.config/fish/completions/gta.fish
    """
    script = SHELLS[shell](context.find_root().command, {}, "gta", "_GTA_COMPLETE")
    # Not `source()`, which starts bash to ask for its version, whichever shell is wanted.
    click.echo(script.source_template % script.source_vars())


def main() -> None:
    """Run the command; failures that are not bugs end in one line and an exit code."""
    _use_utf8()
    try:
        code = app.main(prog_name="gta", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as exc:
        exc.show()
        sys.exit(exc.exit_code)
    except click.UsageError as exc:
        command = "gta" if exc.ctx is None else exc.ctx.command_path
        message = " ".join(exc.format_message().split())
        _exit_with(f"{message} See `{command} --help`.", exc.exit_code)
    except click.Abort:
        _exit_with("Interrupted.", INTERRUPTED)
    except GtaError as exc:
        _exit_with(str(exc), exc.exit_code)
    except OSError as exc:
        path = f"{exc.filename}: " if exc.filename else ""
        _exit_with(f"{path}{exc.strerror or exc}{ADVICE.get(exc.errno or 0, '')}", 3)
    except SystemExit:  # raised by click on a broken pipe
        if is_reader_gone():
            sys.exit(READER_GONE)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _use_utf8() -> None:
    """Write UTF-8 to files and pipes on Windows too, whose code pages lack most characters."""
    if sys.platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper) and stream.encoding != "utf-8":
                stream.reconfigure(encoding="utf-8")


def _exit_with(message: str, code: int) -> NoReturn:
    click.echo(current_redactor().text(f"gta: {message}"), err=True)
    sys.exit(code)
