"""The system-call filter, run by a small BPF machine: both architectures are tested anywhere."""

import errno
import re
from pathlib import Path

import pytest

from gta_bench.confine.inside import seccomp
from gta_bench.confine.inside.protocol import Profile
from gta_bench.confine.inside.seccomp import ARCHITECTURES, GROUPS, Architecture, numbers

PROFILES: tuple[Profile, ...] = ("snippet", "program", "program-unwalled")
MACHINES = sorted(ARCHITECTURES)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
# Calls that every Python program makes, by name, x86_64 and aarch64.
EVERYDAY = {
    "read": (0, 63), "write": (1, 64), "openat": (257, 56), "close": (3, 57), "mmap": (9, 222),
    "munmap": (11, 215), "brk": (12, 214), "futex": (202, 98), "exit_group": (231, 94),
    "getpid": (39, 172), "clock_gettime": (228, 113), "getrandom": (318, 278),
    "rt_sigaction": (13, 134), "newfstatat": (262, 79), "getdents64": (217, 61), "lseek": (8, 62),
    "mprotect": (10, 226), "unlinkat": (263, 35), "mkdirat": (258, 34), "pipe2": (293, 59),
    "set_robust_list": (273, 99), "rseq": (334, 293), "sched_getaffinity": (204, 123),
    "futex_wake": (454, 454),
}  # fmt: skip


def answer(filter_: list[seccomp.Instruction], number: int, *arguments: int, audit: int) -> int:
    """What the kernel would make of the call."""
    accumulator, at = 0, 0
    memory = {0: number, 4: audit}
    memory |= {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate(arguments)}
    while True:
        code, if_true, if_false, value = filter_[at]
        at += 1
        if code == 0x20:
            accumulator = memory.get(value, 0)
        elif code == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += if_true if holds else if_false


def judge(
    profile: Profile, machine: str, number: int, *arguments: int, forks: bool | None = None
) -> int:
    architecture = ARCHITECTURES[machine]
    allowed = profile != "snippet" if forks is None else forks
    built = seccomp.build(profile, architecture, forks=allowed)
    return answer(built, number, *arguments, audit=architecture.audit)


def call(machine: str, name: str) -> int:
    for group in GROUPS:
        found = numbers(group, ARCHITECTURES[machine])
        if name in found:
            return found[name]
    raise AssertionError(name)


@pytest.mark.parametrize("machine", MACHINES)
class TestTable:
    def test_every_number_is_the_kernels(self, machine: str) -> None:
        header = HEADERS[machine]
        if not header.is_file():
            pytest.skip(f"no kernel headers ({header})")
        text = header.read_text(encoding="utf-8")
        kernel = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
        for group in GROUPS:
            for name, number in numbers(group, ARCHITECTURES[machine]).items():
                if name in kernel:
                    assert int(kernel[name]) == number, name
                else:
                    assert name == "fchmodat2", f"{name}: newer than these headers?"

    def test_no_number_stands_twice(self, machine: str) -> None:
        everything = [n for g in GROUPS for n in numbers(g, ARCHITECTURES[machine]).values()]
        assert len(set(everything)) == len(everything) > 100

    def test_a_filter_fits_into_the_kernels_limits(self, machine: str) -> None:
        for profile in PROFILES:
            built = seccomp.build(profile, ARCHITECTURES[machine], forks=False)
            assert len(built) < 4096
            assert all(max(step.if_true, step.if_false) < 256 for step in built)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("profile", PROFILES)
class TestEveryProfile:
    def test_everyday_calls_are_allowed(self, profile: Profile, machine: str) -> None:
        column = ARCHITECTURES[machine].column
        for name, both in EVERYDAY.items():
            assert judge(profile, machine, both[column]) == seccomp.ALLOW, name

    def test_what_its_groups_name_is_refused(self, profile: Profile, machine: str) -> None:
        for group in seccomp.DENIED[profile]:
            for name, number in numbers(group, ARCHITECTURES[machine]).items():
                assert judge(profile, machine, number) == seccomp.refuse(errno.EPERM), name

    def test_another_architecture_is_killed(self, profile: Profile, machine: str) -> None:
        built = seccomp.build(profile, ARCHITECTURES[machine], forks=True)
        i386 = 0x40000003
        assert answer(built, 1, audit=i386) == seccomp.KILL

    def test_calls_newer_than_the_table_do_not_exist(self, profile: Profile, machine: str) -> None:
        for number in (457, 467, 600, 0x3FFFFFFF):
            assert judge(profile, machine, number) == seccomp.refuse(errno.ENOSYS)

    def test_clone3_does_not_exist(self, profile: Profile, machine: str) -> None:
        assert judge(profile, machine, 435) == seccomp.refuse(errno.ENOSYS)

    @pytest.mark.parametrize("bit", [17, 25, 26, 27, 28, 29, 30])
    def test_no_clone_makes_a_namespace(self, profile: Profile, machine: str, bit: int) -> None:
        flags = 1 << bit | seccomp.CLONE_THREAD
        number = call(machine, "clone")
        assert judge(profile, machine, number, flags) == seccomp.refuse(errno.EPERM)

    def test_threads_can_be_made(self, profile: Profile, machine: str) -> None:
        glibc = 0x003D0F00
        assert judge(profile, machine, call(machine, "clone"), glibc) == seccomp.ALLOW

    def test_only_own_limits_can_be_set(self, profile: Profile, machine: str) -> None:
        number = call(machine, "prlimit64")
        assert judge(profile, machine, number, 0) == seccomp.ALLOW
        assert judge(profile, machine, number, 1234) == seccomp.refuse(errno.EPERM)

    def test_nobody_types_into_a_terminal(self, profile: Profile, machine: str) -> None:
        number = call(machine, "ioctl")
        assert judge(profile, machine, number, 0, 0x5412) == seccomp.refuse(errno.ENOTTY)
        assert judge(profile, machine, number, 0, 0x5401) == seccomp.ALLOW

    def test_no_file_is_made_with_the_rights_of_its_maker(
        self, profile: Profile, machine: str
    ) -> None:
        no, creat, tmpfile = seccomp.refuse(errno.EPERM), 0o101, 0o20200001
        for mode in (0o4755, 0o2755, 0o6000):
            for flags in (creat, tmpfile):
                assert judge(profile, machine, call(machine, "openat"), 0, 0, flags, mode) == no
            assert judge(profile, machine, call(machine, "mknodat"), 0, 0, mode) == no
            assert judge(profile, machine, call(machine, "fchmod"), 3, mode) == no
            assert judge(profile, machine, call(machine, "fchmodat"), 0, 0, mode) == no
        openat = call(machine, "openat")
        assert judge(profile, machine, openat, 0, 0, creat, 0o1777) == seccomp.ALLOW
        assert judge(profile, machine, openat, 0, 0, 0, 0o4755) == seccomp.ALLOW, "no mode at all"
        assert judge(profile, machine, call(machine, "openat2")) == seccomp.refuse(errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
class TestDifferences:
    def test_a_process_can_be_made_by_programs_only(self, machine: str) -> None:
        number = call(machine, "clone")
        fork = 0x01200011
        assert judge("snippet", machine, number, fork) == seccomp.refuse(errno.EPERM)
        assert judge("program", machine, number, fork) == seccomp.ALLOW
        refused = judge("program", machine, number, fork, forks=False)
        assert refused == seccomp.refuse(errno.EPERM)

    def test_programs_in_namespaces_change_other_rights(self, machine: str) -> None:
        assert judge("program", machine, call(machine, "fchmod"), 3, 0o1777) == seccomp.ALLOW

    def test_programs_without_forks_can_still_be_started(self, machine: str) -> None:
        execve = call(machine, "execve")
        assert judge("program", machine, execve, forks=False) == seccomp.ALLOW
        assert judge("snippet", machine, execve) == seccomp.refuse(errno.EPERM)

    @pytest.mark.parametrize(
        ("family", "allowed"),
        [(1, True), (2, True), (10, True), (16, True), (40, False), (38, False), (17, False)],
    )
    def test_programs_use_sockets_that_live_in_the_namespace(
        self, machine: str, family: int, allowed: bool
    ) -> None:
        expected = seccomp.ALLOW if allowed else seccomp.refuse(errno.EAFNOSUPPORT)
        assert judge("program", machine, call(machine, "socket"), family) == expected

    def test_without_namespaces_there_are_no_sockets(self, machine: str) -> None:
        refused = judge("program-unwalled", machine, call(machine, "socket"), 1)
        assert refused == seccomp.refuse(errno.EPERM)

    @pytest.mark.parametrize("profile", ["snippet", "program-unwalled"])
    @pytest.mark.parametrize("command", seccomp.SIGNAL_BY_FCNTL)
    def test_without_namespaces_the_kernel_sends_no_signals_for_it(
        self, machine: str, profile: Profile, command: int
    ) -> None:
        number = call(machine, "fcntl")
        assert judge(profile, machine, number, 3, command) == seccomp.refuse(errno.EPERM)
        assert judge(profile, machine, number, 3, 1) == seccomp.ALLOW

    @pytest.mark.parametrize("profile", ["snippet", "program-unwalled"])
    def test_without_namespaces_it_cannot_outlive_its_parent(
        self, machine: str, profile: Profile
    ) -> None:
        number = call(machine, "prctl")
        assert judge(profile, machine, number, 1) == seccomp.refuse(errno.EPERM)
        assert judge(profile, machine, number, 15) == seccomp.ALLOW

    def test_a_snippet_adds_no_filter_of_its_own(self, machine: str) -> None:
        number = call(machine, "seccomp")
        assert judge("snippet", machine, number) == seccomp.refuse(errno.EPERM)


def test_the_x32_numbers_are_killed() -> None:
    assert judge("program", "x86_64", 0x40000000 | 57) == seccomp.KILL


def test_an_unknown_architecture_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    known = seccomp.this_architecture()
    assert known is None or isinstance(known, Architecture)
    real = os.uname()
    strange = os.uname_result((*real[:4], "riscv64"))
    monkeypatch.setattr(os, "uname", lambda: strange)
    assert seccomp.this_architecture() is None
    with pytest.raises(OSError, match="no system-call table for riscv64"):
        seccomp.install("snippet", forks=False)
