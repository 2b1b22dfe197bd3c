"""What a judge gives to systems that do nothing."""

from gta_bench.records.base import Record


class Floor(Record):
    """One null system before one judge, on the tasks of a run; `n` of `n_units` have a root."""

    judge: str
    system: str
    root_score: float | None
    root_sr: float | None
    leaf_sr: float | None
    n: int
    n_units: int


class Floors(Record):
    """`floor.json` of a run: every null system before every judge that was asked."""

    format: int = 1
    rows: tuple[Floor, ...] = ()

    def of(self, judge: str) -> tuple[Floor, ...]:
        """The floor of one judge."""
        return tuple(row for row in self.rows if row.judge == judge)
