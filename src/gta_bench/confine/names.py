"""File names that agents choose: make them safe on every system, or refuse them."""

import re
import unicodedata

from gta_bench.errors import ToolError

LONGEST_NAME = 150  # bytes; leaves room for "-2" and stays far below every file system's 255
LONGEST_SUFFIX = 16
LONGEST_ON_DISK = 255

# Windows treats these as devices whatever the extension.
DEVICES = re.compile(
    r"(con|prn|aux|nul|clock\$|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE
)
FORBIDDEN = re.compile(r'[<>:"|?*/\\]')


def clean_name(raw: str, *, suffix: str | None = None) -> str:
    """A plain file name from an agent's text, ending in `suffix` if one is given.

    Only the last part of a path is used, so `../../x.txt` becomes `x.txt`. Cleaning a clean name
    changes nothing. A text without any usable character is refused with ToolError.
    """
    name = _remove_invisible(raw.replace("\\", "/").rsplit("/", 1)[-1])
    stem, ending = _split_suffix(name, suffix)
    # No leading dot (hidden), dash (an option) or blank; no trailing dot or blank (Windows).
    stem = FORBIDDEN.sub("_", stem).lstrip(" .-").rstrip(" .")
    if not stem:
        raise ToolError(f"{quote_foreign(raw)} is not a usable file name. Use letters and digits.")
    if DEVICES.fullmatch(stem.split(".")[0].rstrip()):
        stem = f"_{stem}"
    most = LONGEST_NAME - len(ending.encode())
    stem = stem[:most]  # first by characters, so that a very long name costs no time
    while len(stem.encode()) > most:
        stem = stem[:-1]
    return stem.rstrip(" .") + ending


def add_number(name: str, number: int) -> str:
    """The name with a number, for a file whose name is taken: `plot-2.png`."""
    stem, dot, ending = name.rpartition(".")
    return f"{stem}-{number}.{ending}" if dot else f"{name}-{number}"


def is_plain(name: str) -> bool:
    """Whether a name can be used on disk and shown to an agent unchanged."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return False
    hidden = any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in name)
    return (
        0 < size <= LONGEST_ON_DISK
        and not hidden
        and "/" not in name
        and "\\" not in name
        and name not in (".", "..")
        and unicodedata.is_normalized("NFC", name)
    )


def quote_foreign(text: str, *, most: int = 80) -> str:
    """Foreign text for an error message: quoted, escaped and shortened."""
    return repr(text if len(text) <= most else text[:most] + "…")


def _remove_invisible(text: str) -> str:
    """Without control, bidi and other invisible characters; every kind of blank is a space."""
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if category[0] == "Z" or char in "\t\n\r":
            kept.append(" ")
        elif category[0] != "C":
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def _split_suffix(name: str, suffix: str | None) -> tuple[str, str]:
    """Stem and ending; a given suffix is added unless the name already ends with it."""
    name = name.rstrip(" .")
    if suffix is not None:
        if name[-len(suffix) :].lower() == suffix.lower():
            name = name[: -len(suffix)]
        return name, suffix
    stem, dot, ending = name.rpartition(".")
    plain = ending.isascii() and ending.isalnum() and len(ending) <= LONGEST_SUFFIX
    return (stem, f".{ending}") if dot and stem.strip(" .-") and plain else (name, "")
