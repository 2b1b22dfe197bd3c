"""Judges as named configurations, and how scores move when one takes another's place."""

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal

from pydantic import JsonValue

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval

# Digests of the judge's prompts, with the first version that had them. A change of the prompts
# adds a line, and none is taken away: bundles that earlier versions judged stay known.
PROMPT_DIGESTS: Final[Mapping[str, str]] = {
    "b1460e666f260b208a8cd41e29072542f6d2af8d8103ab602a558ea42612a83a": "0.1.0",
}
# May runs of both stand in one table? `unknown`: too few leaves to say.
Sharing = Literal["yes", "no", "unknown"]


class JudgeEntry(Record):
    """Everything of a judge that can move a verdict; equal digests are the same judge.

    `generation` has the other options and arguments of its model. `first` and `last` are when it
    was asked in this run.
    """

    name: str
    digest: str
    model: str
    options: Mapping[str, JsonValue]
    temperature: float | None = None
    seed: int | None = None
    generation: Mapping[str, JsonValue] = {}
    prompts: str
    first: datetime
    last: datetime

    def compute_digest(self) -> str:
        """The digest of what is said here; judges without `generation` always had one without."""
        left_out = {"digest", "first", "last"} | (set() if self.generation else {"generation"})
        held = self.model_dump(mode="json", exclude=left_out)
        return sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


class JudgeRegistry(Record):
    """`judges.json` of a run: every judge that was asked."""

    format: int = 1
    judges: tuple[JudgeEntry, ...] = ()

    def with_entry(self, entry: JudgeEntry) -> "JudgeRegistry":
        """With this one; a judge that is there already was asked once more."""
        known = next((one for one in self.judges if one.digest == entry.digest), None)
        if known is None:
            return self.model_copy(update={"judges": (*self.judges, entry)})
        later = known.model_copy(update={"last": entry.last})
        judges = tuple(later if one is known else one for one in self.judges)
        return self.model_copy(update={"judges": judges})

    def of(self, name: str) -> tuple[JudgeEntry, ...]:
        """The judges of that name; several where its prompts changed."""
        return tuple(one for one in self.judges if one.name == name)


class Drift(Record):
    """A new judge against an old one, on the same leaves with the same evidence: new minus old.

    `left_out` leaves have a score of one of them only, or other evidence. `kappa` is that of the
    scores with quadratic weights, `ac1` Gwet's for passed or not; `flips` is the share of leaves
    that pass by one and fail by the other.
    """

    old: str
    new: str
    leaves: int
    tasks: int
    left_out: int
    leaf_score: Interval
    leaf_sr: Interval
    root_score: Interval | None
    kappa: Interval | None
    ac1: Interval | None
    flips: Interval
    same_prompts: bool
    margin: float
    sharing: Sharing


class CascadeRow(Record):
    """What a cheap judge saves if a strong one is asked only within `band` of the threshold.

    Shares are percents of leaves. `saved` are the strong judge's calls that are not made, `error`
    the outcomes that are not the strong judge's, and `outside` the same among leaves whose calls
    are saved; None where none is. `unscored` have no score in the end. `leaf_sr` and `root_score`
    are by how much these scores move; `cost_usd` is that of judging the run once.
    """

    band: float
    saved: Interval
    error: Interval
    outside: Interval | None
    unscored: float
    leaf_sr: Interval
    root_score: Interval | None
    cost_usd: float | None


class CascadeReport(Record):
    """Every band, and the narrowest that keeps `error` at or below `limit` percent.

    The figures of `chosen` are out of fold: those of a part of the tasks are had with the band
    that all other tasks choose (`folds`). None where there is one task only.
    """

    leaves: int
    tasks: int
    repeats: int
    left_out: int
    limit: float
    rows: tuple[CascadeRow, ...]
    chosen: CascadeRow | None
    folds: tuple[float, ...]


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
