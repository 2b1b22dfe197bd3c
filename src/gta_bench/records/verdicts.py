"""What a judge said of a leaf: a score, or explicitly none."""

from typing import Annotated, Literal

from pydantic import Field

from gta_bench.records.base import Record

# Why there is no score. The reply: not one JSON object, of another shape, without a usable score,
# for another leaf, refused, cut off or empty. The call: no reply in time, refused by the provider's
# limits or by an error, or too long for the model. What comes before: no evidence, a judge that
# says that a requirement is met which cannot be, or a reply that an earlier pipeline did not keep.
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
    """A score from 0 to 10, its reason, and the evidence that it names."""

    type: Literal["scored"] = "scored"
    value: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    reason: str = ""
    used: tuple[str, ...] = ()


class Unscored(Record):
    """No score: why, and what was seen."""

    type: Literal["unscored"] = "unscored"
    cause: Cause
    detail: str = ""


Verdict = Annotated[Scored | Unscored, Field(discriminator="type")]


class VerdictKey(Record):
    """A verdict's place: one leaf of one unit, as one judge saw it, one of several times."""

    task: str
    epoch: int = 1
    leaf: str
    judge: str
    repeat: int = 1


class VerdictRow(Record):
    """One verdict with what it was made from: digests of the evidence and of the prompts.

    Leaves that shared a call share its tokens and its cost.
    `compat` is the score that the published evaluator reads in the judge's first reply; None where
    there was no reply, and in rows of earlier versions, whose own score then stands for it.
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
