"""Landlock: restrict this process and its children to named files."""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from gta_bench.confine.inside import seccomp
from gta_bench.confine.inside.seccomp import ARCHITECTURES, numbers

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15

READ = EXECUTE | READ_FILE | READ_DIR
# No MAKE_SYM, MAKE_FIFO, MAKE_SOCK, MAKE_CHAR: a working folder contains files and folders only.
WORK = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_REG | MAKE_DIR | REMOVE_FILE | REMOVE_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

# Before ABI 3 (Linux 6.2) a read-only file could still be truncated.
OLDEST_ABI = 3
CALLS = numbers("ours", ARCHITECTURES["x86_64"])  # Landlock's numbers are the same everywhere


def _call(name: str, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(CALLS[name]), *arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def abi() -> int:
    """The kernel's Landlock version; 0 if it has none or has it disabled."""
    try:
        return _call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError as exc:
        if exc.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def _all_rights(version: int) -> int:
    """Every file right that this version can refuse."""
    return (1 << (16 if version >= 5 else 15)) - 1


def _ruleset(version: int) -> int:
    tcp = 0b11 if version >= 4 else 0  # bind, connect
    scopes = 0b11 if version >= 6 else 0  # abstract sockets, signals
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = struct.pack("QQQ", _all_rights(version), tcp, scopes)[:size]
    buffer = ctypes.create_string_buffer(attributes, size)
    return _call("landlock_create_ruleset", buffer, ctypes.c_size_t(size), ctypes.c_uint32(0))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing file needs no rule
    if not stat.S_ISDIR(os.fstat(below).st_mode):
        rights &= OF_FILES
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, below), 12)
    _call("landlock_add_rule", ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
    os.close(below)


def restrict(*, read: Sequence[str], work: Sequence[str], devices: Sequence[str]) -> None:
    """Deny every other path for good; call it before any thread starts.

    A restriction applies to the calling thread and what it starts later, not to older threads.
    """
    version = abi()
    if version < OLDEST_ABI:
        raise OSError(errno.ENOSYS, f"Landlock ABI {version}; {OLDEST_ABI} is needed")
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise OSError(errno.EBUSY, "a thread was running before the jail closed")
    handled = _all_rights(version)
    ruleset = _ruleset(version)
    for paths, rights in ((read, READ), (work, WORK), (devices, READ_FILE | WRITE_FILE)):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    ctypes.CDLL(None).prctl(seccomp.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)
