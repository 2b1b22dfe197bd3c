"""Controls: the same run with tools removed, or with replies spoiled on purpose.

Random draws depend only on the seed, the task, the epoch and the call, so the same seed gives the
same run, whatever else runs at the same time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import Literal, NamedTuple

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import InjectedFault, ToolError, UsageError, format_count
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import ToolResult
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.records.tools import ToolSpec
from gta_bench.tape.storage import canonical_json
from gta_bench.tools.source import ToolSource

NUMBER = re.compile(r"\d+")
WORD = re.compile(r"[^\W\d_]{2,}")
NOTHING = "Nothing was found."


class OtherReplies:
    """The text replies of tools in the reference dialogues, by tool and task."""

    def __init__(self, tasks: Iterable[AtomicTask]) -> None:
        self._replies: dict[str, list[tuple[str, str]]] = {}
        for task in tasks:
            for turn, reply in pairwise(task.dialogue):
                if not isinstance(turn, CallTurn) or not isinstance(reply, ReplyTurn):
                    continue
                if reply.type == "text":
                    self._replies.setdefault(turn.call.name, []).append((task.id, reply.content))

    def texts(self, tool: str, *, besides: str) -> tuple[str, ...]:
        """Return the tool's replies in all tasks but one."""
        return tuple(text for task, text in self._replies.get(tool, ()) if task != besides)


def corrupt_text(text: str, dice: Random, others: Sequence[str]) -> str:
    """Return a wrong text instead: with other numbers, or the tool's reply in another task.

    A text with words would stay half true with other numbers, so it is replaced.
    """
    if NUMBER.search(text) and not WORD.search(text):
        return _change_numbers(text, dice)
    # Another task may have the same text, by chance or because it has the same picture.
    choices = [other for other in others if other.strip() != text.strip()]
    if choices:
        return dice.choice(choices)
    return _change_numbers(text, dice) if NUMBER.search(text) else NOTHING


def _change_numbers(text: str, dice: Random) -> str:
    """Replace every number by another one with as many digits."""

    def other(found: re.Match[str]) -> str:
        digits = found.group()
        first = dice.choice([digit for digit in "123456789" if digit != digits[0]])
        return first + "".join(dice.choice("0123456789") for _ in digits[1:])

    return NUMBER.sub(other, text)


ControlKind = Literal["no-tools", "corrupt-replies", "faults", "distractors"]
KNOWN = "no-tools, corrupt-replies, faults=RATE (above 0, at most 1), distractors=COUNT"


class Control(NamedTuple):
    """One control; `amount` is the rate of faults or the number of distractors."""

    kind: ControlKind
    amount: float = 0.0


def parse_controls(texts: Sequence[str]) -> tuple[Control, ...]:
    """Parse controls as given on the command line: `no-tools`, `faults=0.2`, …"""
    controls = tuple(_parse_control(text) for text in texts)
    kinds = [control.kind for control in controls]
    if len(set(kinds)) < len(kinds):
        raise UsageError("--control has the same control twice; remove one of them.")
    if "no-tools" in kinds and len(kinds) > 1:
        raise UsageError("--control no-tools cannot be combined with other controls.")
    return controls


def _parse_control(text: str) -> Control:
    kind, equals, amount = text.partition("=")
    match kind, bool(equals):
        case ("no-tools" | "corrupt-replies") as plain, False:
            return Control(plain)
        case "faults", True:
            with suppress(ValueError):
                if 0 < float(amount) <= 1:
                    return Control("faults", float(amount))
        case "distractors", True if amount.isdecimal() and int(amount) > 0:
            return Control("distractors", int(amount))
    raise UsageError(
        f"--control {text!r} is unknown or has an invalid amount. Known controls: {KNOWN}."
    )


class Dice(NamedTuple):
    """A unit's source of random draws."""

    seed: int
    task: str
    epoch: int

    def roll(self, purpose: str, call: int = 0) -> Random:
        """Return a generator for one purpose and one call."""
        return Random(f"{self.seed}/{self.task}/{self.epoch}/{purpose}/{call}")


class Controls:
    """The controls of a run; `others` are the replies that corruption may substitute."""

    def __init__(self, controls: Sequence[Control], seed: int, others: OtherReplies) -> None:
        self._amounts = {control.kind: control.amount for control in controls}
        self._seed = seed
        self._others = others

    def wrap(self, source: ToolSource, *, task: str, epoch: int) -> ToolSource:
        """Return the tool source that a unit uses."""
        dice = Dice(self._seed, task, epoch)
        if "no-tools" in self._amounts:
            return NoTools()
        if "corrupt-replies" in self._amounts:
            source = CorruptReplies(source, dice, self._others)
        if "faults" in self._amounts:
            source = Faults(source, dice, self._amounts["faults"])
        return source

    def offer(
        self, tools: Sequence[ToolSpec], known: Mapping[str, ToolSpec], *, task: str, epoch: int
    ) -> list[ToolSpec]:
        """Return the tools that a unit is offered instead of its own."""
        if "no-tools" in self._amounts:
            return []
        wanted = int(self._amounts.get("distractors", 0))
        own = {tool.name for tool in tools}
        foreign = [known[name] for name in sorted(known) if name not in own]
        if len(foreign) < wanted:
            raise UsageError(
                f"--control distractors={wanted}: only {format_count(len(foreign), 'tool')} can be "
                "added to the tools of this task; lower the number."
            )
        dice = Dice(self._seed, task, epoch).roll("distractors")
        offered = [*tools, *dice.sample(foreign, wanted)]
        # Distractors that always come last would be easy to tell apart.
        if wanted:
            dice.shuffle(offered)
        return offered


class NoTools:
    """A source without any tool, to find tasks that are solved without tools."""

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return no tools."""
        return {}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Raise ToolError."""
        raise ToolError("There are no tools. Answer without them.")


class _Disturbed:
    """A tool source whose replies a control changes."""

    def __init__(self, source: ToolSource, dice: Dice) -> None:
        self._source = source
        self._dice = dice

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the tools of the wrapped source."""
        return self._source.specs()


class CorruptReplies(_Disturbed):
    """Gives a wrong reply to the first of equal calls, and the true one to repeats of it.

    A system that trusts every reply is misled; one that asks again can find out.
    """

    def __init__(self, source: ToolSource, dice: Dice, others: OtherReplies) -> None:
        super().__init__(source, dice)
        self._others = others
        self._made: Counter[str] = Counter()

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call the tool and change its text; files and failures stay as they are."""
        key = canonical_json([name, dict(arguments)])
        self._made[key] += 1
        first, call = self._made[key] == 1, self._made.total()
        result = await self._source.call(workspace, name, arguments)
        if not first:
            return result
        dice = self._dice.roll("corrupt-replies", call)
        others = self._others.texts(name, besides=self._dice.task)
        parts = tuple(
            part.model_copy(update={"content": corrupt_text(part.content, dice, others)})
            if part.type == "text"
            else part
            for part in result.parts
        )
        if parts == result.parts:
            return result
        return result.model_copy(update={"parts": parts, "control": "corrupted"})


class Faults(_Disturbed):
    """Raises a transient failure instead of calling the tool, at a fixed rate."""

    def __init__(self, source: ToolSource, dice: Dice, rate: float) -> None:
        super().__init__(source, dice)
        self._rate = rate
        self._calls = 0

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Fail, or call the tool."""
        self._calls += 1
        if self._dice.roll("faults", self._calls).random() < self._rate:
            raise InjectedFault(f"{name} did not answer in time. Try again.")
        return await self._source.call(workspace, name, arguments)
