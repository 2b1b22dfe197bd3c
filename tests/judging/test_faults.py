import asyncio

import pytest
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.util import LimitExceededError

from gta_bench.judging.judge import ask_model, classify_fault


class Status(Exception):
    def __init__(self, status: int, words: str = "") -> None:
        self.status_code = status
        super().__init__(words)


class ModelGenerateError(RuntimeError):
    """As the engine's: it quotes the prompt."""


def wrapped(cause: Exception) -> Exception:
    error = ModelGenerateError("Request: the context length of the essay exceeds … Timeout")
    error.__cause__ = cause
    return error


class ReadTimeout(Exception):
    pass


class ConnectError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        (Status(429), "rate_limited"),
        (Status(500), "http_error"),
        (Status(401), "http_error"),
        (Status(504), "timeout"),
        (Status(400, "the request exceeds the available context size"), "context_too_long"),
        (wrapped(Status(400, "bad")), "http_error"),
        (wrapped(Status(429)), "rate_limited"),
        (wrapped(ReadTimeout()), "timeout"),
        (TimeoutError("slow"), "timeout"),
        (ConnectError(), "http_error"),
        (ValueError("no choices"), "model_error"),
        (ModelGenerateError("alone"), "model_error"),
    ],
)
def test_a_fault_is_known_by_what_the_provider_raised(raised: Exception, cause: str) -> None:
    assert classify_fault(raised) == cause


def test_a_limit_of_the_evaluation_is_no_fault_of_the_call() -> None:
    def limit(*_: object) -> None:
        raise LimitExceededError("token", value=2, limit=1)

    model = get_model("mockllm/model", custom_outputs=limit, memoize=False)
    with pytest.raises(LimitExceededError):
        asyncio.run(ask_model(model, [], GenerateConfig()))
