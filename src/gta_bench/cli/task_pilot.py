"""`gta task preview` and `gta task pilot`: look at a task, and try it with known work."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gta_bench.cli.lazy import same_command
from gta_bench.cli.options import (
    FOLDER,
    NEW_FILE,
    NEW_FOLDER,
    command_settings,
    json_option,
    preflight_option,
)
from gta_bench.cli.output import COLORS, say, unit_bar, write_json, write_table
from gta_bench.errors import UsageError
from gta_bench.records.finding import Finding
from gta_bench.records.pilot import FAILING, LeafReadiness, Pilot, Readiness
from gta_bench.reports.tables import Table, line
from gta_bench.settings import Settings

if TYPE_CHECKING:
    from gta_bench.running.judge_run import JudgedBy

HEADING = (
    *("leaf", "weight", "by", "gold", "floor", "hits", "false alarms", "spread", "flips"),
    "judge = check",
)
REPEATS = 3


@click.command()
@click.argument("task", type=FOLDER)
@click.option("--out", type=NEW_FILE, show_default="preview-ID.html", help="File to write.")
def preview(task: Path, out: Path | None) -> None:
    """Write a page that shows TASK, a task folder, as the system and as the judge will see it.

    Checks are decided on the works in gold/. No model is called.
    """
    from gta_bench.authoring.preview import preview_task
    from gta_bench.authoring.proofs import find_tasks, read_authored
    from gta_bench.web.preview import render_preview

    folder, *others = find_tasks((task,))
    if others:
        raise UsageError(f"{task} has several tasks. Preview one of them, such as {folder}.")
    found = preview_task(read_authored(folder), command_settings())
    file = out or Path(f"preview-{found.task.id}.html")
    file.write_text(render_preview(found), encoding="utf-8", newline="\n")
    say(f"Open {file}")


@click.command()
@click.argument("tasks", type=FOLDER, nargs=-1, required=True)
@click.option(
    "--judge",
    show_default="judge.model in gta.toml",
    help="Model that judges the leaves that checks do not decide.",
)
@click.option("--no-judge", is_flag=True, help="Try checks alone; no model is called.")
@click.option(
    "--repeats", type=click.IntRange(1), default=REPEATS, help="How often to ask the judge."
)
@click.option(
    "--out", type=NEW_FOLDER, default="runs/pilot", help="Folder for works and verdicts, by task."
)
@preflight_option
@json_option
def pilot(
    tasks: tuple[Path, ...],
    judge: str | None,
    no_judge: bool,
    repeats: int,
    out: Path,
    preflight: bool,
    as_json: bool,
) -> None:
    """Try TASKS (task folders, or folders of them) with work whose value is known.

    Everything in gold/, wrong/ and cheat/ and four works that do nothing take the path of a
    system's work: evidence, checks, judge. The outcome is written to pilot.json in the task folder,
    from which `gta run` knows whether a task is ready. Run the same command again to continue.
    Exits with 1 if a rule is broken, also one of `gta task lint`, or a score is missing.
    """
    from gta_bench.authoring.pilot import pilot_task
    from gta_bench.authoring.proofs import find_tasks, read_authored
    from gta_bench.authoring.readiness import (
        assess,
        has_judged_pilot,
        read_thresholds,
        write_pilot,
    )
    from gta_bench.authoring.subject import PILOT_FILE
    from gta_bench.running.judge_run import plan_judging
    from gta_bench.running.preflight import check_judges

    settings = command_settings({"judge.repeats": repeats})
    name = _choose_judge(judge, settings, no_judge=no_judge)
    folders = find_tasks(tasks)
    if len({folder.resolve().name for folder in folders}) < len(folders):
        raise UsageError("Two of the tasks have the same name; pilot them one at a time.")
    judging = None if name is None else plan_judging((name,), settings)
    thresholds = read_thresholds(settings)
    found = []
    for folder in folders:
        authored = read_authored(folder)
        run = out / authored.task.id
        if judging is not None and preflight:
            check_judges(judging, run, say)
        made = pilot_task(authored, run, settings, judging, unit_bar, say_stopped)
        if made.judge is None and has_judged_pilot(authored):
            say(f"{folder / PILOT_FILE} keeps the pilot with a judge, which is up to date.")
        else:
            write_pilot(folder, made)
        _say_missing(authored.task.id, made)
        found.append(assess(authored, made, thresholds))
        if not as_json:
            _write_readiness(found[-1])
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
    raise click.exceptions.Exit(1 if any(one.state in FAILING for one in found) else 0)


def _choose_judge(judge: str | None, settings: Settings, *, no_judge: bool) -> str | None:
    if no_judge and judge:
        raise UsageError("Give either --judge or --no-judge.")
    name = None if no_judge else judge or settings.judge.model
    if name is None and not no_judge:
        raise UsageError("Name a judge with --judge, or try checks alone with --no-judge.")
    return name


def say_stopped(found: "JudgedBy") -> None:
    """Say how to continue if the budget stopped the judge."""
    if found.stopped is not None:
        say(f"{found.judge}: stopped at {found.stopped}. Continue with: {same_command()}")


def _say_missing(task: str, made: Pilot) -> None:
    """Say why a score is missing: the first one of them."""
    for work, leaves in made.trials.items():
        for leaf, trial in leaves.items():
            if None in trial.scores:
                say(f"{task}: no score for {work}, leaf {leaf}: {line(trial.reason, 400)}")
                return


def _write_readiness(found: Readiness) -> None:
    """Print the leaves of a task, the rules that it breaks, and its state."""
    write_table(Table(HEADING, tuple(map(_row, found.leaves))), (0, 2))
    for one in found.findings:
        grade = click.style(f"{one.check} {one.severity}", fg=COLORS[one.severity], bold=True)
        click.echo(f"{grade} {_place(one)}: {line(one.message, 300)}")
    cost = "" if found.judge is None else f"; judge {found.judge}, {_dollars(found.cost_usd)}"
    why = f" ({'; '.join(found.reasons)})" if found.reasons else ""
    say(f"{found.task}: {found.state}{why}{cost}.")


def _place(one: Finding) -> str:
    return one.file if one.field is None else f"{one.file}, leaf {one.field}"


def _dollars(cost: float | None) -> str:
    return "unknown cost" if cost is None else f"${cost:.2f}"


def _row(one: LeafReadiness) -> tuple[str, ...]:
    return (
        one.leaf,
        f"{one.share:.1%}",
        one.by,
        _score(one.gold),
        _score(one.floor),
        _part(one.hits, one.wrongs),
        _part(one.alarms, one.intact),
        _score(one.spread),
        _part(one.flips, one.repeated),
        _part(one.agreed, one.compared),
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _part(part: float, whole: int) -> str:
    return "-" if not whole else f"{part:.3g}/{whole}"
