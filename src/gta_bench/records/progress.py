"""How far a run is: what each shard says of itself, and the sum of it."""

from collections.abc import Iterable
from datetime import timedelta

from pydantic import AwareDatetime

from gta_bench.records.base import Record


class Command(Record):
    """What one command set out to do: of `units`, `finished` were there before it began.

    `judge` is the judge that is asked, None where units are run.
    """

    started: AwareDatetime
    judge: str | None = None
    units: int
    finished: int
    spent_usd: float | None = None
    backend: str = "inline"
    places: int = 1


class ShardProgress(Record):
    """What a shard has done since its command began; a retry of it counts on."""

    shard: str
    command: AwareDatetime
    updated: AwareDatetime
    done: int = 0
    failed: int = 0
    running: int = 0
    cost_usd: float | None = None


class RunProgress(Record):
    """How far a run is; `cost_usd` is None where no price is known, `stopped` says which limit."""

    units: int
    done: int
    failed: int = 0
    running: int = 0
    cost_usd: float | None = None
    started: AwareDatetime
    updated: AwareDatetime
    done_now: int = 0
    stopped: str | None = None

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


def total_progress(command: Command, shards: Iterable[ShardProgress]) -> RunProgress:
    """The sum over the command's shards; what another command left behind does not count."""
    own = [shard for shard in shards if shard.command == command.started]
    costs = [shard.cost_usd for shard in own if shard.cost_usd is not None]
    spent = [command.spent_usd] if command.spent_usd is not None else []
    done = sum(shard.done for shard in own)
    return RunProgress(
        units=command.units,
        done=command.finished + done,
        failed=sum(shard.failed for shard in own),
        running=sum(shard.running for shard in own),
        cost_usd=sum((*spent, *costs)) if spent or costs else None,
        started=command.started,
        updated=max((shard.updated for shard in own), default=command.started),
        done_now=done,
    )
