"""First causes of failures, counted: what would help most stands first."""

from collections.abc import Sequence

from gta_bench.metrics.failures import count_failures
from gta_bench.records.failures import Failure
from gta_bench.reports.tables import Table

COLUMNS = ("run", "first cause", "failures", "share", "tasks", "for example")
LONGEST = 80


def failure_table(runs: Sequence[tuple[str, Sequence[Failure]]]) -> Table:
    """A row for each cause of each run, the most frequent first."""
    return Table(COLUMNS, tuple(row for name, failed in runs for row in _rows(name, failed)))


def _rows(name: str, failed: Sequence[Failure]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            count.cause,
            str(count.failures),
            f"{100 * count.failures / len(failed):.1f} %",
            str(count.tasks),
            example(next(one for one in failed if one.cause == count.cause)),
        )
        for count in count_failures(failed)
    ]


def example(failure: Failure) -> str:
    """One failure in a line: where, and what was seen."""
    where = f"task {failure.task}"
    if failure.place != "task":
        where += f", {failure.place}"
    said = f"{where}: {failure.detail}" if failure.detail else where
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
