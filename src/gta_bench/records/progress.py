"""How far a run is: what each shard says of itself, and the sum of it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import get_args

from pydantic import AwareDatetime

from gta_bench.records.base import Record
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.units import StopKind

# Causes that are told apart; the rarer ones are counted together.
MOST_CAUSES = 8
OTHER_CAUSES = "other causes"
_LONGEST = 160
# What differs from one failure to the next though the cause is the same: ids of requests and such.
_IDS = re.compile(r"\b(?:req_\w+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,})\b")


class Command(Record):
    """What one command set out to do: of `units`, `finished` were there before it began.

    `judge` is the judge that is asked, None where units are run. `spent_usd` is what is known of
    what was spent before, and `unpriced` says that more was, at an unknown price. `stops` counts
    how replies ended in the units that were finished before.
    """

    started: AwareDatetime
    judge: str | None = None
    units: int
    finished: int
    spent_usd: float | None = None
    unpriced: bool = False
    backend: str = "inline"
    places: int = 1
    stops: Mapping[StopKind, int] = {}


class ShardProgress(Record):
    """What a shard has done since its command began; a retry of it counts on.

    `cost_usd` is what is known of the cost, and `unpriced` says that there is more to it. `causes`
    says how many units failed by each cause, `stops` how replies of finished units ended that did
    not end in the ordinary way.
    """

    shard: str
    command: AwareDatetime
    updated: AwareDatetime
    done: int = 0
    failed: int = 0
    running: int = 0
    cost_usd: float | None = None
    unpriced: bool = False
    causes: Mapping[str, int] = {}
    stops: Mapping[StopKind, int] = {}

    @property
    def cost(self) -> Cost:
        """What it has cost."""
        return Cost(known=self.cost_usd, unknown=self.unpriced)


class RunProgress(Record):
    """How far a run is; `stopped` says which limit ended it.

    `cost_usd` is None where a part of the cost is unknown, `known_usd` the part that is known.
    `causes` says why units failed, the most frequent cause first; `stops` counts replies that did
    not end in the ordinary way, of all finished units. `needed_usd` is about what the whole run
    costs, where money stopped it.
    """

    units: int
    done: int
    failed: int = 0
    running: int = 0
    cost_usd: float | None = None
    known_usd: float | None = None
    started: AwareDatetime
    updated: AwareDatetime
    done_now: int = 0
    causes: Mapping[str, int] = {}
    stops: Mapping[StopKind, int] = {}
    stopped: str | None = None
    needed_usd: float | None = None

    @property
    def rate(self) -> float | None:
        """Units a minute, since the command began."""
        minutes = (self.updated - self.started) / timedelta(minutes=1)
        return self.done_now / minutes if self.done_now and minutes > 0 else None

    @property
    def left(self) -> timedelta | None:
        """How long the rest will take at that rate."""
        rate = self.rate
        return None if rate is None else timedelta(minutes=(self.units - self.done) / rate)


def total_cost(command: Command, shards: Iterable[ShardProgress]) -> Cost:
    """What was spent before the command and by its shards."""
    own = (shard.cost for shard in shards if shard.command == command.started)
    return sum_costs((Cost(known=command.spent_usd, unknown=command.unpriced), *own))


def total_progress(command: Command, shards: Iterable[ShardProgress]) -> RunProgress:
    """The sum over the command's shards; what another command left behind does not count."""
    own = [shard for shard in shards if shard.command == command.started]
    cost = total_cost(command, own)
    done = sum(shard.done for shard in own)
    return RunProgress(
        units=command.units,
        done=command.finished + done,
        failed=sum(shard.failed for shard in own),
        running=sum(shard.running for shard in own),
        cost_usd=cost.total,
        known_usd=cost.known,
        started=command.started,
        updated=max((shard.updated for shard in own), default=command.started),
        done_now=done,
        causes=count_causes(one.causes for one in own),
        stops=sum_stops((command.stops, *(one.stops for one in own))),
    )


def short_cause(failure: str) -> str:
    """The first line of what ended a unit, the same for all units that one cause ended."""
    line = next(iter(failure.strip().splitlines()), "") or "no reason was given"
    return _IDS.sub("…", line)[:_LONGEST]


def count_causes(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of all counts, the most frequent cause first."""
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    rest = found.pop(OTHER_CAUSES, 0)
    first = found.most_common(MOST_CAUSES)
    rest += found.total() - sum(count for _, count in first)
    return dict(first) | ({OTHER_CAUSES: rest} if rest else {})


def sum_stops(counts: Iterable[Mapping[StopKind, int]]) -> dict[StopKind, int]:
    """The sum of all counts, in the order in which reports have them."""
    found: Counter[StopKind] = Counter()
    for one in counts:
        found.update(one)
    return {kind: found[kind] for kind in get_args(StopKind) if found[kind]}
