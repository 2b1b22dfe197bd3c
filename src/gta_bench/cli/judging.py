"""A stored run before its judges, with a bar that counts units."""

from gta_bench.cli.output import say, unit_bar
from gta_bench.cluster.backend import INLINE, Backend
from gta_bench.runs.store import StorePath
from gta_bench.tasks.judge_run import JudgedBy, Judging, judge_run


def judge_with_bar(run: StorePath, judging: Judging, backend: Backend = INLINE) -> list[JudgedBy]:
    """Ask the judges for what is missing, and tell what came of it."""
    judged = []
    for found in judge_run(run, judging, unit_bar, backend):
        if found.stopped is None:
            say(f"{found.judge}: {found.wanted} leaves asked, {found.scored} scored.")
        else:
            say(
                f"{found.judge}: stopped at {found.stopped}; {found.scored} of {found.wanted} "
                "leaves scored. The same command with more room asks for the rest."
            )
        judged.append(found)
    return judged
