"""Attempts at a unit: one line when an attempt begins, and one when it ends."""

import sys
from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import AwareDatetime

from gta_bench.records.base import Record
from gta_bench.records.units import Usage

UnitKey = tuple[str, int]
KILLED = "its process was killed"
End = Literal["finished", "failed", "ours", "stopped"]


class AttemptLine(Record):
    """A line of `attempts.jsonl`: an attempt that began, or with `end`, how it ended.

    `failed`: no result, and the system may have caused that. `ours`: no result, and the system
    cannot have caused that. `stopped`: interrupted. An attempt without an end was killed with its
    process. `usage` is set for attempts without a result; the log has it for the others.

    >>> from datetime import UTC, datetime
    >>> AttemptLine(task="0", epoch=1, attempt="a", when=datetime(2026, 11, 16, tzinfo=UTC)).end
    """

    task: str
    epoch: int
    attempt: str
    when: AwareDatetime
    end: End | None = None
    cause: str = ""
    usage: Usage = Usage()


class Attempts(NamedTuple):
    """The attempts at one unit.

    `counted` is the number that counts toward the limit, `usage` the usage of each attempt without
    a result, and `cause` why the last counted attempt had no result.
    """

    number: int = 0
    counted: int = 0
    finished: int = 0
    cause: str = ""
    usage: tuple[Usage, ...] = ()


# What almost every unit has.
ONCE = Attempts(number=1, finished=1, cause=KILLED)


def count_attempts(lines: Iterable[AttemptLine]) -> dict[UnitKey, Attempts]:
    """The attempts at every unit; interrupted ones are included but not counted for the limit.

    Almost all attempts finish, so of those only the ids are kept in memory.
    """
    others: dict[UnitKey, dict[str, AttemptLine]] = {}
    finished: dict[UnitKey, tuple[str, ...]] = {}
    for line in lines:
        key = (sys.intern(line.task), line.epoch)
        own = others.setdefault(key, {})
        own.pop(line.attempt, None)
        done = tuple(one for one in finished.get(key, ()) if one != line.attempt)
        if line.end == "finished":
            done = (*done, line.attempt)
        else:
            own[line.attempt] = line
        finished[key] = done
        if not own:
            del others[key]
    return {
        key: _summarize([*others.get(key, {}).values()], len(done))
        if key in others or len(done) > 1
        else ONCE
        for key, done in finished.items()
    }


def newest_lines(lines: Iterable[AttemptLine]) -> dict[UnitKey, dict[str, AttemptLine]]:
    """The last line of every attempt, by unit and id."""
    newest: dict[UnitKey, dict[str, AttemptLine]] = {}
    for line in lines:
        newest.setdefault((line.task, line.epoch), {})[line.attempt] = line
    return newest


def _summarize(lines: list[AttemptLine], finished: int) -> Attempts:
    open_ends = [line for line in lines if line.end in (None, "failed")]
    causes = [line.cause for line in open_ends if line.cause]
    return Attempts(
        number=len(lines) + finished,
        counted=len(open_ends),
        finished=finished,
        cause=causes[-1] if causes else KILLED,
        usage=tuple(line.usage for line in lines),
    )
