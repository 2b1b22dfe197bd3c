"""The reference's prefix as each provider takes it: what a history without reasoning lacks.

Step mode shows calls that the model did not make, so no reasoning of its own stands before them.
"""

import re
from base64 import b64encode
from typing import Final, NamedTuple

from inspect_ai.model import ContentReasoning, GenerateConfig, Model

from gta_bench.agents.provider import empty_reasoning

# The word that Google documents for calls that were not made by the model.
_NO_SIGNATURE: Final = b64encode(b"skip_thought_signature_validator").decode()
_SIGNED: Final = re.compile(r"gemini-([3-9]|\d\d)")
_WANTS_REASONING: Final = re.compile(r"deepseek|kimi")
_CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d)(?!\d))?")


class Prefix(NamedTuple):
    """What is added to the reference's calls, and said in the manifest."""

    note: str
    reasoning: ContentReasoning | None = None
    thinking_off: bool = False


def prefix_for(model: str, config: GenerateConfig) -> Prefix | None:
    """What the provider of a model demands of calls without reasoning; None for most.

    `model` is Inspect's name of it, such as `google/gemini-3-pro`.
    """
    provider, _, name = model.lower().partition("/")
    if provider == "google" and _SIGNED.search(name):
        return Prefix(
            "step mode: the reference's calls carry Google's documented placeholder for a thought "
            "signature (skip_thought_signature_validator).",
            reasoning=ContentReasoning(reasoning=_NO_SIGNATURE, redacted=True),
        )
    if provider == "anthropic" and _thinks_by_budget(name, config):
        return Prefix(
            "step mode: thinking was off in requests that show calls of the reference, because "
            "Anthropic refuses calls without their thinking blocks there.",
            thinking_off=True,
        )
    if _WANTS_REASONING.search(model.lower()):
        return Prefix(
            "step mode: the reference's calls carry an empty reasoning_content.",
            reasoning=empty_reasoning(),
        )
    return None


def not_thinking(model: Model) -> Model:
    """The same model with thinking off; an option of a request cannot take back its budget."""
    off = {"reasoning_tokens": None, "reasoning_effort": "none"}
    return Model(model.api, model.config.model_copy(update=off), model.model_args)


def _thinks_by_budget(name: str, config: GenerateConfig) -> bool:
    """Whether Inspect asks Claude to think with a budget of tokens; from 4.6 on, effort adapts."""
    found = _CLAUDE.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    by_effort = config.reasoning_effort not in (None, "none")
    if by_effort and version >= (4, 6):
        return False
    return version >= (3, 7) and (config.reasoning_tokens is not None or by_effort)
