"""A stored run before its judges, with a bar that counts units."""

from gta_bench.cli.output import say, unit_bar
from gta_bench.cluster.backend import INLINE, Backend
from gta_bench.runs.store import StorePath
from gta_bench.tasks.judge_run import Judging, judge_run


def judge_with_bar(run: StorePath, judging: Judging, backend: Backend = INLINE) -> list[str]:
    """Ask the judges for what is missing; the names under which their verdicts are kept."""
    names = []
    for found in judge_run(run, judging, unit_bar, backend):
        say(f"{found.judge}: {found.asked} leaves asked, {found.scored} scored.")
        names.append(found.judge)
    return names
