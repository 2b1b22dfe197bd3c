"""How a run is cut into shards: lists of tasks that are evaluated apart and merged."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from pydantic import AwareDatetime

from gta_bench.records.base import Record

# A shard's log is rewritten in time with its units, so it must not grow without end.
UNITS_OF_A_SHARD = 256
# More shards than places, so that a slow one does not leave the other places idle.
SHARDS_OF_A_PLACE = 2
# Under this many units for each place, starting a process costs more than it saves.
UNITS_OF_A_PLACE = 20


class Shard(Record):
    """The tasks of one shard, in all epochs."""

    name: str
    tasks: tuple[str, ...]


class ShardPlan(Record):
    """`plan.json`: which units are evaluated together; it stays as it is when a run continues.

    `log` is the name of the log that the shards' logs become.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    log: str
    epochs: int
    shards: tuple[Shard, ...]
    digest: str


def make_plan(
    tasks: Sequence[str],
    *,
    epochs: int,
    places: int,
    log: str,
    created: AwareDatetime,
) -> ShardPlan:
    """A plan for so many places at once.

    Tasks are dealt like cards: neighbours in a dataset are alike, and a shard of long ones only
    would end last. All epochs of a task stay together, as the engine keeps them in one log.
    """
    count = shard_count(len(tasks), epochs, places)
    dealt = [tuple(tasks[place::count]) for place in range(count)]
    width = len(str(len(dealt) - 1))
    shards = tuple(
        Shard(name=f"{place:0{width}d}", tasks=names) for place, names in enumerate(dealt)
    )
    return ShardPlan(
        created=created, log=log, epochs=epochs, shards=shards, digest=plan_digest(shards, epochs)
    )


def shard_count(tasks: int, epochs: int, places: int) -> int:
    """How many shards: enough for all places, none too long, none empty."""
    by_length = -(-tasks * epochs // UNITS_OF_A_SHARD)
    return min(tasks, max(places * SHARDS_OF_A_PLACE, by_length))


def plan_digest(shards: Sequence[Shard], epochs: int) -> str:
    """What two plans with the same split have in common."""
    digest = sha256(str(epochs).encode())
    for shard in shards:
        digest.update("\0".join(["", shard.name, *shard.tasks]).encode())
    return digest.hexdigest()


def worthwhile_places(units: int, places: int) -> int:
    """How many places so few units are worth."""
    return max(1, min(places, units // UNITS_OF_A_PLACE))
