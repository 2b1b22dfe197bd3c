"""Where the parts of a run are evaluated: this process, a pool of processes, or tasks on Ray.

A worker that is free takes the next item. No backend loses work silently: an item whose process or
node is lost is started again, and the first failure ends the rest and is raised.
"""

import errno
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing import (
    AuthenticationError,
    active_children,
    current_process,
    get_context,
    parent_process,
    resource_tracker,
)
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gta_bench.errors import INTERRUPTED, EnvironmentProblem, GtaError, UsageError, WorkFailed
from gta_bench.packages import require_packages
from gta_bench.running.leases import RETRIES, LeaseSource
from gta_bench.runs.store import temp_full_hint
from gta_bench.settings import bind_ray_to_loopback, quiet_ray

# Must be importable in the process that does the work.
WorkFunction = Callable[[Any], None]
Tick = Callable[[], object]
# Seconds between two looks at what is running.
PAUSE = 0.5
# Seconds that an interrupted worker has to close what it opened.
PATIENCE = 20.0
# Seconds without an answer of a cluster's head; after 60, Ray ends this process without a word.
HEAD_PATIENCE = 40.0
# Items that a Ray worker handles before it is replaced, which ends whatever it leaks.
MAX_CALLS = 128
UNGUARDED = (
    "Workers import the script that starts them, and this import failed: put the script's work "
    'below `if __name__ == "__main__":`.'
)


class Call(Protocol):
    """Calls a method of an object that another process may hold."""

    def __call__(self, method: str, *args: Any) -> Any:
        """Return what the method returns."""


class SharedObject:
    """An object for all workers, of which one is served at a time."""

    def __init__(self, value: object) -> None:
        self._value = value
        self._lock = threading.Lock()

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the object."""
        with self._lock:
            return getattr(self._value, method)(*args)


class Backend(Protocol):
    """Runs a function on many items; `places` is how many items it runs at once."""

    name: str
    places: int

    def run(self, work: WorkFunction, items: LeaseSource[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items; the first failure ends the rest and is raised.

        An item whose process was lost is started again, so `work` must continue what it finds.
        """

    def share(self, value: object) -> AbstractContextManager[Call]:
        """Yield a function that calls methods of `value` from any worker, for use in the block."""

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
        return ItemFailure(f"{exc}{temp_full_hint()}", exc.exit_code)
    except OSError as exc:
        return ItemFailure(explain_os_error(exc), 3)
    return None


def explain_os_error(exc: OSError) -> str:
    """Describe an error of the operating system in one line."""
    where = f"{exc.filename}: " if exc.filename else ""
    full = " Free some disk space." if exc.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"{where}{exc.strerror or exc}.{full or temp_full_hint()}"


class Inline:
    """This process, one item after the other."""

    name = "inline"
    places = 1

    def run(self, work: WorkFunction, items: LeaseSource[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items in turn; failures are raised unchanged."""
        while (item := items.take()) is not None:
            work(item)
            items.finish(item)
            tick()

    @contextmanager
    def share(self, value: object) -> Iterator[Call]:
        """Call the methods directly."""
        yield SharedObject(value).call

    def close(self) -> None:
        """Nothing was started."""


INLINE = Inline()


class Answering(AbstractContextManager["Answering"]):
    """Answers calls of methods of a value from other processes of this machine."""

    def __init__(self, value: object) -> None:
        self._shared = SharedObject(value)
        self._key = secrets.token_bytes(32)
        self._listener = Listener(backlog=128, authkey=self._key)
        self.address = str(self._listener.address)
        self.call: Call = RemoteCall(self.address, self._key)
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                caller = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                continue
            except OSError:  # the listener was closed
                return
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: Connection) -> None:
        with caller, suppress(EOFError, OSError):
            while True:
                caller.send(self._shared.call(*caller.recv()))


class RemoteCall:
    """Calls a method in the process that started this one, over one connection."""

    def __init__(self, address: str, key: bytes) -> None:
        self._address, self._key = address, key

    def __call__(self, method: str, *args: Any) -> Any:
        """Return what the method returns."""
        with _calling:
            if self._address not in _connections:
                _connections[self._address] = Client(self._address, authkey=self._key)
            connection = _connections[self._address]
            connection.send((method, *args))
            return connection.recv()


_calling = threading.Lock()
# Any: its type has another name on Windows.
_connections: dict[str, Any] = {}


class Processes:
    """A pool of freshly spawned local processes, reused for many items."""

    name = "processes"

    def __init__(self, places: int) -> None:
        self.places = places
        self._pool: ProcessPoolExecutor | None = None
        # Child processes that are not workers of the pool.
        self._others = active_children()
        self._workers: set[BaseProcess] = set()

    def run(self, work: WorkFunction, items: LeaseSource[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items; if a process was killed, go on with a new pool."""
        running: dict[Future[ItemFailure | None], Any] = {}
        while not self._work_off(work, items, running, at_once, tick):
            self._end()
            # One that was killed has a negative code, and the first one's end kills the others.
            if any((worker.exitcode or 0) > 0 for worker in self._workers):
                raise UsageError(UNGUARDED)
            for item in running.values():
                items.give_back(item)
            running.clear()

    @contextmanager
    def share(self, value: object) -> Iterator[Call]:
        """Answer the workers' calls in threads of this process."""
        with Answering(value) as answering:
            yield answering.call

    def close(self) -> None:
        """Stop the processes."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _work_off(
        self,
        work: WorkFunction,
        items: LeaseSource[Any],
        running: dict[Future[ItemFailure | None], Any],
        at_once: int,
        tick: Tick,
    ) -> bool:
        """Work on the items; False if a process was killed, with which all others end."""
        try:
            while True:
                while len(running) < at_once and (item := items.take()) is not None:
                    try:
                        running[self._submit(work, item)] = item
                    except BrokenProcessPool:
                        items.give_back(item)
                        raise
                if not running:
                    return True
                done, _ = wait(running, timeout=PAUSE, return_when=FIRST_COMPLETED)
                tick()
                for future in done:
                    failure = future.result()
                    items.finish(running.pop(future))
                    if failure is not None:
                        raise failure.error()
        except BrokenProcessPool:
            return False
        except BaseException:
            self._end(running)
            raise

    def _submit(self, work: WorkFunction, item: Any) -> Future[ItemFailure | None]:
        """Submit an item to the pool, which starts its processes as needed.

        They inherit a mask that blocks interrupts until they can handle them.
        """
        with _block_interrupts():
            if self._pool is None:
                self._others = active_children()
                self._workers = set()
                self._pool = ProcessPoolExecutor(
                    self.places, mp_context=get_context("spawn"), initializer=_begin_worker
                )
            submitted = self._pool.submit(_interruptible, work, item)
            self._workers |= {one for one in active_children() if one not in self._others}
            return submitted

    def _end(self, running: Iterable[Future[ItemFailure | None]] = ()) -> None:
        """Interrupt every worker, and kill it when its work has ended, or does not end in time.

        A second Ctrl-C kills them at once. What a worker opened is closed with its work, and the
        end of an interpreter would take seconds.
        """
        pool, self._pool = self._pool, None
        if pool is None:
            return
        workers = self._workers

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
            wait(running, timeout=PATIENCE)
            for worker in workers:
                worker.kill()
                worker.join()
        finally:
            if is_main:
                signal.signal(signal.SIGINT, before)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, also for processes that start in it.

    Windows cannot: there a worker that is interrupted while it starts ends with a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    # The start of multiprocessing's tracker would unblock them again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# Whether this worker was interrupted between two items, or before the first one.
_interrupted = threading.Event()


def refuse_import_by_worker() -> None:
    """End this process if it is a worker that is importing the script which started it.

    multiprocessing has no public name for this state, in which it refuses to start processes, too.
    """
    if getattr(current_process(), "_inheriting", False):
        sys.exit(UNGUARDED)


def _begin_worker() -> None:
    """Make a worker end with its parent, however that ends, so that no unit is run twice.

    It leaves the terminal's process group: Ctrl-C reaches the parent, which interrupts it once.
    """
    signal.signal(signal.SIGINT, lambda *_: _interrupted.set())
    if sys.platform != "win32":
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _interruptible(work: WorkFunction, item: Any) -> ItemFailure | None:
    """Let an interrupt end the work, but not the worker, which the pool ends itself.

    One that came before, while the worker was importing the work, counts as well.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if _interrupted.is_set():
            raise KeyboardInterrupt
        return run_guarded(work, item)
    except KeyboardInterrupt:
        return ItemFailure("Interrupted.", INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, before)


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
        self._head = _Head(ray.get_runtime_context().gcs_address)
        cores = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        self.places = places or max(1, cores)

    def run(self, work: WorkFunction, items: LeaseSource[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items, at most `at_once` at a time even if the cluster grows."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=MAX_CALLS)(run_in_folder)
        shared = ray.put(work)
        running: dict[Any, Any] = {}
        try:
            while True:
                while len(running) < at_once and (item := items.take()) is not None:
                    running[task.remote(str(Path.cwd()), shared, item)] = item
                if not running:
                    return
                done, _ = ray.wait([*running], timeout=PAUSE)
                self._head.check()
                tick()
                for one in done:
                    failure = ray.get(one)
                    items.finish(running.pop(one))
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
            self._end(running)

    def _end(self, running: Collection[Any]) -> None:
        """End tasks that are not done.

        The head ends the workers of a command that leaves. Without a head, tasks must be canceled,
        which aborts the command if one of them is about to finish (ray-project/ray#54738).
        """
        if self._head.is_lost:
            for one in running:
                self._ray.cancel(one, force=True)
        elif running:
            self.close()

    @contextmanager
    def share(self, value: object) -> Iterator[Call]:
        """Hold the value in an actor beside the command, which Ray starts again if it is lost."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray = self._ray
        node = ray.get_runtime_context().get_node_id()
        beside = NodeAffinitySchedulingStrategy(node, soft=True)
        actor = ray.remote(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=beside
        )(SharedObject).remote(value)
        try:
            yield partial(_call_actor, actor)
        finally:
            # Without a head this would wait until Ray ends the process, and the actor with it.
            if ray.is_initialized() and not self._head.is_lost:
                ray.kill(actor)

    def close(self) -> None:
        """Disconnect from the cluster, and stop it if it was started here."""
        self._ray.shutdown()


def _call_actor(actor: Any, method: str, *args: Any) -> Any:
    import ray

    return ray.get(actor.call.remote(method, *args))


class _Head:
    """Notices that the head of a cluster is lost, while there is time to say so."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._answered = time.monotonic()
        self.is_lost = False

    def check(self) -> None:
        """Raise if the head has not answered for too long."""
        try:
            socket.create_connection(self._address, timeout=2).close()
            self._answered = time.monotonic()
        except OSError as exc:
            if time.monotonic() - self._answered > HEAD_PATIENCE:
                self.is_lost = True
                host, port = self._address
                raise EnvironmentProblem(
                    f"The head of the Ray cluster at {host}:{port} is lost ({exc}). Start the "
                    "cluster again."
                ) from exc


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
