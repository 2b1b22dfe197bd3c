"""Work that can be stopped from another thread, as a notebook or a coroutine does.

Python delivers Ctrl-C to the main thread only, where asyncio cancels the main task of the loop that
runs there. Work beside a running event loop has its own thread and its own loops. A `Stop` cancels
the main task of the loop that is running there now, so that both ways end alike.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import anyio
import rich
import rich.console

from gta_bench.errors import UsageError

# Seconds between two looks at what is awaited.
PAUSE = 0.2
_Value = TypeVar("_Value")


class Stop:
    """A request to stop the work of one thread."""

    def __init__(self) -> None:
        self.requested = False
        self._task: asyncio.Task[Any] | None = None
        self._lock = threading.Lock()

    def request(self) -> None:
        """Cancel the loop that runs now; work between two loops ends at the next `check_stop`."""
        with self._lock:
            self.requested = True
            if self._task is not None:
                # A loop that has just been closed needs no cancellation.
                with suppress(RuntimeError):
                    self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def cancel_on_request(self, task: asyncio.Task[Any]) -> None:
        """Cancel this task, the main one of its loop, when the stop is requested."""
        with self._lock:
            self._task = task
            if self.requested:
                task.cancel()


current_stop: ContextVar[Stop | None] = ContextVar("stop", default=None)
# Whether Inspect is used here, or in something that was called from there.
_is_working: ContextVar[bool] = ContextVar("is_working", default=False)
_turn = threading.Lock()


def check_stop() -> None:
    """Raise KeyboardInterrupt if this work is to stop."""
    stop = current_stop.get()
    if stop is not None and stop.requested:
        raise KeyboardInterrupt


def run_async(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine in a loop of its own, as `asyncio.run` does, so that it can be stopped."""
    try:
        return asyncio.run(_stoppable(work))
    except asyncio.CancelledError:
        check_stop()
        raise


def run_apart(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine in a thread with a loop of its own, as a notebook has a loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@contextmanager
def run_beside(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Run a coroutine in a thread with a loop of its own, and cancel it at the end of the block.

    Its error is raised there, before one of the block, which may only follow from it.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run() -> None:
        with suppress(asyncio.CancelledError, Exception):
            loop.run_until_complete(task)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
        if not task.cancelled():
            task.result()


async def _stoppable(work: Coroutine[Any, Any, _Value]) -> _Value:
    stop_this_loop()
    return await work


def stop_this_loop() -> None:
    """Let a stop cancel the loop that runs here, from whichever of its tasks this is called."""
    stop = current_stop.get()
    if stop is None:
        return
    known = {one.id: one for one in anyio.get_running_tasks()}
    main = anyio.get_current_task()
    while main.parent_id in known:
        main = known[main.parent_id]
    stop.cancel_on_request(next(task for task in asyncio.all_tasks() if id(task) == main.id))


@contextmanager
def use_engine() -> Iterator[None]:
    """Use Inspect in the block, which works once at a time in a process, as in a plain program.

    In a notebook, Inspect would require ipywidgets, which a run without a display does not use,
    change asyncio for the whole process, and show errors of units as output of the cell. Anywhere,
    it silences rich and the traceback of a KeyboardInterrupt. It has no settings for this;
    tests/slow/test_interrupts.py checks what is changed here.
    """
    if _is_working.get():
        raise UsageError(
            "A run cannot start inside another run of the same process. Start it after that one, "
            "or in a process of its own."
        )
    while not _turn.acquire(timeout=PAUSE):
        check_stop()
    token = _is_working.set(True)
    try:
        with _keep_terminal():
            yield
    finally:
        _is_working.reset(token)
        _turn.release()


@contextmanager
def _keep_terminal() -> Iterator[None]:
    """Hide a notebook from Inspect in the block, and undo afterwards what it does to the output."""
    from inspect_ai._util import platform

    console = rich.get_console()
    shown, hook = dict(vars(console)), sys.excepthook
    notebook, jupyter = platform.running_in_notebook, rich.console._is_jupyter
    platform.running_in_notebook = _unless_working(notebook)
    rich.console._is_jupyter = _unless_working(jupyter)
    rich.reconfigure(quiet=True)
    try:
        yield
    finally:
        platform.running_in_notebook, rich.console._is_jupyter = notebook, jupyter
        console.__dict__ = shown
        sys.excepthook = hook


def _unless_working(check: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: not _is_working.get() and check()
