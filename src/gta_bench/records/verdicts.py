"""Scores of leaves: verdicts of judges, and labels that people gave without seeing verdicts."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field

from gta_bench.records.base import Record

# Why there is no score. The reply: not one JSON object, another shape, no usable score, another
# leaf, refused, truncated or empty. The call: no reply in time, a rate limit, an error, or too long
# for the model. Before the call: no evidence, a judge that failed the negative control, or a reply
# that an earlier pipeline did not keep.
Cause = Literal[
    "reply_not_json",
    "reply_two_objects",
    "reply_other_shape",
    "score_missing",
    "score_not_a_number",
    "score_out_of_range",
    "other_leaf",
    "refused",
    "truncated",
    "empty",
    "timeout",
    "rate_limited",
    "http_error",
    "model_error",
    "context_too_long",
    "evidence_failed",
    "control_failed",
    "reply_not_kept",
]


class Scored(Record):
    """A score from 0 to 10, its reason, and the evidence that the judge cites."""

    type: Literal["scored"] = "scored"
    value: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    reason: str = ""
    used: tuple[str, ...] = ()


class Unscored(Record):
    """No score, with the cause and details."""

    type: Literal["unscored"] = "unscored"
    cause: Cause
    detail: str = ""


Verdict = Annotated[Scored | Unscored, Field(discriminator="type")]


class VerdictKey(Record):
    """The key of a verdict: one leaf of one unit, one judge, one of its repeats."""

    task: str
    epoch: int = 1
    leaf: str
    judge: str
    repeat: int = 1


class VerdictRow(Record):
    """One verdict, with the digests of the evidence and the prompts that it is based on.

    Leaves that share a call share its tokens and its cost. `compat` is the score that the published
    evaluator reads from the judge's first reply; None if there was no reply, and in rows of earlier
    versions, for which the verdict's own score is used.
    """

    key: VerdictKey
    verdict: Verdict
    compat: float | None = None
    evidence: str = ""
    prompts: str = ""
    model: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


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
