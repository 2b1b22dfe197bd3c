"""Judges as named configurations, and how scores change when one judge replaces another."""

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal

from pydantic import JsonValue

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval

# Digests of the judge's prompts, with the first version that had them. A change of the prompts adds
# a line. No line is ever removed, so that bundles judged by earlier versions stay known.
PROMPT_DIGESTS: Final[Mapping[str, str]] = {
    "b1460e666f260b208a8cd41e29072542f6d2af8d8103ab602a558ea42612a83a": "0.1.0",
}
# The provider of judges that are functions of a user.
OWN_JUDGE: Final = "own"
# Whether runs of both judges can be in one table. `unknown`: too few leaves.
Sharing = Literal["yes", "no", "unknown"]


class JudgeEntry(Record):
    """Everything about a judge that can change a verdict; equal digests mean the same judge.

    `generation` has the other options and arguments of its model. `first` and `last` are the times
    of its first and last use in this run.
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

    @property
    def is_own(self) -> bool:
        """Whether the judge is a user's function, not a model."""
        return self.model.startswith(f"{OWN_JUDGE}/")

    def compute_digest(self) -> str:
        """The digest of this configuration; an empty `generation` is left out, as it always was."""
        left_out = {"digest", "first", "last"} | (set() if self.generation else {"generation"})
        configuration = self.model_dump(mode="json", exclude=left_out)
        return sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()


class JudgeRegistry(Record):
    """`judges.json` of a run: every judge that was used."""

    format: int = 1
    judges: tuple[JudgeEntry, ...] = ()

    def with_entry(self, entry: JudgeEntry) -> "JudgeRegistry":
        """A registry that includes this judge; one that is already there gets a later `last`."""
        judges = {one.digest: one for one in self.judges}
        known = judges.get(entry.digest, entry)
        judges[entry.digest] = known.model_copy(update={"last": entry.last})
        return self.model_copy(update={"judges": tuple(judges.values())})

    def of(self, name: str) -> tuple[JudgeEntry, ...]:
        """The judges with that name; several if the prompts changed."""
        return tuple(one for one in self.judges if one.name == name)


class Drift(Record):
    """A new judge compared with an old one, on leaves with the same evidence: new minus old.

    `left_out` leaves have a score from only one of them, or different evidence. `kappa` is Cohen's
    kappa of the scores with quadratic weights, `ac1` Gwet's for pass or fail; `flips` is the share
    of leaves that pass with one judge and fail with the other.
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

    Rates are percentages of leaves. `saved` is the rate of calls to the strong judge that are not
    needed, `error` the rate of outcomes that differ from the strong judge's, and `outside` the same
    among leaves with saved calls (None if there are none). `unscored` leaves end without a score.
    `leaf_sr` and `root_score` are the changes of these scores; `cost_usd` is the cost of judging
    the run once.
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

    The values of `chosen` are cross-validated: each fold of the tasks uses the band that the other
    tasks choose (`folds`). None if there is only one task.
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
    """One null system scored by one judge on a run's tasks; `n` of `n_units` have a root score."""

    judge: str
    system: str
    root_score: float | None
    root_sr: float | None
    leaf_sr: float | None
    n: int
    n_units: int


class Floors(Record):
    """`floor.json` of a run: every null system, scored by every judge that was used."""

    format: int = 1
    rows: tuple[Floor, ...] = ()

    def of(self, judge: str) -> tuple[Floor, ...]:
        """The rows of one judge."""
        return tuple(row for row in self.rows if row.judge == judge)
