"""Why a call to the judge's model gave no reply, read from whatever its provider raised."""

import logging

from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput
from inspect_ai.util import LimitExceededError

from gta_bench.errors import fault_status, fault_words, raised_chain
from gta_bench.records.verdicts import Cause, Unscored

logger = logging.getLogger(__name__)


async def ask_model(
    model: Model, messages: list[ChatMessage], config: GenerateConfig
) -> ModelOutput | Unscored:
    """The model's output, or why there is none after the engine's own retries.

    Every provider has exceptions of its own, so all of them count. A limit on the whole evaluation
    is no fault of the call and ends the sample.
    """
    try:
        return await model.generate(messages, config=config)
    except LimitExceededError:
        raise
    except Exception as exc:
        logger.debug("the judge's call failed", exc_info=True)
        where = model.api.base_url or model.name
        return Unscored(cause=fault_cause(exc), detail=f"{fault_words(exc)} ({where})")


def fault_cause(raised: BaseException) -> Cause:
    """The kind of fault, by the status, name and words of an exception and of what caused it."""
    chain = list(raised_chain(raised))
    words = str(chain[0]).lower()
    names = " ".join(type(exc).__name__ for exc in chain)
    status = fault_status(raised)
    if "context" in words and any(word in words for word in ("exceed", "length", "too long")):
        return "context_too_long"
    if status == 429:
        return "rate_limited"
    if status in (408, 504) or "Timeout" in names:
        return "timeout"
    if status is not None or "Connect" in names:
        return "http_error"
    return "model_error"
