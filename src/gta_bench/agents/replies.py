"""A model's raw text made fit to be read and recorded."""

import re

_SURROGATES = re.compile("[\ud800-\udfff]")
_OPENING, _CLOSING = "<think>", "</think>"


def clean_text(text: str) -> str:
    """The text with half characters replaced, which no file can hold."""
    return _SURROGATES.sub("\ufffd", text)


def without_thinking(text: str) -> str:
    """The reply without a reasoning model's leading `<think>` block, closed or not.

    Where the chat template writes the opening tag, the reply has the closing one alone.
    """
    before, closing, after = text.partition(_CLOSING)
    thought = before.strip()
    if closing and (thought.startswith(_OPENING) or _OPENING not in thought):
        text = after
    return "" if text.lstrip().startswith(_OPENING) else text
