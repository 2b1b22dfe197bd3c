"""Replies that are wrong and look right."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn

NUMBER = re.compile(r"\d+")
WORD = re.compile(r"[^\W\d_]{2,}")
NOTHING = "Nothing was found."


class OtherReplies:
    """What tools said in the reference dialogues, by tool and task."""

    def __init__(self, tasks: Iterable[AtomicTask]) -> None:
        self._replies: dict[str, list[tuple[str, str]]] = {}
        for task in tasks:
            for turn, reply in pairwise(task.dialogue):
                if (
                    isinstance(turn, CallTurn)
                    and isinstance(reply, ReplyTurn)
                    and reply.type == "text"
                ):
                    said = self._replies.setdefault(turn.call.name, [])
                    said.append((task.id, reply.content))

    def texts(self, tool: str, *, besides: str) -> tuple[str, ...]:
        """The tool's texts of all tasks but one."""
        return tuple(text for task, text in self._replies.get(tool, ()) if task != besides)


def corrupted(text: str, dice: Random, others: Sequence[str]) -> str:
    """Another text in its place: numbers changed, or what the tool said in another task.

    A text that is mostly words would stay half true with other numbers, so it is replaced.
    """
    if NUMBER.search(text) and not WORD.search(text):
        return _other_numbers(text, dice)
    # Another task may have the same text, by chance or because it has the same picture.
    choices = [other for other in others if other.strip() != text.strip()]
    if choices:
        return dice.choice(choices)
    return _other_numbers(text, dice) if NUMBER.search(text) else NOTHING


def _other_numbers(text: str, dice: Random) -> str:
    """Every number is another one with as many digits."""

    def other(found: re.Match[str]) -> str:
        digits = found.group()
        first = dice.choice([digit for digit in "123456789" if digit != digits[0]])
        return first + "".join(dice.choice("0123456789") for _ in digits[1:])

    return NUMBER.sub(other, text)
