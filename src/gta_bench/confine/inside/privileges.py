"""Give up rights of this process: capabilities, resource limits, outliving its parent."""

import ctypes
import errno
import math
import os
import resource
import signal
import struct
import time

from gta_bench.confine.inside import seccomp
from gta_bench.confine.inside.protocol import LimitOrders

PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
# NOROOT and NO_SETUID_FIXUP with their locks: user 0 becomes an ordinary user.
NO_ROOT_MAGIC = 0b1111
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522
HIGHEST_CAPABILITY = 63


def set_limits(orders: LimitOrders) -> None:
    """Set the limits of this process and its children, except for processor time."""
    _limit(resource.RLIMIT_FSIZE, orders["file_bytes"])
    _limit(resource.RLIMIT_NOFILE, orders["open_files"])
    _limit(resource.RLIMIT_CORE, 0)
    if orders["memory_bytes"] is not None:
        _limit(resource.RLIMIT_AS, orders["memory_bytes"])
    if orders["processes"] is not None:
        _limit(resource.RLIMIT_NPROC, orders["processes"])


def limit_processor_time(seconds: int) -> None:
    """Limit processor time from now on, for this process and each child.

    The signal of the hard limit cannot be caught.
    """
    spent = math.ceil(time.process_time())
    _limit(resource.RLIMIT_CPU, spent + seconds, spent + seconds + 1)


def _limit(what: int, soft: int, hard: int | None = None) -> None:
    """Lower a limit; a limit that is already lower stays."""
    _, ceiling = resource.getrlimit(what)
    hard = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the parent ends, however it ends."""
    ctypes.CDLL(None).prctl(seccomp.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def drop_capabilities() -> None:
    """Take away root's capabilities, for containers where it cannot change its user."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT_MAGIC, 0, 0, 0)
    _drop_bounds(libc, keep=0)
    _set_capabilities(libc, 0)


def become_user(user: int, *, may_enter: bool) -> None:
    """Change to that user for good.

    With `may_enter` it keeps the right to enter any folder; Landlock decides what it can read.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    kept = 1 << DAC_READ_SEARCH & _permitted(libc) if may_enter else 0
    _drop_bounds(libc, keep=kept)
    libc.prctl(PR_SET_KEEPCAPS, 1 if kept else 0, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _set_capabilities(libc, kept)
    if kept:  # for the program that replaces this one
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, DAC_READ_SEARCH, 0, 0)
    if os.getresuid() != (user, user, user) or _permitted(libc) != kept:
        raise OSError(errno.EPERM, "the jail could not give up being root")


def _permitted(libc: ctypes.CDLL) -> int:
    header, found = _header(), ctypes.create_string_buffer(24)
    libc.capget(header, found)
    low, high = struct.unpack("6I", found.raw)[1::3]
    return int(high << 32 | low)


def _drop_bounds(libc: ctypes.CDLL, *, keep: int) -> None:
    for capability in range(HIGHEST_CAPABILITY + 1):
        if not keep >> capability & 1:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def _set_capabilities(libc: ctypes.CDLL, kept: int) -> None:
    """Set effective, permitted and inheritable capabilities, each in two halves of 32 bits."""
    wanted = ctypes.create_string_buffer(struct.pack("6I", kept, kept, kept, 0, 0, 0), 24)
    if libc.capset(_header(), wanted) != 0:
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def _header() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION_3, 0), 8)
