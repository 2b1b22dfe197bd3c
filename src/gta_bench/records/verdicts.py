"""Verdicts of judges on leaves: a score, or explicitly none."""

from typing import Annotated, Literal

from pydantic import Field

from gta_bench.records.base import Record
from gta_bench.records.views import Displayed, FrameRow, shorten

# Why there is no score. The reply: not one JSON object, another shape, no usable score, another
# leaf, refused, truncated or empty. The call: no reply in time, a rate limit, an error, or too long
# for the model. Before the call: no evidence, a judge that failed the negative control, or a reply
# that an earlier pipeline did not keep. Instead of a call: a user's function that raised an error,
# or a check that could not decide. After a change of the dataset: a leaf that says something else
# than the judge was asked about.
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
    "judge_failed",
    "reply_not_kept",
    "check_failed",
    "leaf_changed",
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


class VerdictRow(Displayed, Record):
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

    def describe(self) -> str:
        """The leaf, the judge, and its score or why there is none."""
        key, found = self.key, self.verdict
        if isinstance(found, Scored):
            gave = f"{found.value:g}, {shorten(found.reason)!r}"
        else:
            gave = f"no score, {found.cause}"
        return f"{key.task}.{key.epoch} {key.leaf} by {key.judge}: {gave}"

    def row(self) -> FrameRow:
        """The row of a table."""
        kept = self.model_dump(exclude={"key", "verdict"})
        compat = kept.pop("compat")
        value, cause, reason = None, None, None
        if isinstance(self.verdict, Scored):
            value, reason = self.verdict.value, self.verdict.reason
        else:
            cause = self.verdict.cause
        found = {"value": value, "cause": cause, "compat": compat, "reason": reason}
        return {**self.key.model_dump(), **found, **kept}
