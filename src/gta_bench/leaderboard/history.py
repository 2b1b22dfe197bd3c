"""The boards over time: what each release holds, and who stands in several of them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.leaderboard.tables import Row, Table


class Career(NamedTuple):
    """One system in the releases of a board, oldest first."""

    system: str
    rows: tuple[tuple[str, Row], ...]

    @property
    def unchanged(self) -> bool:
        """Whether all releases state the very same scores."""
        return all(row.entry.scores == self.rows[0][1].entry.scores for _, row in self.rows)


def careers(tables: Sequence[Table]) -> list[Career]:
    """Systems that are in more than one release of the same board, by their newest score."""
    found: dict[str, list[tuple[str, Row]]] = {}
    for table in sorted(tables, key=lambda table: table.release):
        for row in table.rows:
            found.setdefault(_name(row.entry.system), []).append((table.release, row))
    kept = [Career(rows[-1][1].entry.system, tuple(rows)) for rows in found.values()]
    several = [career for career in kept if len(career.rows) > 1]
    return sorted(several, key=lambda career: -career.rows[-1][1].headline.value)


def _name(system: str) -> str:
    """`claude3-opus` and `Claude-3-Opus` are one system."""
    return re.sub(r"[^a-z0-9]", "", system.lower())
