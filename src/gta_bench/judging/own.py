"""A judge that is a user's own function, passed to the Python API.

It takes the task's request, a leaf and the evidence, and returns a score from 0 to 10, a score with
its reason, or a verdict. It may be async. Inspect knows it as a model `own/NAME` whose arguments
are the digests of its code, so a changed function is another judge.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError
from pydantic import ValidationError

from gta_bench.errors import UsageError, describe_fault
from gta_bench.judging.reply import make_writable
from gta_bench.own_code import call_function, digest_code, name_function
from gta_bench.records.evidence import Evidence
from gta_bench.records.judges import OWN_JUDGE
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.records.workflow import Checkpoint

logger = logging.getLogger(__name__)

JudgeReply = Scored | Unscored | tuple[float, str] | float
JudgeFunction = Callable[[str, Checkpoint, Evidence], JudgeReply | Awaitable[JudgeReply]]


class OwnJudge(ModelAPI):
    """A user's function in the place of a model; it is not asked with messages."""

    def __init__(self, model_name: str, function: JudgeFunction) -> None:
        super().__init__(model_name)
        self.function = function

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Refuse a prompt: `judge` asks the function."""
        raise UsageError(f"The judge {self.model_name!r} is a function that takes no prompt.")

    async def judge(self, request: str, leaf: Checkpoint, evidence: Evidence) -> Scored | Unscored:
        """Return the function's verdict; what it raises, or nonsense, is no score with a cause."""
        try:
            return read_judged(await call_function(self.function, request, leaf, evidence))
        except LimitExceededError:
            raise
        except Exception as exc:
            logger.debug("a judge function failed", exc_info=True)
            return Unscored(cause="judge_failed", detail=make_writable(describe_fault(exc)))


@modelapi(name=OWN_JUDGE)
def own() -> type[ModelAPI]:
    """Register the functions as models."""
    return OwnJudge


def make_own_judge(function: JudgeFunction) -> Model:
    """Return the model of a function; raises if the function has no digest."""
    code: Mapping[str, Any] = digest_code(function, "judge")
    api = own(name_function(function), function)  # type: ignore[arg-type]
    return Model(api, GenerateConfig(), {"code": dict(code)})


def read_judged(found: object) -> Scored | Unscored:
    """Return what a function returned as a verdict; nothing is rounded or clamped."""
    if isinstance(found, Scored):
        used = tuple(make_writable(name) for name in found.used)
        return found.model_copy(update={"reason": make_writable(found.reason), "used": used})
    if isinstance(found, Unscored):
        return found.model_copy(update={"detail": make_writable(found.detail)})
    value, reason = found if isinstance(found, tuple) and len(found) == 2 else (found, "")
    shown = f"It returned {found!r:.200}."
    if not isinstance(reason, str):
        return Unscored(cause="reply_other_shape", detail=shown)
    if value is None:
        return Unscored(cause="score_missing", detail=shown)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Unscored(cause="score_not_a_number", detail=shown)
    try:
        return Scored(value=value, reason=make_writable(reason))
    except ValidationError:
        return Unscored(cause="score_out_of_range", detail=shown)
