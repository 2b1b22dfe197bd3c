"""`gta judge ceiling`: what a judge gives to work that is known to be right or wrong."""

from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import (
    FOLDER,
    NEW_FOLDER,
    command_settings,
    json_option,
    judge_options,
    preflight_option,
)
from gta_bench.cli.output import say, unit_bar, write_json, write_table
from gta_bench.cli.task_pilot import say_stopped
from gta_bench.errors import UsageError, format_count
from gta_bench.packages import require_packages


@click.command()
@click.argument("judge")
@click.option(
    "--tasks",
    "places",
    type=FOLDER,
    multiple=True,
    required=True,
    help="Folder of task folders with gold/ and wrong/, such as `gta forge` writes; repeatable.",
)
@click.option(
    "--out", type=NEW_FOLDER, default="runs/ceiling", help="Folder for works and verdicts."
)
@judge_options
@preflight_option
@json_option
def ceiling(
    judge: str,
    places: tuple[Path, ...],
    out: Path,
    preflight: bool,
    as_json: bool,
    **asking: JsonValue,
) -> None:
    """Let JUDGE, a model, decide every leaf of work that is known to be right or wrong.

    The works in gold/ and wrong/ take the path of a system's work, but their checks are removed,
    so that the judge decides. Prints how many broken leaves it found and how many intact leaves it
    passed, by kind of file and type of leaf, and the leaves that it failed in every right work:
    their evidence or the prompt may be at fault. The result is written to ceiling.json; show it
    beside the scores of a run with `gta report RUN --ceiling FILE`. Run the same command again to
    continue. Exits with 1 if a score is missing.
    """
    require_packages("gta judge ceiling", "scipy", extra="report")
    from gta_bench.authoring.ceiling import CEILING_FILE, measure_ceiling
    from gta_bench.authoring.proofs import find_tasks, read_authored
    from gta_bench.judge_quality.ceiling import ceiling_remarks, group_table, suspect_table
    from gta_bench.running.judge_run import plan_judging
    from gta_bench.running.preflight import check_judges

    settings = command_settings({f"judge.{name}": value for name, value in asking.items()})
    judging = plan_judging((judge,), settings)
    tasks = [read_authored(folder) for folder in find_tasks(places)]
    if len({authored.task.id for authored in tasks}) < len(tasks):
        raise UsageError("Two of the tasks have the same name. Rename one of them.")
    if preflight:
        check_judges(judging, out, say)
    works = sum(len(authored.of("gold")) + len(authored.of("wrong")) for authored in tasks)
    size = f"{format_count(works, 'work')} of {format_count(len(tasks), 'task')}"
    say(f"{size}: rendering the evidence, then asking the judge.")
    found = measure_ceiling(tasks, out, judging, unit_bar, say_stopped)
    if as_json:
        write_json(found.model_dump(mode="json"))
    else:
        write_table(group_table(found.groups), (0, 1))
        if found.suspects:
            click.echo("\nLeaves that fail in every right work")
            write_table(suspect_table(found.suspects), (0, 1, 2, 3, 5, 6))
        for remark in ceiling_remarks(found):
            say(remark)
        say(f"Wrote {out / CEILING_FILE}. Next: gta report RUN --ceiling {out / CEILING_FILE}")
    raise click.exceptions.Exit(1 if found.unscored else 0)
