"""Checks of what recognition reads on a picture or film and hears in a recording."""

import re
import unicodedata
from collections.abc import Sequence

from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import Outcome, shorten
from gta_bench.errors import join_first
from gta_bench.records import checks as kinds


async def check_image_text(check: kinds.ImageText, work: CheckedWork) -> Outcome:
    """Texts on a picture. Recognition loses spaces and marks, so only letters and digits count."""
    file = work.find(check.file)
    return _find_letters(check, file.path, await work.picture_text(file))


async def check_shows(check: kinds.MediaShows, work: CheckedWork) -> Outcome:
    """Texts on the frame of a film that is shown at a time, read as on a picture."""
    file = work.find(check.file)
    seen = await work.film_text(file, check.at)
    return _find_letters(check, f"{file.path}, second {check.at:g}", seen)


def _find_letters(check: kinds.ImageText | kinds.MediaShows, where: str, seen: str) -> Outcome:
    letters = "".join(_split_words(seen))
    missing = [one for one in check.all if "".join(_split_words(one)) not in letters]
    return _count(where, seen, check.all, missing, check.least)


async def check_says(check: kinds.MediaSays, work: CheckedWork) -> Outcome:
    """Texts in a recording: the same words in the same order, whatever marks are between them."""
    file = work.find(check.file)
    heard = await work.speech(file)
    spoken = f" {' '.join(_split_words(heard))} "

    def occurs(text: str) -> bool:
        return f" {' '.join(_split_words(text))} " in spoken

    present = [one for one in check.none or () if occurs(one)]
    if present:
        return Outcome(False, file.path, _quote(present), "no such words")
    missing = [one for one in check.all or () if not occurs(one)]
    return _count(file.path, heard, check.all or (), missing, check.least)


def _count(
    where: str, found: str, wanted: Sequence[str], missing: Sequence[str], least: int | None
) -> Outcome:
    needed = len(wanted) if least is None else least
    if len(wanted) - len(missing) >= needed:
        return Outcome(True, where, "every wanted text" if not missing else f"{needed} texts")
    said = f"{needed} of {_quote(wanted)}" if needed < len(wanted) else _quote(missing)
    return Outcome(False, where, repr(shorten(found)) if found.strip() else "no words", said)


def _quote(texts: Sequence[str]) -> str:
    return join_first([repr(one) for one in texts])


def _split_words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", plain)
