"""The reference's tool calls of GTA-Atomic with the replies that were recorded for them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn

BOX = re.compile(r"\(\s*-?\d+,\s*-?\d+,\s*-?\d+,\s*-?\d+\s*\)")
WORD = re.compile(r"[^\W_]+")


class GoldCall(NamedTuple):
    """A call of the reference; `reply` is what somebody recorded, hand-made or by another model."""

    task: AtomicTask
    arguments: Mapping[str, JsonValue]
    reply: str

    def workspace(self, atomic_dir: Path, folder: Path) -> Workspace:
        attached = {one.path: atomic_dir / one.source for one in self.task.attachments}
        root = folder / self.task.id
        return Workspace(root) if root.exists() else Workspace.create(root, attached)


def gold_calls(tasks: Mapping[str, AtomicTask], tool: str) -> Iterator[GoldCall]:
    """Every call of that tool that has a reply."""
    for task in tasks.values():
        for turn, after in pairwise(task.dialogue):
            if isinstance(turn, CallTurn) and turn.call.name == tool:
                assert isinstance(after, ReplyTurn)
                yield GoldCall(task, turn.call.arguments, after.content)


def words(reply: str) -> Counter[str]:
    """The words of an OCR reply without its boxes; some replies have `\\n` spelled out."""
    return Counter(WORD.findall(BOX.sub(" ", reply.replace("\\n", "\n")).casefold()))
