"""Whom foreign code becomes on this machine where we are root: a user of its own, never root."""

import os
import sys
from itertools import count
from pathlib import Path

from gta_bench.confine.limits import JailKind

NOBODY = 65534
# systemd's range for services that have no user of their own. One for each job: the kernel counts
# a user's processes, and two jobs must not count as one.
RANGE = range(61184, 65520)
CHOWN, SETGID, SETUID, SETPCAP, SYS_ADMIN = 0, 6, 7, 8, 21
NEEDED: dict[JailKind, tuple[int, ...]] = {
    "bubblewrap": (CHOWN, SETGID, SETUID, SETPCAP, SYS_ADMIN),
    "landlock": (CHOWN, SETGID, SETUID, SETPCAP),
}

_numbers = count()


def job_user(kind: JailKind) -> int | None:
    """The user that the next job becomes; None where it stays who we are.

    That is so for an ordinary user, and for a root whose container took away what it takes.
    """
    if sys.platform != "linux" or kind not in NEEDED or os.geteuid() != 0:
        return None
    ours = _capabilities()
    if not all(ours >> capability & 1 for capability in NEEDED[kind]):
        return None
    return RANGE[(os.getpid() * 97 + next(_numbers)) % len(RANGE)]


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("CapEff:")[2].split()[0], 16)
