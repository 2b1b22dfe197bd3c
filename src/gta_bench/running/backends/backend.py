"""Where the parts of a run are evaluated: this process, a pool of processes, or tasks on Ray.

No backend loses work silently: an item whose process or node is lost is started again, and the
first failure ends the rest and is raised.
"""

import errno
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gta_bench.errors import INTERRUPTED, EnvironmentProblem, GtaError, UsageError, WorkFailed
from gta_bench.packages import require_packages
from gta_bench.settings import bind_ray_to_loopback, quiet_ray

# Must be importable in the process that does the work.
WorkFunction = Callable[[Any], None]
Tick = Callable[[], object]
# Seconds between two looks at what is running.
PAUSE = 0.5
# How often work is started again after its process or machine was lost.
RETRIES = 5
# Seconds that an interrupted worker has to close what it opened.
PATIENCE = 20.0
# Items that a Ray worker handles before it is replaced, which ends whatever it leaks.
MAX_CALLS = 16


class Backend(Protocol):
    """Runs a function on many items; `places` is how many items it runs at once."""

    name: str
    places: int

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items; the first failure ends the rest and is raised.

        An item whose process was lost is started again, so `work` must continue what it finds.
        """

    def close(self) -> None:
        """Stop everything that was started."""


class ItemFailure(NamedTuple):
    """A failure to report without a traceback, in a form that can be sent between processes."""

    message: str
    exit_code: int

    def error(self) -> GtaError:
        """Return the exception to raise in this process."""
        return WorkFailed(self.message, exit_code=self.exit_code)


def run_guarded(work: WorkFunction, item: Any) -> ItemFailure | None:
    """Work on one item; return failures meant for the user, and let bugs raise."""
    try:
        work(item)
    except GtaError as exc:
        return ItemFailure(str(exc), exc.exit_code)
    except OSError as exc:
        return ItemFailure(explain_os_error(exc), 3)
    return None


def explain_os_error(exc: OSError) -> str:
    """Describe an error of the operating system in one line."""
    where = f"{exc.filename}: " if exc.filename else ""
    full = " Free some disk space." if exc.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"{where}{exc.strerror or exc}.{full}"


class Inline:
    """This process, one item after the other."""

    name = "inline"
    places = 1

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items in turn; failures are raised unchanged."""
        for item in items:
            work(item)
            tick()

    def close(self) -> None:
        """Nothing was started."""


INLINE = Inline()


class Processes:
    """A pool of freshly spawned local processes, reused for many items."""

    name = "processes"

    def __init__(self, places: int) -> None:
        self.places = places
        self._pool: ProcessPoolExecutor | None = None
        # Child processes that are not workers of the pool.
        self._others = active_children()

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items; if a process was killed, go on with a new pool."""
        left = list(items)
        for _ in range(RETRIES + 1):
            try:
                self._work_off(work, left, at_once, tick)
                return
            except BrokenProcessPool:
                self._end()
        raise EnvironmentProblem(
            f"Worker processes were killed {RETRIES + 1} times, most likely because memory ran "
            "out: use fewer --workers."
        )

    def close(self) -> None:
        """Stop the processes."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _work_off(self, work: WorkFunction, left: list[Any], at_once: int, tick: Tick) -> None:
        """Work on the items and remove each from the list when it is finished."""
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
        """Submit an item to the pool, which starts its processes as needed.

        They inherit a mask that blocks interrupts until they can handle them.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            if self._pool is None:
                self._others = active_children()
                self._pool = ProcessPoolExecutor(
                    self.places, mp_context=get_context("spawn"), initializer=_begin_worker
                )
            return self._pool.submit(_interruptible, work, item)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _end(self) -> None:
        """Interrupt every worker, then kill those that do not end in time.

        A second Ctrl-C kills them at once.
        """
        pool, self._pool = self._pool, None
        if pool is None:
            return
        workers = [child for child in active_children() if child not in self._others]

        def kill(*_: object) -> None:
            for worker in workers:
                worker.kill()

        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, kill) if is_main else None
        try:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                # It may be ending at this very moment.
                with suppress(ProcessLookupError):
                    if worker.is_alive() and worker.pid is not None:
                        os.kill(worker.pid, signal.SIGINT)
            for worker in workers:
                worker.join(PATIENCE)
                worker.kill()
                worker.join()
        finally:
            if is_main:
                signal.signal(signal.SIGINT, before)


def _begin_worker() -> None:
    """Make a worker end with its parent, however that ends, so that no unit is run twice.

    It leaves the terminal's process group: Ctrl-C reaches the parent, which interrupts it once.
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
    """Let an interrupt end the work, but not the worker, which the pool ends itself."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run_guarded(work, item)
    except KeyboardInterrupt:
        return ItemFailure("Interrupted.", INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class RayTasks:
    """Tasks on a Ray cluster, one core each; by default as many as the cluster has cores.

    Ray itself restarts a task whose worker or node is lost. The cluster's token stays in force:
    nothing here turns its authentication off.
    """

    name = "ray"

    def __init__(self, address: str, places: int | None = None) -> None:
        connect(address)
        import ray

        self._ray = ray
        cores = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        self.places = places or max(1, cores)

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items, at most `at_once` at a time even if the cluster grows."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=MAX_CALLS)(run_in_folder)
        shared = ray.put(work)
        waiting = deque(items)
        running: list[Any] = []
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    running.append(task.remote(str(Path.cwd()), shared, waiting.popleft()))
                done, running = ray.wait(running, timeout=PAUSE)
                tick()
                for one in done:
                    failure = ray.get(one)
                    if failure is not None:
                        raise failure.error()
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError as exc:
            raise EnvironmentProblem(
                f"Ray lost work after {RETRIES} retries, or the cluster is gone "
                f"({type(exc).__name__}). Check the cluster with `ray status`."
            ) from exc
        finally:
            # An evaluation swallows a plain cancellation.
            for one in running:
                ray.cancel(one, force=True)

    def close(self) -> None:
        """Disconnect from the cluster, and stop it if it was started here."""
        self._ray.shutdown()


def run_in_folder(folder: str, work: WorkFunction, item: Any) -> ItemFailure | None:
    """Work in the command's folder if this machine has it, so that relative paths still work."""
    if Path(folder).is_dir():
        os.chdir(folder)
    return run_guarded(work, item)


def connect(address: str) -> None:
    """Connect to a cluster; `auto` is the one on this machine, which is started if needed."""
    require_packages("--cluster", "ray", extra="cluster")
    import ray

    quiet_ray()
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address.startswith(("127.0.0.1:", "localhost:")):
        stay_on_loopback()
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as exc:
        if address != "auto":
            raise EnvironmentProblem(
                f"No Ray cluster answers at {address}: {str(exc).splitlines()[0]}"
            ) from exc
        stay_on_loopback()
        ray.init(address="local", include_dashboard=False, **quiet)
    except ValueError as exc:
        raise UsageError(f"--cluster {address!r}: {exc}") from exc


def stay_on_loopback() -> None:
    """Keep a cluster on this machine's loopback address, even if Ray is imported already.

    The environment variable is for the processes that Ray starts; this process read it at import.
    Ray has no public setting; tests/running/backends/test_backend.py checks the private one.
    """
    bind_ray_to_loopback()
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = False


@contextmanager
def open_backend(workers: int | None, cluster: str | None) -> Iterator[Backend]:
    """Yield the backend that the options ask for, and stop it after the block."""
    backend: Backend = INLINE
    if cluster is not None:
        backend = RayTasks(cluster, workers)
    elif workers is not None:
        backend = Processes(workers)
    try:
        yield backend
    finally:
        backend.close()
