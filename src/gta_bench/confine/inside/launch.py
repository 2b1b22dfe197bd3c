"""The first code inside the jail: give up rights, then become the program or run the snippet.

A snippet's request on stdin has `driver`, `code` and `files`. The driver is trusted: it runs before
the system-call filter closes, so its imports work as usual; `prepare()` returns the names that the
code may use, `finish(names)` turns what the code defined into text or bytes. The code is foreign:
it can write any reply, so a reply is only ever text, bytes or an error message.
"""

import base64
import binascii
import ctypes
import errno
import json
import linecache
import math
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

from gta_bench.confine.inside import landlock, seccomp
from gta_bench.confine.inside.protocol import (
    NOT_STARTED,
    READY,
    SETUP_FAILED,
    LimitOrders,
    Orders,
    SnippetRequest,
)

FILE_NAME = "<code>"
ERROR_CHARACTERS = 2000

PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
# NOROOT and NO_SETUID_FIXUP with their locks: user 0 becomes an ordinary user.
NO_ROOT_MAGIC = 0b1111
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522
HIGHEST_CAPABILITY = 63


def main(text: str) -> None:
    """Entry point; `text` is the JSON of the orders."""
    orders = cast(Orders, json.loads(text))
    try:
        _drop_rights(orders)
        if orders["argv"] is not None:
            _close_filter(orders)
    except OSError as exc:
        sys.stderr.write(f"{exc.strerror or exc}\n")
        sys.stderr.flush()
        os._exit(SETUP_FAILED)
    if orders["argv"] is not None:
        _become_program(orders["argv"], orders["environment"])
    _run_snippet(orders)


def _drop_rights(orders: Orders) -> None:
    """Everything but the system-call filter, which would stop imports that start a helper."""
    _set_limits(orders["limits"])
    walls = orders["landlock"]
    if walls is not None:
        landlock.restrict(read=walls["read"], work=walls["work"], devices=walls["devices"])
    if orders["user"] is not None:
        # Under Landlock, Python may be installed below a home that only root can enter.
        _become_user(orders["user"], may_enter=walls is not None)
    elif walls is not None and os.geteuid() == 0:
        _drop_capabilities()
    if orders["parent"] is not None:  # last, because changing the user clears this setting
        _die_with(orders["parent"])


def _close_filter(orders: Orders) -> None:
    """Limit processor time from now on, and install the system-call filter."""
    _limit_processor_time(orders["limits"]["cpu_seconds"])
    if orders["profile"] is not None:
        seccomp.install(orders["profile"], forks=orders["forks"])


def _become_program(argv: list[str], environment: dict[str, str]) -> None:
    """Replace this process by the program."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and a program would inherit it
        signal.signal(ignored, signal.SIG_DFL)
    os.write(2, READY)
    try:
        os.execvpe(argv[0], argv, environment)
    except OSError as exc:
        os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
    os._exit(NOT_STARTED)


def _run_snippet(orders: Orders) -> NoReturn:
    """Read the request, close the filter, run the code, reply and exit."""
    request = cast(SnippetRequest, json.loads(sys.stdin.buffer.read()))
    channel = _take_channel()
    most = orders["reply_bytes"]
    try:
        os.chdir(orders["scratch"])
        for name, content in request["files"].items():
            file = Path(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(binascii.a2b_base64(content))
        driver: dict[str, Any] = {"__name__": "driver"}
        exec(compile(request["driver"], "<driver>", "exec"), driver)
        prepare, finish = driver["prepare"], driver["finish"]
        names = prepare()
        _close_filter(orders)
    except Exception as exc:  # noqa: BLE001 - the host reports it, whatever it is
        _reply(channel, {"setup": _error_message(exc)}, most)
    os.write(2, READY)
    _reply(channel, _run_code(request["code"], names, finish), most)


def _take_channel() -> int:
    """Reserve stdout for the reply; what the code prints goes to stderr."""
    channel = os.dup(1)
    os.dup2(2, 1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def _run_code(
    source: str, names: dict[str, Any], finish: Callable[[dict[str, Any]], str | bytes]
) -> dict[str, str]:
    """Run the code and return the reply in a form that JSON can carry."""
    # Lets tracebacks show the line of the code although it is in no file.
    linecache.cache[FILE_NAME] = (len(source), None, source.splitlines(True), FILE_NAME)
    names = {"__name__": "__main__", **names}
    try:
        exec(compile(source, FILE_NAME, "exec"), names)
        value = finish(names)
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode("ascii")}
        return {"text": str(value).encode("utf-8", "replace").decode("utf-8")}
    except MemoryError:
        return {"memory": "out of memory"}
    except BaseException as exc:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are errors too
        return {"error": _describe(exc)}


def _describe(exc: BaseException) -> str:
    """The error's type and message, and the line of the code that raised it."""
    message = _error_message(exc)
    if isinstance(exc, SyntaxError):
        line = f": {exc.text.strip()}" if exc.text else ""
        return f"{type(exc).__name__}: {exc.msg} (line {exc.lineno}{line})"[:ERROR_CHARACTERS]
    frames = [
        frame for frame in traceback.extract_tb(exc.__traceback__) if frame.filename == FILE_NAME
    ]
    if frames:
        message += f" (line {frames[-1].lineno}: {frames[-1].line})"
    return message[:ERROR_CHARACTERS]


def _error_message(exc: BaseException) -> str:
    """Type and message; without the message if its `__str__` fails."""
    try:
        message = str(exc)
    except Exception:  # noqa: BLE001 - the class is foreign, and so is its __str__
        message = ""
    name = type(exc).__name__
    text = f"{name}: {message}" if message else name
    return text.encode("utf-8", "replace").decode("utf-8")[:ERROR_CHARACTERS]


def _reply(channel: int, content: dict[str, str], most: int) -> NoReturn:
    """Send the reply and exit at once, without waiting for threads, exit handlers or buffers."""
    data = json.dumps(content).encode("ascii")
    if len(data) > most:
        data = json.dumps({"large": str(len(data))}).encode("ascii")
    try:
        while data:
            data = data[os.write(channel, data) :]
    finally:
        os._exit(0)


def _set_limits(orders: LimitOrders) -> None:
    """Set the limits of this process and its children, except for processor time."""
    _limit(resource.RLIMIT_FSIZE, orders["file_bytes"])
    _limit(resource.RLIMIT_NOFILE, orders["open_files"])
    _limit(resource.RLIMIT_CORE, 0)
    if orders["memory_bytes"] is not None:
        _limit(resource.RLIMIT_AS, orders["memory_bytes"])
    if orders["processes"] is not None:
        _limit(resource.RLIMIT_NPROC, orders["processes"])


def _limit_processor_time(seconds: int) -> None:
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


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when the parent ends, however it ends."""
    ctypes.CDLL(None).prctl(seccomp.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def _drop_capabilities() -> None:
    """Take away root's capabilities, for containers where it cannot change its user."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT_MAGIC, 0, 0, 0)
    _drop_bounds(libc, keep=0)
    _set_capabilities(libc, 0)


def _become_user(user: int, *, may_enter: bool) -> None:
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
    found = ctypes.create_string_buffer(24)
    libc.capget(_capability_header(), found)
    low, high = struct.unpack("6I", found.raw)[1::3]
    return int(high << 32 | low)


def _drop_bounds(libc: ctypes.CDLL, *, keep: int) -> None:
    for capability in range(HIGHEST_CAPABILITY + 1):
        if not keep >> capability & 1:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def _set_capabilities(libc: ctypes.CDLL, kept: int) -> None:
    """Set effective, permitted and inheritable capabilities, each in two halves of 32 bits."""
    wanted = ctypes.create_string_buffer(struct.pack("6I", kept, kept, kept, 0, 0, 0), 24)
    if libc.capset(_capability_header(), wanted) != 0:
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def _capability_header() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION_3, 0), 8)
