"""The boundary of the Python API: where its work runs, how it is stopped, and how it fails.

Work beside a running event loop, as in a notebook or a coroutine, has a thread of its own. A
failure is worded for Python: by argument, not by option of a command.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

import anyio

from gta_bench.errors import INTERRUPTED, EnvironmentProblem, GtaError, WorkFailed
from gta_bench.running.backends.backend import explain_os_error
from gta_bench.running.stopping import PAUSE, Stop, current_stop

# Seconds that stopped work has to end before its caller goes on without it.
PATIENCE = 1.7
_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")
_SAFE = "What is finished is safe; run the same command again to continue."
# What is said to users of the commands, and what to those of Python.
_PHRASES: Final = {
    "run the same command again": "call again with the same arguments",
    "the same command runs it again": "the same call runs it again",
    "written by a different command": "written by a different call",
    "Another command is working": "Another run is working",
    "command line: ": "`settings`: ",
    "add --model provider/model": "model='provider/model'",
    "--agent react": "agent='react'",
    "--mode end-to-end": "mode='end-to-end'",
    "--mode step": "mode='step'",
    "--tape-mode record": "tape_mode='record'",
    "`gta run` or `gta import`": "`gta_bench.run`, or with `gta import` in a shell",
}
# Commands, and the calls that do the same.
_CALLS: Final = {
    r"`gta score ([^-`\s]\S*) --judge MODEL`": r"`gta_bench.judge('\1', 'provider/model')`",
    r"`gta score ([^-`\s][^`\s]*)`": r"`gta_bench.score('\1')`",
    r"(`gta (?:status|data fetch|tape from-reference)[^`]*`)": r"\1 in a shell",
}
# Options of `gta run` whose argument of `gta_bench.run` has another name.
ARGUMENTS: Final = {
    "agent-bridge": "harness",
    "control": "controls",
    "generate-config": "generate",
    "harness-name": "harness",
    "harness-readable": "harness",
    "judge": "judges",
    "judge-batch": "settings",
    "max-connections": "settings",
    "max-retries": "settings",
    "network": "harness",
    "no-preflight": "preflight=False",
    "rpm": "settings",
    "task": "tasks",
    "timeout": "settings",
    "tool-server": "tool_servers",
}
# A command for a shell stays as it is; an option, with or without backticks, becomes an argument.
_OPTION = re.compile(r"`(?!--)[^`]*`|`?--([a-z]+(?:-[a-z]+)*)(?: [A-Z]+\b)?`?")


def word_for_python(message: str) -> str:
    """Return a message with arguments of Python instead of options of a command.

    >>> word_for_python("--tape-mode needs a tape: see `gta run --help`.")
    '`tape_mode` needs a tape: see `gta run --help`.'
    """
    for said, instead in _PHRASES.items():
        message = message.replace(said, instead)
    for command, call in _CALLS.items():
        message = re.sub(command, call, message)

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0]
        return f"`{ARGUMENTS.get(name, name.replace('-', '_'))}`"

    return _OPTION.sub(replace, message)


def offer(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
    """Make a function of the API callable from anywhere, also while an event loop is running.

    Interrupts raise a KeyboardInterrupt that says what is safe.
    """

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
        work = partial(_do, partial(function, *args, **kwargs))
        try:
            return _call_beside_loop(work) if _is_loop_running() else work()
        except WorkFailed as exc:
            if exc.exit_code != INTERRUPTED:
                raise
            raise KeyboardInterrupt(str(exc)) from None

    return call


def offer_async(
    function: Callable[_Arguments, _Value],
) -> Callable[_Arguments, Coroutine[Any, Any, _Value]]:
    """Return a function of the API as a coroutine function, whose cancellation stops the work."""
    plain = function.__wrapped__  # type: ignore[attr-defined]

    @wraps(function)
    async def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
        work: Callable[[], _Value] = partial(plain, *args, **kwargs)
        return await _await_beside_loop(partial(_do, work))

    call.__name__ = f"a{function.__name__}"
    call.__doc__ = (
        f"The same as `{function.__name__}`, as a coroutine; canceling it stops the work."
    )
    return call


def _do(work: Callable[[], _Value]) -> _Value:
    """Do the work; failures are worded for Python."""
    try:
        return work()
    except KeyboardInterrupt:
        raise WorkFailed(word_for_python(f"Interrupted. {_SAFE}"), exit_code=INTERRUPTED) from None
    except GtaError as exc:
        exc.args = (word_for_python(str(exc)), *exc.args[1:])
        raise
    except OSError as exc:
        raise EnvironmentProblem(explain_os_error(exc)) from exc


async def _await_beside_loop(work: Callable[[], _Value]) -> _Value:
    stop, future = _start(work)
    result = asyncio.wrap_future(future)
    # What stopped work raises is in the message below, so asyncio need not report it.
    result.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        # A kernel's interrupt cancels its cell, but does not wake a loop that has nothing to do.
        while not result.done():
            await asyncio.wait([result], timeout=PAUSE)
    except asyncio.CancelledError:
        stop.request()
        # A canceled scope of anyio would cancel the waiting, too.
        with anyio.CancelScope(shield=True):
            await asyncio.wait([result], timeout=PATIENCE)
        raise asyncio.CancelledError(_describe_stop(future)) from None
    return result.result()


def _call_beside_loop(work: Callable[[], _Value]) -> _Value:
    stop, future = _start(work)
    try:
        return future.result()
    except KeyboardInterrupt:
        stop.request()
        with suppress(Exception):
            future.exception(timeout=PATIENCE)
        raise KeyboardInterrupt(_describe_stop(future)) from None


def _start(work: Callable[[], _Value]) -> tuple[Stop, Future[_Value]]:
    """Start the work in a thread, which does not keep the process alive."""
    stop, future = Stop(), Future[_Value]()
    context = copy_context()
    context.run(current_stop.set, stop)

    def fulfill() -> None:
        try:
            future.set_result(work())
        except BaseException as exc:  # noqa: BLE001 - raised in the thread of the caller
            future.set_exception(exc)

    threading.Thread(target=context.run, args=(fulfill,), name="gta-bench", daemon=True).start()
    return stop, future


def _describe_stop(future: Future[Any]) -> str:
    """Say what is safe, once the work has ended or its time to end is over."""
    if not future.done():
        return word_for_python(f"Interrupted, but the work has not ended yet. {_SAFE}")
    failure = future.exception()
    return "Interrupted when the work was done." if failure is None else str(failure)


def _is_loop_running() -> bool:
    # A function of its own, so that failures of the call do not have this exception as context.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
