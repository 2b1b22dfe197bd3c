"""Python in the form agents write it: plain, or fenced in Markdown with words around it."""

import re
from textwrap import dedent

# The closing fence may be missing: replies are cut, and agents forget it.
FENCED = re.compile(
    r"```[ \t]*(?:python3?|py)?[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE
)
ON_ONE_LINE = re.compile(r"```(?:python3?|py)?(.*?)```", re.DOTALL | re.IGNORECASE)


def python_code(command: str) -> str:
    """The code of a command; of several blocks the first that defines `solution`."""
    blocks = FENCED.findall(command) or ON_ONE_LINE.findall(command)
    if not blocks:
        return dedent(command)
    defining = (block for block in blocks if "def solution" in block)
    return dedent(next(defining, blocks[0]))
