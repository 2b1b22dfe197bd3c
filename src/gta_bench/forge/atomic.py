"""Short questions about drawn pictures, in the layout of GTA-Atomic.

A question is solved on the real tools before it is written. Its solution sees the request and what
the tools reply, never the truth; a picture from which it does not reach the truth is drawn again.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import ATOMIC_FILES, RELEASED_PLACEHOLDER
from gta_bench.datasets.released import TOOLMETA
from gta_bench.errors import GtaError
from gta_bench.forge.draft import FORMAT, TaskDice, TaskLevel
from gta_bench.forge.pictures import DrawnPicture
from gta_bench.forge.reading import read_rows
from gta_bench.forge.writing import Order, check_folder, name_task
from gta_bench.metrics.compat.view import matches as matches_published
from gta_bench.metrics.strict.outcome import matches
from gta_bench.records.atomic import WhitelistAnswer
from gta_bench.records.tools import FILE_TYPES
from gta_bench.runs.store import write_bytes_atomically
from gta_bench.settings import Settings
from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.catalog import load_tool
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox

# The tools that the families use; all work without network and weights.
TOOLS: Final = ("AddText", "Calculator", "DrawBox", "OCR", "Plot", "Solver")
SAVED: Final = "The image is saved."
# A box of OCR is a little larger than the letters.
MOST_OFF: Final = 0.5
MOST_DRAWN: Final = 20
SAVE_EVERY: Final = 20
QuestionEntry = dict[str, JsonValue]


class Unsolved(Exception):
    """The tools did not lead to the truth."""


class Desk:
    """Tools and pictures for one question; it writes down every call and its reply."""

    def __init__(self, source: ToolSource, workspace: Workspace, pictures: Sequence[str]) -> None:
        self._source, self._workspace = source, workspace
        # The paths of the pictures, for the tools.
        self.pictures = tuple(pictures)
        self.messages: list[QuestionEntry] = []

    async def call(self, thought: str, tool: str, **arguments: str) -> str:
        """Call a tool for the reference dialogue, and return its text or the path of its file."""
        result = await self._source.call(self._workspace, tool, arguments)
        (part,) = result.parts
        given: QuestionEntry = {name: _publish(value) for name, value in arguments.items()}
        function: QuestionEntry = {"name": tool, "arguments": given}
        calls: list[JsonValue] = [{"type": "function", "function": function}]
        self.messages.append({"role": "assistant", "tool_calls": calls, "thought": thought})
        content = _publish(part.content) if part.type in FILE_TYPES else part.content
        reply: QuestionEntry = {"type": part.type, "content": content}
        self.messages.append({"role": "tool", "name": tool, "content": reply})
        return part.content

    async def look(self, picture: str) -> str:
        """Return what OCR reads on a picture, outside of the dialogue."""
        return (await self._source.call(self._workspace, "OCR", {"image": picture})).text


Solve = Callable[[Desk], Awaitable[str]]


@dataclass(frozen=True)
class Question:
    """A question with its truth, and a solution that does not know the truth.

    `solve` returns the answer, or the path of the picture that answers. `answer` is the truth and
    `accepted` what else says the same. A question that a picture answers has neither: `shown` can
    be read on that picture, and a box drawn for `marked` is on it.
    """

    request: str
    pictures: tuple[DrawnPicture, ...]
    solve: Solve
    answer: str = ""
    accepted: WhitelistAnswer | None = None
    shown: tuple[str, ...] = ()
    marked: Box | None = None


class AtomicFamily(NamedTuple):
    """A family of questions: its name, its tools, what its levels mean, and how it is made."""

    name: str
    about: str
    levels: tuple[str, str, str]
    tools: tuple[str, ...]
    make: Callable[[TaskDice, TaskLevel], Question]


class Solved(NamedTuple):
    """A question with the dialogue that solved it, and how often it was drawn again."""

    question: Question
    entry: QuestionEntry
    redrawn: int


class Forged(NamedTuple):
    """How many tasks are new, and how often pictures of these were drawn again."""

    new: int
    redrawn: int


def forge_questions(
    families: Sequence[AtomicFamily], order: Order, count: int, out: Path
) -> Forged:
    """Write `count` tasks, the families in turn, with the tools of this machine."""

    async def forge() -> Forged:
        # Not the user's settings: the tasks are the same whatever these are.
        async with use_equipment(Settings()) as equipment:
            return await forge_with(Toolbox(equipment, TOOLS), families, order, count, out)

    return asyncio.run(forge())


async def forge_with(
    source: ToolSource, families: Sequence[AtomicFamily], order: Order, count: int, out: Path
) -> Forged:
    """Write tasks with these tools. A task that the folder has already is not written again."""
    order.check()
    check_folder(out, order.describe("atomic"))
    _write_json(out / TOOLMETA, {name: _define_tool(name) for name in TOOLS})
    file = out / ATOMIC_FILES[0]
    tasks: dict[str, QuestionEntry] = json.loads(file.read_bytes()) if file.is_file() else {}
    new = redrawn = 0
    try:
        for family, number in _take_turns(families, count):
            name = name_task(family, order, number)
            if name in tasks:
                continue
            solved = await solve_task(source, family, order, number)
            for path, data in list_pictures(name, solved.question).items():
                (out / path).parent.mkdir(exist_ok=True)
                (out / path).write_bytes(data)
            tasks[name] = solved.entry
            new, redrawn = new + 1, redrawn + solved.redrawn
            if new % SAVE_EVERY == 0:
                _write_json(file, _sort(tasks))
    finally:
        _write_json(file, _sort(tasks))
    return Forged(new, redrawn)


def _take_turns(families: Sequence[AtomicFamily], count: int) -> Iterator[tuple[AtomicFamily, int]]:
    for number in range(count):
        yield families[number % len(families)], number // len(families) + 1


def _sort(tasks: Mapping[str, QuestionEntry]) -> dict[str, QuestionEntry]:
    """Sort by number and family, so that the order does not depend on what was forged first."""
    return dict(sorted(tasks.items(), key=lambda item: (item[0].rsplit("-", 1)[1], item[0])))


async def solve_task(source: ToolSource, family: AtomicFamily, order: Order, number: int) -> Solved:
    """Return a task that the tools have solved; the same for the same order and number."""
    name = name_task(family, order, number)
    why = ""
    for drawn in range(MOST_DRAWN):
        dice = TaskDice(f"{FORMAT}/{name}/{drawn}", order.secret)
        question = family.make(dice, order.level)
        tools = _offer(dice, family, order.level)
        try:
            messages = await _solve(source, name, question)
        except Unsolved as exc:
            # Not a failing tool: that says nothing about the picture, and may pass tomorrow.
            why = str(exc)
        else:
            return Solved(question, _build_entry(name, tools, question, messages), drawn)
    raise GtaError(f"{name}: no picture of {MOST_DRAWN} led to the answer; the last: {why}")


def _offer(dice: TaskDice, family: AtomicFamily, level: TaskLevel) -> list[str]:
    """Return the tools of a task: level 2 offers one that is not needed, level 3 two."""
    others = [name for name in TOOLS if name not in family.tools]
    return sorted([*family.tools, *dice.sample(others, level - 1)])


async def _solve(source: ToolSource, name: str, question: Question) -> list[QuestionEntry]:
    with tempfile.TemporaryDirectory(prefix="gta-forge-") as folder:
        files = {}
        for path, data in list_pictures(name, question).items():
            file = Path(folder) / Path(path).name
            file.write_bytes(data)
            files[f"inputs/{file.name}"] = file
        workspace = Workspace.create(Path(folder) / "work", files)
        desk = Desk(source, workspace, list(files))
        reached = await question.solve(desk)
        if question.accepted is None:
            await _check_picture(question, desk, reached)
        else:
            _check_answer(question, question.accepted, desk, reached)
    final = SAVED if question.accepted is None else reached
    return [*desk.messages, {"role": "assistant", "content": final}]


def _check_answer(question: Question, accepted: WhitelistAnswer, desk: Desk, reached: str) -> None:
    """Check that the truth was reached, is accepted, and cannot be copied from the pictures."""
    if reached != question.answer:
        raise Unsolved(f"{reached!r} instead of {question.answer!r}")
    if not (matches(reached, accepted) and matches_published(reached, accepted)):
        raise Unsolved(f"{reached!r} is not accepted")
    texts = (line.text for picture in question.pictures for line in picture.lines)
    copied = "\n".join([question.request, *texts])
    if matches_published(copied, accepted) or matches(copied, accepted):
        raise Unsolved("everything that can be read together is accepted")


async def _check_picture(question: Question, desk: Desk, reached: str) -> None:
    """Check that the picture shows what it should, and that the box is where it should be."""
    text = "\n".join(read_rows(await desk.look(reached)))
    missing = [one for one in question.shown if one not in text]
    if missing:
        raise Unsolved(f"{missing} cannot be read on the picture")
    if question.marked is not None:
        boxes = [_read_box(message) for message in desk.messages]
        if not any(box is not None and box.overlap(question.marked) > MOST_OFF for box in boxes):
            raise Unsolved("the box is somewhere else")


def _read_box(message: QuestionEntry) -> Box | None:
    match message:
        case {"tool_calls": [{"function": {"arguments": {"bbox": str(bbox)}}}]}:
            return Box(*(int(side) for side in bbox.strip("()").split(", ")))
        case _:
            return None


def list_pictures(name: str, question: Question) -> dict[str, bytes]:
    """Return the pictures of a task by their paths in the dataset."""
    return {
        f"image/{name}-{number}.png": picture.data
        for number, picture in enumerate(question.pictures, 1)
    }


def _build_entry(
    name: str, tools: Sequence[str], question: Question, messages: Sequence[QuestionEntry]
) -> QuestionEntry:
    accepted = question.accepted
    answer: JsonValue = None if accepted is None else accepted.model_dump(mode="json")
    if isinstance(answer, dict):
        del answer["kind"]
    return {
        "tools": [_define_tool(tool) for tool in tools],
        "files": [
            {"type": "image", "path": path, "url": None} for path in list_pictures(name, question)
        ],
        "dialogs": [{"role": "user", "content": question.request}, *messages],
        "gt_answer": answer,
    }


def _define_tool(name: str) -> QuestionEntry:
    return dict(load_tool(name).spec().model_dump(mode="json"))


def _publish(value: str) -> str:
    """Return a path as the released layout has it; anything else as it is."""
    if value.startswith("outputs/"):
        return RELEASED_PLACEHOLDER
    return f"image/{value[7:]}" if value.startswith("inputs/") else value


def _write_json(file: Path, value: Mapping[str, QuestionEntry]) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    write_bytes_atomically(file, f"{text}\n".encode())


def accept_amount(value: Decimal) -> WhitelistAnswer:
    """Accept an amount with two decimals, or without zeros at its end.

    A whole amount needs its zeros: published scoring would find 23 in 23.50.
    """
    spellings = dict.fromkeys((f"{value:.2f}", f"{value:.2f}".rstrip("0")))
    return WhitelistAnswer(whitelist=(tuple(one for one in spellings if not one.endswith(".")),))


def find(pattern: str, text: str) -> re.Match[str]:
    """Return where a pattern is in a text that a tool replied; raises Unsolved if nowhere."""
    found = re.search(pattern, text)
    if found is None:
        raise Unsolved(f"{pattern!r} is not in {text!r}")
    return found
