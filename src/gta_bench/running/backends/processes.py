"""Processes of this machine, started anew and kept warm for many items."""

import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any

from gta_bench.errors import INTERRUPTED, EnvironmentProblem
from gta_bench.running.backends.backend import (
    PAUSE,
    RETRIES,
    ItemFailure,
    Tick,
    WorkFunction,
    guarded,
)

# Seconds that an interrupted worker has to close what it opened.
PATIENCE = 20.0


class Processes:
    """A pool of so many processes."""

    name = "processes"

    def __init__(self, places: int) -> None:
        self.places = places
        self._pool: ProcessPoolExecutor | None = None

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items; where a process was killed, the pool is made anew and goes on."""
        left = list(items)
        for _ in range(RETRIES + 1):
            try:
                self._work_off(work, left, at_once, tick)
                return
            except BrokenProcessPool:
                self._end()
        raise EnvironmentProblem(
            f"Worker processes were killed {RETRIES + 1} times, most often for want of memory: "
            "try fewer --workers."
        )

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _work_off(self, work: WorkFunction, left: list[Any], at_once: int, tick: Tick) -> None:
        """Take items off the list as they are finished."""
        waiting = deque(left)
        running: dict[Future[ItemFailure | None], Any] = {}
        try:
            while left:
                while waiting and len(running) < at_once:
                    item = waiting.popleft()
                    running[self._submit(work, item)] = item
                done, _ = wait(running, timeout=PAUSE, return_when=FIRST_COMPLETED)
                tick()
                for future in done:
                    failure = future.result()
                    left.remove(running.pop(future))
                    if failure is not None:
                        raise failure.error()
        except BrokenProcessPool:
            raise
        except BaseException:
            self._end()
            raise

    def _submit(self, work: WorkFunction, item: Any) -> Future[ItemFailure | None]:
        """Give an item to the pool, which starts its processes with the first one.

        What they inherit keeps an interrupt away until they can take it.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self.places, mp_context=get_context("spawn"), initializer=_begin_worker
                )
            return self._pool.submit(_interruptible, work, item)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _end(self) -> None:
        """Ask every process to end, and make it end."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        # There is no public way to reach them before Python 3.14.
        workers = list((pool._processes or {}).values())
        with _interrupts_kill(workers):
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                # It may be at its end in this very moment.
                with suppress(ProcessLookupError):
                    if worker.is_alive() and worker.pid is not None:
                        os.kill(worker.pid, signal.SIGINT)
            for worker in workers:
                worker.join(PATIENCE)
                worker.kill()
                worker.join()


@contextmanager
def _interrupts_kill(workers: Sequence[BaseProcess]) -> Iterator[None]:
    """Who presses Ctrl-C again while workers end does not wait for them any longer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def kill(*_: object) -> None:
        for worker in workers:
            worker.kill()

    before = signal.signal(signal.SIGINT, kill)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin_worker() -> None:
    """A worker ends with its parent, however that ended, so that no unit is run by two.

    It leaves the group of the terminal: Ctrl-C reaches the parent, which interrupts it once.
    """
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _interruptible(work: WorkFunction, item: Any) -> ItemFailure | None:
    """An interrupt ends the work and not the waiting for more, which the pool ends itself."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return guarded(work, item)
    except KeyboardInterrupt:
        return ItemFailure("Interrupted.", INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
