"""Runs one piece of Python that a model wrote, and answers with one line of JSON.

The request on stdin has `driver`, `code` and `files`. The driver is ours: it is run before the
system-call filter closes, so its imports work as usual; `prepare()` gives the names the code may
use, `finish(names)` turns what the code defined into text or bytes. The code is foreign: it can
write any reply it likes, so a reply holds nothing but a text, bytes or an error's words.
"""

import base64
import binascii
import json
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn, TypedDict, cast

from gta_bench.confine.inside import privileges, seccomp
from gta_bench.confine.inside.protocol import READY, Profile, SnippetRequest

FILE_NAME = "<code>"
ERROR_CHARACTERS = 2000


class _Driver(TypedDict):
    """The names that a driver must define."""

    prepare: Callable[[], dict[str, Any]]
    finish: Callable[[dict[str, Any]], str | bytes]


def run(*, profile: Profile | None, scratch: str, cpu_seconds: int, reply_bytes: int) -> NoReturn:
    """Read the request, close the last door, run the code, reply, end."""
    request = cast(SnippetRequest, json.loads(sys.stdin.buffer.read()))
    channel = take_channel()
    try:
        os.chdir(scratch)
        write_files(request["files"])
        driver = load_driver(request["driver"])
        names = driver["prepare"]()
        privileges.limit_processor_time(cpu_seconds)
        if profile is not None:
            seccomp.install(profile, forks=False)
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is told to the host as it is
        reply(channel, {"setup": first_words(exc)}, reply_bytes)
    os.write(2, READY)
    reply(channel, outcome(driver, request["code"], names), reply_bytes)


def take_channel() -> int:
    """Keep stdout for the reply alone; what the code prints goes to stderr."""
    channel = os.dup(1)
    os.dup2(2, 1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def write_files(files: dict[str, str]) -> None:
    """Files that the driver needs, below the scratch folder, such as a font cache."""
    for name, content in files.items():
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(binascii.a2b_base64(content))


def load_driver(source: str) -> _Driver:
    """Run the driver's source and take its two functions."""
    names: dict[str, Any] = {"__name__": "driver"}
    exec(compile(source, "<driver>", "exec"), names)
    return {"prepare": names["prepare"], "finish": names["finish"]}


def outcome(driver: _Driver, source: str, names: dict[str, Any]) -> dict[str, str]:
    """What the code came to: a text, bytes, or an error."""
    # Tracebacks show the line of the code although no file holds it.
    linecache.cache[FILE_NAME] = (len(source), None, source.splitlines(True), FILE_NAME)
    names = {"__name__": "__main__", **names}
    try:
        program: CodeType = compile(source, FILE_NAME, "exec")
        exec(program, names)
        return as_reply(driver["finish"](names))
    except MemoryError:
        return {"memory": "out of memory"}
    except BaseException as exc:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are errors too
        return {"error": describe(exc)}


def as_reply(value: str | bytes) -> dict[str, str]:
    """The driver's result in the form that JSON can carry."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    return {"text": str(value).encode("utf-8", "replace").decode("utf-8")}


def describe(exc: BaseException) -> str:
    """The error's type and words, and the line of the code where it arose."""
    words = first_words(exc)
    if isinstance(exc, SyntaxError):
        line = f": {exc.text.strip()}" if exc.text else ""
        return f"{type(exc).__name__}: {exc.msg} (line {exc.lineno}{line})"[:ERROR_CHARACTERS]
    places = [
        frame for frame in traceback.extract_tb(exc.__traceback__) if frame.filename == FILE_NAME
    ]
    if places:
        words += f" (line {places[-1].lineno}: {places[-1].line})"
    return words[:ERROR_CHARACTERS]


def first_words(exc: BaseException) -> str:
    """Type and message; a message that cannot be made is left out."""
    try:
        message = str(exc)
    except Exception:  # noqa: BLE001 - the class is foreign, and so is its __str__
        message = ""
    name = type(exc).__name__
    text = f"{name}: {message}" if message else name
    return text.encode("utf-8", "replace").decode("utf-8")[:ERROR_CHARACTERS]


def reply(channel: int, words: dict[str, str], most: int) -> NoReturn:
    """Send the reply and end at once: threads, exit handlers and buffers do not matter any more."""
    data = json.dumps(words).encode("ascii")
    if len(data) > most:
        data = json.dumps({"large": str(len(data))}).encode("ascii")
    try:
        while data:
            data = data[os.write(channel, data) :]
    finally:
        os._exit(0)
