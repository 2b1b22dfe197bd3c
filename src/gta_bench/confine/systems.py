"""Systems without a jail: nothing foreign runs there, and what to do instead."""

import sys

from gta_bench.errors import ToolUnavailable

NAMES = {"darwin": "macOS", "win32": "Windows"}
ROADS = (
    "Replay a tape (`--tape`), use the tools of a Linux machine (`--tools URL`, after `gta tools "
    "serve` there), or run gta in a Linux container (docker/Dockerfile)."
)


def explain_no_jail(what: str = "Running foreign code") -> ToolUnavailable:
    """Return the failure of whatever needs the jail on a system other than Linux."""
    system = NAMES.get(sys.platform, sys.platform)
    return ToolUnavailable(f"{what} needs the jail, which {system} does not have.", fix=ROADS)


def require_linux(what: str = "Running foreign code") -> None:
    """Raise ToolUnavailable on any other system; called before anything foreign is started."""
    if sys.platform != "linux":
        raise explain_no_jail(what)
