"""Which jail works on this machine, and what keeps the others from working."""

import logging
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gta_bench.confine.inside import landlock, seccomp
from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailKind, JailLimits
from gta_bench.confine.python import Python
from gta_bench.errors import GtaError, ToolUnavailable

INSTALL = "Install it: `apt install bubblewrap` (or `dnf install bubblewrap`)."
NAMESPACES = (
    "This system refuses user namespaces to bubblewrap. Ubuntu 23.10 and newer: add an AppArmor "
    "profile for `bwrap` with the rule `userns,`, or run "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`. In a container: allow namespaces "
    "(`--security-opt seccomp=unconfined`) or rely on Landlock."
)
UTIL_LINUX = "Install util-linux, which has `prlimit` and `setpriv`."
NEWER_BUBBLEWRAP = "Install bubblewrap 0.8 or newer."
NEWER_KERNEL = "Landlock needs Linux 6.2 or newer with `landlock` among its `lsm=` modules."
TOOL_SERVER = "Run the tools on a Linux machine (`gta tools serve`) and use `--tools URL` here."

logger = logging.getLogger(__name__)

ORDER: tuple[JailKind, ...] = ("bubblewrap", "landlock")


@dataclass(frozen=True, slots=True)
class JailAvailability:
    """Whether one kind of jail works here; if not, why and how to mend it."""

    kind: JailKind
    works: bool
    reason: str
    mend: str


async def probe(*, python: Python | None = None) -> tuple[JailAvailability, ...]:
    """Try each kind of jail, the best first."""
    return tuple([await _examine(kind, python) for kind in ORDER])


async def find_jail(
    *, unconfined: bool = False, slots: int = 4, python: Python | None = None
) -> Jail:
    """The best jail that works here, or ToolUnavailable.

    `unconfined` is the user's explicit wish to do without where there is none: the code then
    sees the user's files and the network, and every result says so (`Report.jail` is "none").
    """
    found: list[JailAvailability] = []
    for kind in ORDER:
        found.append(await _examine(kind, python))
        if found[-1].works:
            for other in found[:-1]:
                logger.warning("%s is used: %s %s", kind, other.reason, other.mend)
            return Jail(kind, slots=slots, python=python)
    if unconfined and sys.platform == "linux":
        return Jail("none", slots=slots, python=python)
    raise ToolUnavailable(_reasons(found), mend=found[0].mend)


def _reasons(found: Sequence[JailAvailability]) -> str:
    reasons = " ".join(f"{entry.kind}: {entry.reason}" for entry in found)
    return f"No jail for foreign code works here. {reasons}"


async def _examine(kind: JailKind, python: Python | None) -> JailAvailability:
    missing = _missing(kind)
    if missing is not None:
        return missing
    try:
        await _try(kind, python)
    except GtaError as exc:
        return JailAvailability(kind, False, str(exc), _mend(kind, str(exc)))
    return JailAvailability(kind, True, "A test program and a test snippet ran in it.", "")


def _missing(kind: JailKind) -> JailAvailability | None:
    """What can be said without trying."""
    if sys.platform != "linux":
        return JailAvailability(kind, False, f"{sys.platform} has no {kind}.", TOOL_SERVER)
    if seccomp.this_architecture() is None:
        return JailAvailability(
            kind, False, "There is a system-call table for x86_64 and aarch64 only.", TOOL_SERVER
        )
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        return JailAvailability(kind, False, "bubblewrap is not installed.", INSTALL)
    if kind == "landlock" and landlock.abi() < landlock.OLDEST_ABI:
        reason = f"The kernel offers Landlock ABI {landlock.abi()} (0: none)."
        return JailAvailability(kind, False, reason, NEWER_KERNEL)
    return None


async def _try(kind: JailKind, python: Python | None) -> None:
    limits = JailLimits(wall_seconds=10.0, cpu_seconds=10)
    with Jail(kind, slots=1, python=python) as jail:
        await jail.run_program(["true"], limits=limits)
        await jail.run_snippet("def solution():\n    return 1", limits=limits)


def _mend(kind: JailKind, reason: str) -> str:
    if kind == "landlock":
        return NEWER_KERNEL
    if "Unknown option" in reason:
        return NEWER_BUBBLEWRAP
    if "prlimit" in reason or "setpriv" in reason:
        return UTIL_LINUX
    return NAMESPACES
