"""What the tools that read files share: availability, and text of bounded length."""

from gta_bench.confine.jail import Jail
from gta_bench.content.needs import Missing
from gta_bench.tools.contract import Availability, Available, Equipment, Made, Unavailable, text

MOST_CHARACTERS = 100_000


def availability(equipment: Equipment, missing: Missing | None, backend: str) -> Availability:
    """Unavailable where a package or the jail is missing."""
    if missing is not None:
        return Unavailable(missing.reason, missing.mend)
    if equipment.jail is None:
        return equipment.no_jail
    return Available(backend)


def as_result(content: str, backend: str, jail: Jail | None = None) -> Made:
    """A file's text as a tool's result."""
    return Made((text(bounded(content)),), backend, jail.kind if jail is not None else None)


def bounded(content: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and a note of how much was cut."""
    if len(content) <= most:
        return content
    cut = len(content) - most
    return f"{content[:most]}\n[Cut here: {cut} more characters, of {len(content)} in all.]"
