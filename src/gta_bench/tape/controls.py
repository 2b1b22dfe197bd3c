"""Controls: the same run with something taken away or spoiled on purpose.

Each draws from its own dice, thrown for a seed, a task, an epoch and a call: the same seed gives
the same run, whatever runs beside it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Literal, NamedTuple

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import InjectedFault, ToolError, UsageError, counted
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import ToolResult
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.records.tools import ToolSpec
from gta_bench.tape.canonical import canonical_json
from gta_bench.tools.source import ToolSource

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


ControlKind = Literal["no-tools", "corrupt-replies", "faults", "distractors"]
KNOWN = "no-tools, corrupt-replies, faults=RATE, distractors=COUNT"


class Control(NamedTuple):
    """One control; `amount` is the rate of faults or the number of distractors."""

    kind: ControlKind
    amount: float = 0.0


def parse_controls(texts: Sequence[str]) -> tuple[Control, ...]:
    """Controls as the command line names them: `no-tools`, `faults=0.2`, …"""
    controls = tuple(_parsed(text) for text in texts)
    kinds = [control.kind for control in controls]
    if len(set(kinds)) < len(kinds):
        raise UsageError("The same --control is given twice.")
    if "no-tools" in kinds and len(kinds) > 1:
        raise UsageError("--control no-tools leaves nothing to disturb; use it alone.")
    return controls


def _parsed(text: str) -> Control:
    kind, equals, amount = text.partition("=")
    problem = UsageError(f"--control {text!r} is unknown. Known controls: {KNOWN}.")
    match kind, bool(equals):
        case ("no-tools" | "corrupt-replies") as plain, False:
            return Control(plain)
        case "faults", True if _is_rate(amount):
            return Control("faults", float(amount))
        case "distractors", True if amount.isdecimal() and int(amount) > 0:
            return Control("distractors", int(amount))
    raise problem


def _is_rate(text: str) -> bool:
    try:
        return 0 < float(text) <= 1
    except ValueError:
        return False


class Dice(NamedTuple):
    """What a unit's draws depend on."""

    seed: int
    task: str
    epoch: int

    def throw(self, purpose: str, call: int = 0) -> Random:
        """The dice for one purpose and one call."""
        return Random(f"{self.seed}/{self.task}/{self.epoch}/{purpose}/{call}")


class Controls:
    """The controls of a run; `others` are replies that corruption may put in a reply's place."""

    def __init__(self, controls: Sequence[Control], seed: int, others: OtherReplies) -> None:
        self._amounts = {control.kind: control.amount for control in controls}
        self._seed = seed
        self._others = others

    def wrap(self, source: ToolSource, *, task: str, epoch: int) -> ToolSource:
        """The source as a unit meets it."""
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
        """The tools that a unit is offered instead of its own."""
        if "no-tools" in self._amounts:
            return []
        wanted = int(self._amounts.get("distractors", 0))
        own = {tool.name for tool in tools}
        foreign = [known[name] for name in sorted(known) if name not in own]
        if len(foreign) < wanted:
            raise UsageError(
                f"--control distractors={wanted}: the task leaves out only "
                f"{counted(len(foreign), 'tool')}; ask for at most so many."
            )
        dice = Dice(self._seed, task, epoch).throw("distractors")
        offered = [*tools, *dice.sample(foreign, wanted)]
        # A distractor that always stands last is none.
        if wanted:
            dice.shuffle(offered)
        return offered


class NoTools:
    """No tool at all: what is solved now is solved without tools."""

    def specs(self) -> Mapping[str, ToolSpec]:
        """Nothing is offered."""
        return {}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Refuse."""
        raise ToolError("There are no tools. Answer without them.")


class CorruptReplies:
    """A wrong reply to the first of equal calls, the true one to those that repeat it.

    So a system that trusts every reply is led astray, and one that asks again can find out.
    """

    def __init__(self, source: ToolSource, dice: Dice, others: OtherReplies) -> None:
        self._source = source
        self._dice = dice
        self._others = others
        self._made: Counter[str] = Counter()

    def specs(self) -> Mapping[str, ToolSpec]:
        """What the wrapped source offers."""
        return self._source.specs()

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call the tool, and change what it says; files and failures stay as they are."""
        key = canonical_json([name, dict(arguments)])
        self._made[key] += 1
        first, call = self._made[key] == 1, self._made.total()
        result = await self._source.call(workspace, name, arguments)
        if not first:
            return result
        dice = self._dice.throw("corrupt-replies", call)
        others = self._others.texts(name, besides=self._dice.task)
        parts = tuple(
            part.model_copy(update={"content": corrupted(part.content, dice, others)})
            if part.type == "text"
            else part
            for part in result.parts
        )
        if parts == result.parts:
            return result
        return result.model_copy(update={"parts": parts, "control": "corrupted"})


class Faults:
    """A transient failure instead of a reply, at a fixed rate."""

    def __init__(self, source: ToolSource, dice: Dice, rate: float) -> None:
        self._source = source
        self._dice = dice
        self._rate = rate
        self._calls = 0

    def specs(self) -> Mapping[str, ToolSpec]:
        """What the wrapped source offers."""
        return self._source.specs()

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Fail, or call the tool."""
        self._calls += 1
        if self._dice.throw("faults", self._calls).random() < self._rate:
            raise InjectedFault(f"{name} did not answer in time. Try again.")
        return await self._source.call(workspace, name, arguments)
