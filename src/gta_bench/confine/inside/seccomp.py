"""The system-call filter: builds a short BPF program and installs it.

The numbers of system calls are from the kernel's `unistd_64.h` and `asm-generic/unistd.h`; a test
compares every number with the headers if they are installed.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from gta_bench.confine.inside.protocol import Profile

# System calls by what they would allow, as name:x86_64:aarch64, with a dash
# if the architecture does not have the call.
GROUPS = {
    "processes": """
        fork:57:- vfork:58:- execve:59:221 execveat:322:281
    """,
    "sockets": """
        socket:41:198 socketpair:53:199 connect:42:203 bind:49:200 listen:50:201 accept:43:202
        accept4:288:242 sendto:44:206 sendmsg:46:211 sendmmsg:307:269
    """,
    "signals": """
        kill:62:129 tkill:200:130 tgkill:234:131 rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240
        pidfd_send_signal:424:424
    """,
    "tracing": """
        ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 process_madvise:440:440
        process_mrelease:448:448 pidfd_open:434:434 pidfd_getfd:438:438 kcmp:312:272
    """,
    "namespaces": """
        unshare:272:97 setns:308:268 mount:165:40 umount2:166:39 pivot_root:155:41 chroot:161:51
        move_mount:429:429 open_tree:428:428 fsopen:430:430 fsconfig:431:431 fsmount:432:432
        fspick:433:433 mount_setattr:442:442 name_to_handle_at:303:264 open_by_handle_at:304:265
        quotactl:179:60 quotactl_fd:443:443
    """,
    "kernel": """
        bpf:321:280 perf_event_open:298:241 userfaultfd:323:282 io_uring_setup:425:425
        io_uring_enter:426:426 io_uring_register:427:427 add_key:248:217 request_key:249:218
        keyctl:250:219 init_module:175:105 finit_module:313:273 delete_module:176:106
        kexec_load:246:104 kexec_file_load:320:294 reboot:169:142 swapon:167:224 swapoff:168:225
        acct:163:89 syslog:103:116 settimeofday:164:170 clock_settime:227:112
        clock_adjtime:305:266 adjtimex:159:171 sethostname:170:161 setdomainname:171:162
        iopl:172:- ioperm:173:- modify_ldt:154:- personality:135:92 vhangup:153:58
        lookup_dcookie:212:18 uselib:134:- ustat:136:- sysfs:139:- fanotify_init:300:262
        fanotify_mark:301:263 nfsservctl:180:42
    """,
    "shared memory": """
        shmget:29:194 shmat:30:196 shmctl:31:195 semget:64:190 semop:65:193 semtimedop:220:192
        semctl:66:191 msgget:68:186 msgsnd:69:189 msgrcv:70:188 msgctl:71:187 mq_open:240:180
        mq_unlink:241:181 mq_notify:244:184
    """,
    "unmapped memory": """
        memfd_create:319:279 memfd_secret:447:447
    """,
    "neighbors": """
        setsid:112:157 setpgid:109:154 setpriority:141:140 ioprio_set:251:30
        sched_setaffinity:203:122 sched_setscheduler:144:119 sched_setparam:142:118
        sched_setattr:314:274 migrate_pages:256:238 move_pages:279:239 mbind:237:235
        set_mempolicy:238:237 inotify_init:253:- inotify_init1:294:26 inotify_add_watch:254:27
    """,
    "metadata": """
        chmod:90:- fchmod:91:52 fchmodat:268:53 fchmodat2:452:452 chown:92:- lchown:94:-
        fchown:93:55 fchownat:260:54 utime:132:- utimes:235:- utimensat:280:88 futimesat:261:-
        setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7 removexattr:197:14 lremovexattr:198:15
        fremovexattr:199:16
    """,
    "making files": """
        open:2:- openat:257:56 openat2:437:437 creat:85:- mknod:133:- mknodat:259:33
    """,
    "judged by argument": """
        clone:56:220 clone3:435:435 prlimit64:302:261 prctl:157:167 fcntl:72:25 ioctl:16:29
    """,
    "ours": """
        seccomp:317:277 landlock_create_ruleset:444:444 landlock_add_rule:445:445
        landlock_restrict_self:446:446
    """,
}

# Calls added after `futex_requeue` (Linux 6.7) are not in this table and fail with ENOSYS: programs
# then use the older call, and a new kernel cannot open a new hole.
FIRST_UNKNOWN = 457


class Architecture(NamedTuple):
    """How a filter recognizes an architecture, and its column of the table."""

    machine: str
    audit: int
    column: int


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0xC000003E, 0),
    "aarch64": Architecture("aarch64", 0xC00000B7, 1),
}


def numbers(group: str, architecture: Architecture) -> dict[str, int]:
    """The group's calls that exist on that architecture, by name."""
    found = {}
    for entry in GROUPS[group].split():
        name, *columns = entry.split(":")
        if columns[architecture.column] != "-":
            found[name] = int(columns[architecture.column])
    return found


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
