"""Giving up what a process may do: capabilities, limits, outliving its parent."""

import ctypes
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
# NOROOT and NO_SETUID_FIXUP with their locks: user 0 is a user like any other.
NO_ROOT_MAGIC = 0b1111
CAPABILITY_VERSION_3 = 0x20080522
HIGHEST_CAPABILITY = 63


def set_limits(orders: LimitOrders) -> None:
    """Limits of this process and its children, but for processor time."""
    _limit(resource.RLIMIT_FSIZE, orders["file_bytes"])
    _limit(resource.RLIMIT_NOFILE, orders["open_files"])
    _limit(resource.RLIMIT_CORE, 0)
    if orders["memory_bytes"] is not None:
        _limit(resource.RLIMIT_AS, orders["memory_bytes"])
    if orders["processes"] is not None:
        _limit(resource.RLIMIT_NPROC, orders["processes"])


def limit_processor_time(seconds: int) -> None:
    """From now on, for this process and each child. The hard limit cannot be caught."""
    spent = math.ceil(time.process_time())
    _limit(resource.RLIMIT_CPU, spent + seconds, spent + seconds + 1)


def _limit(what: int, soft: int, hard: int | None = None) -> None:
    """Lower a limit; one that already is lower stays."""
    _, ceiling = resource.getrlimit(what)
    hard = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))


def die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends."""
    ctypes.CDLL(None).prctl(seccomp.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def drop_capabilities() -> None:
    """Root without its powers. The user stays: Python may lie below a home only root can enter."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT_MAGIC, 0, 0, 0)
    for capability in range(HIGHEST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION_3, 0), 8)
    nothing = ctypes.create_string_buffer(24)
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")
