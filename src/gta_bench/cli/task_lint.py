"""`gta task new` and `gta task lint`: scaffold a task, and find mistakes in tasks."""

from collections import Counter, defaultdict
from pathlib import Path

import click

from gta_bench.authoring.lint import OF_PILOT, LintReport, find_rule, lint
from gta_bench.authoring.scaffold import WRITERS, scaffold
from gta_bench.cli.options import FOLDER, NEW_FOLDER, json_option
from gta_bench.cli.output import COLORS, say, write_json
from gta_bench.errors import UsageError, format_count
from gta_bench.records.finding import Finding


@click.command("new")
@click.argument("folder", metavar="DIR/ID", type=NEW_FOLDER)
@click.option(
    "--kind",
    type=click.Choice([*WRITERS]),
    default="xlsx",
    help="Kind of the file that the request asks for.",
)
def new_command(folder: Path, kind: str) -> None:
    """Write a small task that runs, lints and scores at once, to be replaced by your own.

    DIR is the folder of your tasks, and ID the new task's name. It has a request, an input,
    checkpoints with checks, two golds, wrong deliveries and a cheat.
    """
    files = scaffold(folder, kind)
    say(f"{format_count(len(files), 'file')} in {folder}. Edit request.md and task.toml, then:")
    say(f"  gta task lint {folder}")
    say(f"  gta run workflow --data {folder.parent} --tasks {folder.resolve().name} …")


@click.command("lint")
@click.argument("paths", metavar="PATH...", nargs=-1, type=FOLDER)
@json_option
@click.option("--explain", metavar="RULE", help="Explain a rule, such as T14, and exit.")
def lint_command(paths: tuple[Path, ...], as_json: bool, explain: str | None) -> None:
    """Find mistakes in tasks: PATH is a task folder, a folder of them, or a released dataset.

    Exits with 1 if there are errors. No model is asked and nothing of a task is run. Waive a rule
    with `allow = ["T14: reason"]` in task.toml. Rules about golds, wrong deliveries and cheats that
    need the checks to run belong to `gta task pilot`.
    """
    if explain is not None:
        rule = find_rule(explain)
        click.echo(f"{rule.id} ({rule.severity}): {rule.says}\n\n{rule.more}")
        return
    if not paths:
        raise UsageError("Name at least one PATH: a task folder or a folder of tasks.")
    report = lint(paths)
    if as_json:
        write_json(report.model_dump(mode="json"))
    else:
        _write_report(report)
    raise click.exceptions.Exit(0 if report.passed else 1)


def _write_report(report: LintReport) -> None:
    for finding in report.findings:
        click.echo(_format_finding(finding))
    for one in report.waived:
        say(f"waived: {one.finding.file}: {one.finding.check}: {one.reason}")
    counts = Counter(finding.severity for finding in report.findings)
    listed = ", ".join(format_count(counts[severity], severity) for severity in COLORS)
    say(f"{format_count(report.tasks, 'task')}: {listed}.")
    rules: dict[tuple[str, int], list[str]] = defaultdict(list)
    for skipped in report.not_applied:
        rules[skipped.why, skipped.tasks].append(skipped.rule)
    for (why, tasks), names in rules.items():
        say(f"Not applied to {format_count(tasks, 'task')}: {', '.join(names)} ({why}).")
    say(f"Not applied by lint: {', '.join(OF_PILOT)} (`gta task pilot` decides them).")


def _format_finding(finding: Finding) -> str:
    task = "" if finding.task is None or finding.file.startswith(finding.task) else finding.task
    severity = click.style(finding.severity, fg=COLORS[finding.severity], bold=True)
    location = " ".join(part for part in (task and f"task {task}", finding.field) if part)
    where = f"{finding.file}: {location}" if location else finding.file
    return f"{where}: {severity} {finding.check}: {finding.message}"
