"""Find out which jails work on this machine, and why the others do not."""

import logging
import shutil
import sys
from dataclasses import dataclass

from gta_bench.confine.inside import landlock, seccomp
from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailKind, JailLimits
from gta_bench.confine.systems import NAMES, ROADS, require_linux
from gta_bench.confine.walls import Python
from gta_bench.errors import GtaError, ToolUnavailable

INSTALL = "Install it: `apt install bubblewrap` (or `dnf install bubblewrap`)."
NAMESPACES = (
    "This system does not allow bubblewrap to create user namespaces. Ubuntu 23.10 and newer: add "
    "an AppArmor profile for `bwrap` with the rule `userns,`, or run "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`. In a container: allow namespaces "
    "(`--security-opt seccomp=unconfined`) or rely on Landlock."
)
UTIL_LINUX = "Install util-linux, which has `prlimit` and `setpriv`."
NEWER_BUBBLEWRAP = "Install bubblewrap 0.8 or newer."
NEWER_KERNEL = "Landlock needs Linux 6.2 or newer with `landlock` among its `lsm=` modules."

logger = logging.getLogger(__name__)

ORDER: tuple[JailKind, ...] = ("bubblewrap", "landlock")


@dataclass(frozen=True, slots=True)
class JailAvailability:
    """Whether one kind of jail works here; if not, the reason and how to fix it."""

    kind: JailKind
    works: bool
    reason: str
    fix: str


async def probe(*, python: Python | None = None) -> tuple[JailAvailability, ...]:
    """Try each kind of jail, best first."""
    return tuple([await _examine(kind, python) for kind in ORDER])


async def find_jail(
    *, unconfined: bool = False, slots: int = 4, python: Python | None = None
) -> Jail:
    """The best jail that works here; raises ToolUnavailable if none does.

    With `unconfined`, which the user must ask for explicitly, code runs without a jail if none
    works: it sees the user's files and the network, and results record that (`Report.jail` is
    "none").
    """
    require_linux()
    found: list[JailAvailability] = []
    for kind in ORDER:
        found.append(await _examine(kind, python))
        if found[-1].works:
            for other in found[:-1]:
                logger.warning("Using %s: %s %s", kind, other.reason, other.fix)
            return Jail(kind, slots=slots, python=python)
    if unconfined:
        return Jail("none", slots=slots, python=python)
    reasons = " ".join(f"{entry.kind}: {entry.reason}" for entry in found)
    problem = f"No jail for foreign code works here. {reasons}"
    raise ToolUnavailable(problem, fix=found[0].fix)


async def _examine(kind: JailKind, python: Python | None) -> JailAvailability:
    missing = _missing(kind)
    if missing is not None:
        return missing
    limits = JailLimits(wall_seconds=10.0, cpu_seconds=10)
    try:
        with Jail(kind, slots=1, python=python) as jail:
            await jail.run_program(["true"], limits=limits)
            await jail.run_snippet("def solution():\n    return 1", limits=limits)
    except GtaError as exc:
        return JailAvailability(kind, False, str(exc), _suggest_fix(kind, str(exc)))
    return JailAvailability(kind, True, "A test program and a test snippet ran in it.", "")


def _missing(kind: JailKind) -> JailAvailability | None:
    """Why that kind cannot work, as far as that is known without trying it."""
    if sys.platform != "linux":
        system = NAMES.get(sys.platform, sys.platform)
        return JailAvailability(kind, False, f"{system} has no {kind}.", ROADS)
    if seccomp.this_architecture() is None:
        return JailAvailability(kind, False, "Only x86_64 and aarch64 are supported.", ROADS)
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        return JailAvailability(kind, False, "bubblewrap is not installed.", INSTALL)
    if kind == "landlock" and landlock.abi() < landlock.OLDEST_ABI:
        reason = f"The kernel offers Landlock ABI {landlock.abi()} (0: none)."
        return JailAvailability(kind, False, reason, NEWER_KERNEL)
    return None


def _suggest_fix(kind: JailKind, reason: str) -> str:
    if kind == "landlock":
        return NEWER_KERNEL
    if "Unknown option" in reason:
        return NEWER_BUBBLEWRAP
    if "prlimit" in reason or "setpriv" in reason:
        return UTIL_LINUX
    return NAMESPACES
