"""Make this process look like macOS or Windows to the modules of gta_bench, and to nothing else.

Put this folder first on PYTHONPATH and name a system in PRETENDED_SYSTEM. Modules of gta_bench
then import stand-ins for `os`, `sys`, `signal` and others, which lack what the system lacks, and
cannot import modules that it does not have. Other packages see the real machine, because they are
installed for it. Every program that the process starts is appended to the file PRETENDED_STARTS;
/proc is missing.
"""

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import struct
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

SYSTEM = os.environ.get("PRETENDED_SYSTEM", "")
STARTS = os.environ.get("PRETENDED_STARTS", "")
PACKAGE = "gta_bench"
STARTED = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.spawn")
# Of `os`, `signal`, … on Linux only; what typeshed says, as far as a name could be used.
LINUX_ONLY = {
    "os": "memfd_create O_PATH O_TMPFILE sched_getaffinity sched_setaffinity posix_fadvise "
    "setresuid setresgid getresuid getresgid eventfd pidfd_open copy_file_range splice getrandom "
    "unshare setns",
    "select": "epoll",
    "signal": "SIGPWR SIGSTKFLT SIGPOLL SIGRTMIN SIGRTMAX sigtimedwait sigwaitinfo",
    "socket": "AF_NETLINK AF_PACKET AF_VSOCK",
}
POSIX_ONLY = {
    "os": "geteuid getuid getgid getegid getgroups setuid setgid setgroups seteuid setegid fork "
    "forkpty chown lchown fchown nice killpg setsid setpgid getpgid getpgrp setpgrp uname sysconf "
    "pread pwrite preadv pwritev mkfifo mknod statvfs fstatvfs getloadavg set_blocking pipe2 "
    "posix_spawn wait wait3 wait4 O_NOFOLLOW O_DIRECTORY O_NONBLOCK O_NOCTTY O_CLOEXEC O_SYNC "
    "openpty ttyname tcgetpgrp lockf sync fchdir chroot",
    "select": "poll POLLERR POLLHUP POLLIN POLLOUT kqueue",
    "signal": "SIGKILL SIGHUP SIGALRM SIGVTALRM SIGPIPE SIGCHLD SIGUSR1 SIGUSR2 SIGQUIT SIGSTOP "
    "SIGCONT SIGTSTP SIGXCPU SIGXFSZ SIGBUS SIGSYS SIGTRAP alarm setitimer getitimer pause "
    "pthread_kill pthread_sigmask sigpending sigwait SIG_BLOCK SIG_SETMASK SIG_UNBLOCK",
    "socket": "AF_UNIX send_fds recv_fds",
    "asyncio": "open_unix_connection start_unix_server",
    "time": "tzset clock_gettime pthread_getcpuclockid",
}
MISSING_MODULES: Mapping[str, set[str]] = {
    "darwin": set(),
    "win32": {
        "fcntl",
        "resource",
        "pwd",
        "grp",
        "termios",
        "tty",
        "pty",
        "crypt",
        "syslog",
        "readline",
    },
}


def _missing_names(module: str) -> set[str]:
    names = LINUX_ONLY.get(module, "").split()
    return {*names, *(POSIX_ONLY.get(module, "").split() if SYSTEM == "win32" else ())}


class _StandIn(types.ModuleType):
    """A module without what the pretended system lacks, and with what differs there."""

    def __init__(self, real: types.ModuleType, changed: Mapping[str, Any]) -> None:
        super().__init__(real.__name__)
        self.__dict__["_real"] = real
        self.__dict__["_missing"] = _missing_names(real.__name__)
        self.__dict__.update(changed)

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"module {self.__name__!r} of {SYSTEM} has no attribute {name!r}")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._real, name, value)


BY_DESCRIPTOR = (
    *("open", "stat", "lstat", "unlink", "chmod", "utime", "link"),
    *("rename", "replace", "rmdir", "mkdir", "readlink"),
)


def _without_descriptors(name: str) -> Any:
    """A function of `os` as on Windows: by path only, and no file is replaced by a new name."""
    real = getattr(os, name)

    def call(*args: Any, **options: Any) -> Any:
        if any(options.get(key) is not None for key in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError(f"dir_fd unavailable on this platform: {name}")
        if name == "rename" and os.path.lexists(args[1]):
            raise FileExistsError(17, "Windows does not replace a file that is there", args[1])
        return real(*args, **options)

    return call


class _Msvcrt(types.ModuleType):
    """Locks of ranges as Windows has them, by Linux's locks of open files."""

    LK_UNLCK, LK_LOCK, LK_NBLCK = 0, 1, 2

    def locking(self, handle: int, mode: int, length: int) -> None:
        import fcntl

        start = os.lseek(handle, 0, os.SEEK_CUR)
        writable = fcntl.fcntl(handle, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
        kind = fcntl.F_WRLCK if writable else fcntl.F_RDLCK
        wanted = fcntl.F_UNLCK if mode == self.LK_UNLCK else kind
        try:
            lock = struct.pack("hhqqi0q", wanted, os.SEEK_SET, start, length, 0)
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock)
        except OSError as exc:
            raise PermissionError(13, "Permission denied") from exc


def _changed(name: str) -> dict[str, Any]:
    """What differs on the pretended system, by module."""
    if name == "sys":
        return {"platform": SYSTEM}
    if name == "platform":
        known = {"darwin": "Darwin", "win32": "Windows"}[SYSTEM]
        return {"system": lambda: known, "platform": lambda **_: f"{known}-pretended"}
    if name == "shutil":
        import shutil

        hidden = ("bwrap", "prlimit", "setpriv", "pasta", "nft", "nsenter")

        def which(command: str, *args: Any, **options: Any) -> str | None:
            return None if command in hidden else shutil.which(command, *args, **options)

        return {"which": which}
    if name == "os" and SYSTEM == "win32":
        by_path = {function: _without_descriptors(function) for function in BY_DESCRIPTOR}
        own = {"supports_dir_fd": set(), "supports_fd": set(), "O_BINARY": 0, "O_NOINHERIT": 0}
        return {**by_path, **own}
    return {}


STANDING_IN = ("os", "sys", "signal", "select", "socket", "asyncio", "platform", "shutil", "time")
_stand_ins: dict[str, types.ModuleType] = {}
_real_import = builtins.__import__


def _import(
    name: str,
    globals: Any = None,
    locals: Any = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> types.ModuleType:
    first = name.partition(".")[0]
    if level == 0 and first in MISSING_MODULES[SYSTEM]:
        raise ModuleNotFoundError(f"No module named {name!r} on {SYSTEM}", name=name)
    if level == 0 and name == "msvcrt" and SYSTEM == "win32":
        return _stand_ins.setdefault("msvcrt", _Msvcrt("msvcrt"))
    found = _real_import(name, globals, locals, fromlist, level)
    if level == 0 and found.__name__ in STANDING_IN:
        if found.__name__ not in _stand_ins:
            _stand_ins[found.__name__] = _StandIn(found, _changed(found.__name__))
        return _stand_ins[found.__name__]
    return found


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        own = dict(vars(builtins))
        own["__import__"] = _import
        module.__dict__["__builtins__"] = own
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _is_ours() -> bool:
    """Whether a module of the package is the nearest caller that is not of the standard library."""
    frame: types.FrameType | None = sys._getframe(2)
    library = os.__file__.removesuffix("os.py")
    while frame is not None:
        file = frame.f_code.co_filename
        if f"{os.sep}{PACKAGE}{os.sep}" in file:
            return True
        if not file.startswith((library, "<")) or "site-packages" in file:
            return False
        frame = frame.f_back
    return False


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event in STARTED and STARTS:
        line = json.dumps({"event": event, "argv": [str(word) for word in _argv(args)]})
        descriptor = os.open(STARTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(descriptor, line.encode() + b"\n")
        os.close(descriptor)
    elif event in ("open", "os.listdir", "os.scandir") and args and isinstance(args[0], str):
        path = args[0]
        if path.startswith("/proc") and not path.startswith("/proc/self/fd/") and _is_ours():
            raise FileNotFoundError(2, f"{SYSTEM} has no /proc", path)


def _argv(args: tuple[Any, ...]) -> Sequence[str]:
    words = args[1] if len(args) > 1 else args[0]
    if isinstance(words, (str, bytes, os.PathLike)):
        return [os.fsdecode(words)]
    return [os.fsdecode(word) for word in words or args[:1]]


if SYSTEM:
    sys.meta_path.insert(0, _Finder())
    sys.addaudithook(_watch)
    if SYSTEM == "win32":
        import asyncio.unix_events

        def _refuse(self: Any, sig: int, callback: Any, *args: Any) -> None:
            if _is_ours():
                raise NotImplementedError("Windows has no signal handlers of event loops")
            _add(self, sig, callback, *args)

        _Loop = asyncio.unix_events._UnixSelectorEventLoop
        _add = _Loop.add_signal_handler
        _Loop.add_signal_handler = _refuse  # type: ignore[method-assign, assignment]
