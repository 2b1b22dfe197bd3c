"""Marks that no work can contain: they are made from every byte of what the judge is shown.

A file that held its own unit's mark would be another file, with another mark. The marks stay the
same for all calls of a unit, so that providers find the evidence in their prefix caches.
"""

from collections.abc import Iterable
from hashlib import sha256

from gta_bench.judging.options import JudgeOptions
from gta_bench.records.evidence import Evidence
from gta_bench.records.workflow import WorkflowTask

FRAME_DIGITS = 16
NAME_DIGITS = 6
KNOWN = "EVIDENCE"  # the mark of a frame that anybody can imitate
CONTROL = "control"
# The judge that says more than this of a requirement that cannot be met is not judging.
MOST_CONTROL = 3.0


class Marks:
    """The marks of one unit: around its evidence, on its leaves' names, and the control's code."""

    def __init__(self, task: WorkflowTask, evidence: Evidence, options: JudgeOptions) -> None:
        self._secret = f"{task.id}\n{evidence.digest}"
        self._options = options

    @property
    def frame(self) -> str:
        """The mark of the lines around the evidence."""
        return KNOWN if "frame" in self._options.without else self._digits("", FRAME_DIGITS)

    @property
    def code(self) -> str:
        """What the control asks for and nobody has written."""
        return self._digits("code", FRAME_DIGITS)

    def name(self, leaf: str) -> str:
        """The name under which the judge is asked for a leaf: its id, and digits of this unit."""
        if "reply" in self._options.without:
            return leaf
        return f"{leaf}~{self._digits(f'leaf {leaf}', NAME_DIGITS)}"

    def names(self, leaves: Iterable[str]) -> list[str]:
        """The names that a reply may use."""
        asked = [*leaves, CONTROL] if self._options.control else leaves
        return [self.name(leaf) for leaf in asked]

    def _digits(self, purpose: str, count: int) -> str:
        words = f"{self._secret}\n{purpose}" if purpose else self._secret
        return sha256(words.encode()).hexdigest()[:count]
