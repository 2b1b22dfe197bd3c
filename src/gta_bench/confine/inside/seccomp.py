"""The system-call filter: builds a short BPF program and installs it."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from gta_bench.confine.inside.protocol import Profile
from gta_bench.confine.inside.syscalls import (
    ARCHITECTURES,
    FIRST_UNKNOWN,
    Architecture,
    numbers,
)

# The groups of system calls that each profile refuses outright. `program-unwalled` is for Landlock,
# which has no namespaces: only the filter separates the program from other processes there.
_ALWAYS = ("tracing", "namespaces", "kernel", "shared memory")
_NEIGHBORS = ("neighbors", "metadata")
DENIED: dict[Profile, tuple[str, ...]] = {
    "snippet": ("processes", "sockets", "signals", *_ALWAYS, "unmapped memory", *_NEIGHBORS),
    "program": _ALWAYS,
    "program-unwalled": ("sockets", "signals", *_ALWAYS, *_NEIGHBORS),
}

CLONE_THREAD = 0x00010000
# NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
CLONE_NAMESPACES = 0x7E020000
PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
# With F_SETOWN, F_SETSIG and F_SETOWN_EX the kernel sends any signal to a process of the same user.
SIGNAL_BY_FCNTL = (8, 10, 15)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: used when a file is opened.
HARMLESS_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# TIOCSTI and TIOCLINUX type into a terminal.
TYPING_IOCTLS = (0x5412, 0x541C)
# FIOSETOWN and SIOCSPGRP (signals), FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR (attributes of files
# that are open for reading only): Landlock checks none of them.
REACHING_IOCTLS = (0x8901, 0x8902, 0x40086602, 0x401C5820)
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK are in the network namespace. AF_VSOCK is not: in a
# virtual machine it would reach the host.
NAMESPACED_FAMILIES = (1, 2, 10, 16)

# S_ISUID and S_ISGID: others run such a program with the rights of its owner.
SET_ID = 0o6000
# O_CREAT and __O_TMPFILE: only then does an open call use its mode argument.
CREATES = 0o100 | 0o20000000
# Which argument is the mode, by call.
CHANGES_MODE = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
MAKES_FILE = {"creat": 1, "mknod": 1, "mknodat": 2}
OPENS_FILE = {"open": 2, "openat": 3}  # the flags are the argument before the mode

ALLOW = 0x7FFF0000
KILL = 0x80000000


class Instruction(NamedTuple):
    """One instruction of classic BPF."""

    code: int
    if_true: int
    if_false: int
    value: int


def refuse(number: int) -> int:
    """The filter's answer that lets the call fail with that error number."""
    return 0x00050000 | number


def _load(offset: int) -> Instruction:
    return Instruction(0x20, 0, 0, offset)


def _answer(value: int) -> Instruction:
    return Instruction(0x06, 0, 0, value)


def _equal(value: int, *, skip: int) -> Instruction:
    """Continues if equal; otherwise skips that many instructions."""
    return Instruction(0x15, 0, skip, value)


def _when_equal(values: Iterable[int], answer: int) -> list[Instruction]:
    return [step for value in values for step in (_equal(value, skip=1), _answer(answer))]


def _when_any_bit(mask: int, answer: int) -> list[Instruction]:
    return [Instruction(0x45, 0, 1, mask), _answer(answer)]


def _judge(number: int, argument: int, rules: list[Instruction], default: int) -> list[Instruction]:
    """Rules for the low half of one argument of one system call; always returns an answer."""
    body = [_load(16 + 8 * argument), *rules, _answer(default)]
    return [_equal(number, skip=len(body)), *body]


def _refuse_set_id(architecture: Architecture) -> list[Instruction]:
    """No file is created or becomes set-user-id or set-group-id."""
    refused = _when_any_bit(SET_ID, refuse(errno.EPERM))
    call = numbers("metadata", architecture) | numbers("making files", architecture)
    steps = _when_equal([call["openat2"]], refuse(errno.ENOSYS))  # its mode is in memory
    for name, mode in (CHANGES_MODE | MAKES_FILE).items():
        if name in call:
            steps += _judge(call[name], mode, refused, ALLOW)
    for name, mode in OPENS_FILE.items():
        if name in call:
            rules = [_load(16 + 8 * mode), *refused]
            skip = Instruction(0x45, 0, len(rules), CREATES)
            steps += _judge(call[name], mode - 1, [skip, *rules], ALLOW)
    return steps


def _by_argument(profile: Profile, architecture: Architecture, *, forks: bool) -> list[Instruction]:
    """Rules for calls that are allowed or refused depending on their arguments."""
    call = numbers("judged by argument", architecture)
    no = refuse(errno.EPERM)
    # glibc falls back to clone, whose flags a filter can see; those of clone3 are in memory.
    steps = _when_equal([call["clone3"]], refuse(errno.ENOSYS))
    threads = [] if forks else _when_any_bit(CLONE_THREAD, ALLOW)
    rules = _when_any_bit(CLONE_NAMESPACES, no) + threads
    steps += _judge(call["clone"], 0, rules, ALLOW if forks else no)
    steps += _judge(call["prlimit64"], 0, _when_equal([0], ALLOW), no)
    no_device = refuse(errno.ENOTTY)
    if profile == "snippet":
        steps += _judge(call["ioctl"], 1, _when_equal(HARMLESS_IOCTLS, ALLOW), no_device)
    else:
        denied = TYPING_IOCTLS if profile == "program" else TYPING_IOCTLS + REACHING_IOCTLS
        steps += _judge(call["ioctl"], 1, _when_equal(denied, no_device), ALLOW)
    steps += _refuse_set_id(architecture)
    if profile == "program":
        family = refuse(errno.EAFNOSUPPORT)
        socket = numbers("sockets", architecture)["socket"]
        return steps + _judge(socket, 0, _when_equal(NAMESPACED_FAMILIES, ALLOW), family)
    steps += _judge(call["prctl"], 0, _when_equal([PR_SET_PDEATHSIG], no), ALLOW)
    steps += _judge(call["fcntl"], 1, _when_equal(SIGNAL_BY_FCNTL, no), ALLOW)
    return steps


def build(profile: Profile, architecture: Architecture, *, forks: bool) -> list[Instruction]:
    """The filter of a profile; without `forks` a program can start threads only."""
    steps = [_load(4), Instruction(0x15, 1, 0, architecture.audit), _answer(KILL), _load(0)]
    if architecture.machine == "x86_64":  # the x32 numbers would bypass every rule below
        steps += [Instruction(0x35, 0, 1, 0x40000000), _answer(KILL)]
    steps += [Instruction(0x35, 0, 1, FIRST_UNKNOWN), _answer(refuse(errno.ENOSYS))]
    for group in DENIED[profile]:
        steps += _when_equal(numbers(group, architecture).values(), refuse(errno.EPERM))
    if profile == "snippet":
        steps += _when_equal([numbers("ours", architecture)["seccomp"]], refuse(errno.EPERM))
    if not forks:
        calls = numbers("processes", architecture)
        forking = [calls[name] for name in ("fork", "vfork") if name in calls]
        steps += _when_equal(forking, refuse(errno.EPERM))
    return [*steps, *_by_argument(profile, architecture, forks=forks), _answer(ALLOW)]


def this_architecture() -> Architecture | None:
    """This machine's row of the table; None if there is none or Python is not 64-bit."""
    if struct.calcsize("P") != 8:
        return None
    return ARCHITECTURES.get(os.uname().machine)


def compile_filter(profile: Profile, *, forks: bool) -> bytes:
    """The filter for this machine, in the form that the kernel reads."""
    architecture = this_architecture()
    if architecture is None:
        raise OSError(errno.ENOSYS, f"no system-call table for {os.uname().machine}")
    steps = build(profile, architecture, forks=forks)
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def install(profile: Profile, *, forks: bool) -> None:
    """Put every thread of this process under the filter; it cannot be removed."""
    code = compile_filter(profile, forks=forks)
    instructions = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions)), 16
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    set_mode_filter, all_threads = ctypes.c_uint(1), ctypes.c_uint(1)
    call = ctypes.c_long(numbers("ours", ARCHITECTURES[os.uname().machine])["seccomp"])
    if libc.syscall(call, set_mode_filter, all_threads, program) != 0:
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")
