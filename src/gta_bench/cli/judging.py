"""A stored run before its judges, with a bar that counts units."""

from pathlib import Path

from gta_bench.cli.output import say, unit_bar
from gta_bench.tasks.judge_run import JudgedBy, Judging, judge_run


def judge_with_bar(run: Path, judging: Judging) -> list[JudgedBy]:
    """Ask the judges for what is missing, and tell what came of it."""
    judged = []
    for found in judge_run(run, judging, lambda judge, total: unit_bar(judge, total, 0)):
        if found.stopped is None:
            say(f"{found.judge}: {found.wanted} leaves asked, {found.scored} scored.")
        else:
            say(
                f"{found.judge}: stopped at {found.stopped}; {found.scored} of {found.wanted} "
                "leaves scored. The same command with more room asks for the rest."
            )
        judged.append(found)
    return judged
