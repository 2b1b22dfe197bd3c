"""A stored run before its judges, with a bar that counts units."""

from collections import Counter

from gta_bench.cli.again import same_command
from gta_bench.cli.output import say, unit_bar
from gta_bench.errors import counted
from gta_bench.records.verdicts import Cause, Unscored
from gta_bench.reports.tables import line
from gta_bench.running.backends.backend import INLINE, Backend
from gta_bench.running.judge_run import JudgedBy, Judging, judge_run
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts


def judge_with_bar(run: StorePath, judging: Judging, backend: Backend = INLINE) -> list[JudgedBy]:
    """Ask the judges for what is missing, and tell what came of it."""
    judged = []
    for found in judge_run(run, judging, unit_bar, backend):
        leaves = counted(found.wanted, "leaf", "leaves")
        if found.stopped is None:
            say(f"{found.judge}: {leaves} asked, {found.scored} scored.")
        else:
            say(
                f"{found.judge}: stopped at {found.stopped}; {found.scored} of {leaves} scored. "
                f"Continue with: {same_command()}"
            )
        if found.scored < found.wanted:
            _say_unscored(run, found.judge)
        judged.append(found)
    return judged


def _say_unscored(run: StorePath, judge: str) -> None:
    """Why leaves have no score, and what came instead of one the first time."""
    times: Counter[Cause] = Counter()
    first: dict[Cause, str] = {}
    # By place, not by the time of the reply: the same run says the same every time.
    rows = sorted(read_verdicts(run).items(), key=lambda one: (one[0].task, one[0].leaf))
    for key, row in rows:
        if key.judge == judge and isinstance(row.verdict, Unscored):
            times[row.verdict.cause] += 1
            first.setdefault(
                row.verdict.cause, f"task {key.task}, {key.leaf}: {row.verdict.detail}"
            )
    for cause, count in times.most_common():
        leaves = counted(count, "leaf", "leaves")
        say(f"{judge}: {cause}, {leaves} without a score. The first: {line(first[cause], 300)}")
