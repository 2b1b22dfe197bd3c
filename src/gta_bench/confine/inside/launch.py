"""The first code inside the jail: give up rights, then become the program or run the snippet.

A snippet's request on stdin has `driver`, `code` and `files`. The driver is trusted: it runs before
the system-call filter closes, so its imports work as usual; `prepare()` returns the names that the
code may use, `finish(names)` turns what the code defined into text or bytes. The code is foreign:
it can write any reply, so a reply is only ever text, bytes or an error message.
"""

import base64
import binascii
import json
import linecache
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypedDict, cast

from gta_bench.confine.inside import landlock, privileges, seccomp
from gta_bench.confine.inside.protocol import (
    NOT_STARTED,
    READY,
    SETUP_FAILED,
    Orders,
    SnippetRequest,
)

FILE_NAME = "<code>"
ERROR_CHARACTERS = 2000


class _Driver(TypedDict):
    """The names that a driver must define."""

    prepare: Callable[[], dict[str, Any]]
    finish: Callable[[dict[str, Any]], str | bytes]


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
        _become(orders["argv"], orders["environment"])
    _run_snippet(orders)


def _drop_rights(orders: Orders) -> None:
    """Everything but the system-call filter, which would stop imports that start a helper."""
    privileges.set_limits(orders["limits"])
    walls = orders["landlock"]
    if walls is not None:
        landlock.restrict(read=walls["read"], work=walls["work"], devices=walls["devices"])
    if orders["user"] is not None:
        # Under Landlock, Python may be installed below a home that only root can enter.
        privileges.become_user(orders["user"], may_enter=walls is not None)
    elif walls is not None and os.geteuid() == 0:
        privileges.drop_capabilities()
    if orders["parent"] is not None:  # last, because changing the user clears this setting
        privileges.die_with(orders["parent"])


def _close_filter(orders: Orders) -> None:
    """Limit processor time from now on, and install the system-call filter."""
    privileges.limit_processor_time(orders["limits"]["cpu_seconds"])
    if orders["profile"] is not None:
        seccomp.install(orders["profile"], forks=orders["forks"])


def _become(argv: list[str], environment: dict[str, str]) -> None:
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
        driver = _load_driver(request["driver"])
        names = driver["prepare"]()
        _close_filter(orders)
    except Exception as exc:  # noqa: BLE001 - the host reports it, whatever it is
        _reply(channel, {"setup": _error_message(exc)}, most)
    os.write(2, READY)
    _reply(channel, _run_code(driver, request["code"], names), most)


def _take_channel() -> int:
    """Reserve stdout for the reply; what the code prints goes to stderr."""
    channel = os.dup(1)
    os.dup2(2, 1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def _load_driver(source: str) -> _Driver:
    names: dict[str, Any] = {"__name__": "driver"}
    exec(compile(source, "<driver>", "exec"), names)
    return {"prepare": names["prepare"], "finish": names["finish"]}


def _run_code(driver: _Driver, source: str, names: dict[str, Any]) -> dict[str, str]:
    """Run the code and return the reply in a form that JSON can carry."""
    # Lets tracebacks show the line of the code although it is in no file.
    linecache.cache[FILE_NAME] = (len(source), None, source.splitlines(True), FILE_NAME)
    names = {"__name__": "__main__", **names}
    try:
        exec(compile(source, FILE_NAME, "exec"), names)
        value = driver["finish"](names)
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
