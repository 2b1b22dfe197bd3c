"""Scores that people gave to leaves without seeing a judge's verdict."""

from collections.abc import Collection
from typing import Annotated

from pydantic import Field

from gta_bench.records.base import Record

Rater = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")]


class Label(Record):
    """A person's score of one leaf, 0 to 10, with the reason and the digest of the evidence shown.

    `chance` is the probability with which its unit was sampled for labeling, if known.
    """

    task: str
    epoch: int = 1
    leaf: str
    value: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    reason: str = ""
    evidence: str = ""
    chance: Annotated[float, Field(gt=0, le=1)] | None = None

    @property
    def place(self) -> tuple[str, int, str]:
        """The task, epoch and leaf that it belongs to."""
        return self.task, self.epoch, self.leaf


class Labels(Record):
    """`labels/<rater>.json` of a run, or `adjudication.json` with the final decisions."""

    format: int = 1
    rater: Rater
    labels: tuple[Label, ...] = ()

    def of(self, place: tuple[str, int, str]) -> Label | None:
        """The label of a leaf, or None."""
        return next((label for label in self.labels if label.place == place), None)

    def with_label(self, label: Label) -> "Labels":
        """A copy with this label, which replaces an earlier one of the same leaf."""
        others = (one for one in self.labels if one.place != label.place)
        return self.model_copy(update={"labels": (*others, label)})

    def drawn_again(self, tasks: Collection[tuple[str, int]], chance: float) -> "Labels":
        """A copy in which labels of these units have at least this chance (of a larger sample)."""
        labels = tuple(
            label.model_copy(update={"chance": max(chance, label.chance or 0.0)})
            if (label.task, label.epoch) in tasks
            else label
            for label in self.labels
        )
        return self.model_copy(update={"labels": labels})
