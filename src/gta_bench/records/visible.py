"""Characters that cannot be seen, or that change how the text around them is shown."""

import re
import unicodedata
from typing import Annotated, Final

from pydantic import AfterValidator

# Control characters except white space, marks of direction, and everything without width. Joiners
# after a letter or picture that is not ASCII are part of it, as in Persian and in emoji.
HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]"
)
JOINERS: Final = re.compile("[\u200c\u200d\t\n\r]")
# Scripts with letters that look like those of another one.
SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def show_hidden(text: str) -> str:
    r"""Return a text from outside in which everything can be seen and nothing is reordered.

    >>> show_hidden("safe \u202egnp.exe")
    'safe [U+202E]gnp.exe'
    """
    return HIDDEN.sub(lambda found: f"[{_code(found[0])}]", text)


def require_visible(text: str) -> str:
    """Return a name of one line as it is; raise ValueError if some of it cannot be seen."""
    found = HIDDEN.search(text) or JOINERS.search(text)
    if found is not None:
        name = unicodedata.name(found[0], "a control character")
        raise ValueError(f"it contains {_code(found[0])} ({name}), which cannot be seen")
    return text


def require_one_script(text: str) -> str:
    """Return a name as it is; raise ValueError if a word of it mixes letters that look alike."""
    for word in re.findall(r"\w+", text):
        first = {unicodedata.name(sign, "").partition(" ")[0]: sign for sign in word}
        mixed = [script for script in SCRIPTS if script in first]
        if len(mixed) > 1:
            signs = " and ".join(f"{one.capitalize()} {_code(first[one])}" for one in mixed)
            raise ValueError(f"the word {word!r} mixes scripts that look alike: {signs}")
    return text


def _code(sign: str) -> str:
    return f"U+{ord(sign):04X}"


VisibleText = Annotated[str, AfterValidator(require_visible)]
SystemName = Annotated[VisibleText, AfterValidator(require_one_script)]
