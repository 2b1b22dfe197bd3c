"""How a run is split into shards: lists of tasks that are evaluated separately and merged."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from pydantic import AwareDatetime

from gta_bench.records.base import Record

# A shard's log is rewritten as its units finish, so it must not become too long.
UNITS_PER_SHARD = 256
# More shards than workers, so that a slow shard does not leave the other workers idle.
SHARDS_PER_WORKER = 2
# With fewer units per worker, starting a process costs more than it saves.
UNITS_PER_WORKER = 20


class Shard(Record):
    """The tasks of one shard, in all epochs."""

    name: str
    tasks: tuple[str, ...]


class ShardPlan(Record):
    """`plan.json`: which units are evaluated together; it does not change when a run continues.

    `log` is the name of the log that the shards' logs are merged into.
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
    """A plan for that many workers (`places`).

    Tasks are dealt in turn, because neighboring tasks of a dataset are alike, and a shard of long
    tasks only would end last. All epochs of a task stay together, since the engine keeps them in
    one log.
    """
    count = shard_count(len(tasks), epochs, places)
    width = len(str(count - 1))
    shards = tuple(
        Shard(name=f"{index:0{width}d}", tasks=tuple(tasks[index::count])) for index in range(count)
    )
    return ShardPlan(
        created=created, log=log, epochs=epochs, shards=shards, digest=plan_digest(shards, epochs)
    )


def shard_count(tasks: int, epochs: int, places: int) -> int:
    """The number of shards: enough for all workers, none too long, none empty."""
    by_length = -(-tasks * epochs // UNITS_PER_SHARD)
    return min(tasks, max(places * SHARDS_PER_WORKER, by_length))


def plan_digest(shards: Sequence[Shard], epochs: int) -> str:
    """The digest of a split; equal for plans with the same shards."""
    digest = sha256(str(epochs).encode())
    for shard in shards:
        digest.update("\0".join(["", shard.name, *shard.tasks]).encode())
    return digest.hexdigest()


def count_useful_workers(units: int, places: int) -> int:
    """How many workers are worth starting for that many units."""
    return max(1, min(places, units // UNITS_PER_WORKER))
