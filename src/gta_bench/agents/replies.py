"""A model's raw text made fit to be read and recorded."""

import re

_SURROGATES = re.compile("[\ud800-\udfff]")
_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def clean_text(text: str) -> str:
    """The text with half characters replaced, which no file can hold."""
    return _SURROGATES.sub("\ufffd", text)


def without_thinking(text: str) -> str:
    """The reply without a reasoning model's leading `<think>` block, closed or not."""
    rest = text[block.end() :] if (block := _THINKING.match(text)) else text
    return "" if rest.lstrip().startswith("<think>") else rest
