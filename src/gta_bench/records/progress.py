"""The progress of a run: a record for each shard, and their sum."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import get_args

from pydantic import AwareDatetime

from gta_bench.records.base import Record
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.units import StopKind

# Causes that are listed separately; the rarer ones are counted together.
MOST_CAUSES = 8
OTHER_CAUSES = "other causes"
_LONGEST = 160
# Parts of messages that differ although the cause is the same, such as request ids.
_IDS = re.compile(r"\b(?:req_\w+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,})\b")


class Command(Record):
    """What one command has to do: of `units`, `finished` were done before it began.

    `judge` is the judge in use, None if units are run. `spent_usd` is the known amount that was
    spent before, and `unpriced` says that more was spent at an unknown price. `stops` counts how
    replies ended in the units that were finished before.
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
    """What a shard has done since its command began; retries are added.

    `cost_usd` is the known cost, and `unpriced` says that there is more at an unknown price.
    `causes` counts failed units by cause, `stops` the replies in finished units that did not end
    normally.
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
        """The cost so far."""
        return Cost(known=self.cost_usd, unknown=self.unpriced)


class RunProgress(Record):
    """The progress of a run; `stopped` says which limit ended it.

    `cost_usd` is None if a part of the cost is unknown, `known_usd` is the known part. `causes`
    counts failed units by cause, most frequent first; `stops` counts replies that did not end
    normally, in all finished units. `needed_usd` is the estimated cost of the whole run, if a
    budget stopped it.
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
        """Units per minute since the command began; None before the first one."""
        minutes = (self.updated - self.started) / timedelta(minutes=1)
        return self.done_now / minutes if self.done_now and minutes > 0 else None

    @property
    def left(self) -> timedelta | None:
        """How long the remaining units take at the current rate."""
        rate = self.rate
        return None if rate is None else timedelta(minutes=(self.units - self.done) / rate)


def total_cost(command: Command, shards: Iterable[ShardProgress]) -> Cost:
    """The cost before the command and of its shards."""
    own = (shard.cost for shard in shards if shard.command == command.started)
    return sum_costs((Cost(known=command.spent_usd, unknown=command.unpriced), *own))


def total_progress(command: Command, shards: Iterable[ShardProgress]) -> RunProgress:
    """The sum over the command's shards; shards of earlier commands are ignored."""
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
    """The first line of a failure, without ids, so that equal causes have equal texts."""
    line = next(iter(failure.strip().splitlines()), "") or "no reason was given"
    return _IDS.sub("…", line)[:_LONGEST]


def count_causes(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of all counts, most frequent cause first; rare causes are counted together."""
    found = sum(map(Counter, counts), Counter[str]())
    rest = found.pop(OTHER_CAUSES, 0)
    first = found.most_common(MOST_CAUSES)
    rest += found.total() - sum(count for _, count in first)
    return dict(first) | ({OTHER_CAUSES: rest} if rest else {})


def sum_stops(counts: Iterable[Mapping[StopKind, int]]) -> dict[StopKind, int]:
    """The sum of all counts, in the order that reports use."""
    found = sum(map(Counter, counts), Counter[StopKind]())
    return {kind: found[kind] for kind in get_args(StopKind) if found[kind]}
