"""Tasks on Ray: a cluster that is there, or one that is started on this machine.

A task whose worker or node is lost is begun again by Ray. The cluster's token stays in force:
nothing here turns its authentication off.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

from gta_bench.cluster.backend import PAUSE, RETRIES, Tick, Work, guarded
from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.settings import quiet_ray

# Work that a worker does before it is replaced: what it leaks ends with it.
MAX_CALLS = 16
AUTO = "auto"


class RayTasks:
    """So many tasks at once, each with a core of its own; as many as the cluster has cores."""

    name = "ray"

    def __init__(self, address: str, places: int | None = None) -> None:
        connect(address)
        import ray

        self._ray = ray
        cores = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        self.places = places or max(1, cores)

    def run(self, work: Work, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items, never on more than `at_once`, whatever the cluster grows to."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=MAX_CALLS)(guarded)
        shared = ray.put(work)
        waiting = deque(items)
        running: list[Any] = []
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    running.append(task.remote(shared, waiting.popleft()))
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
                f"Ray lost work for good, after {RETRIES} retries or because the cluster is gone "
                f"({type(exc).__name__}); `ray status` says what the cluster has."
            ) from exc
        finally:
            # An evaluation swallows a plain cancellation.
            for one in running:
                ray.cancel(one, force=True)

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        self._ray.shutdown()


def connect(address: str) -> None:
    """Join the cluster of that address; `auto` is the one of this machine, started if need be."""
    try:
        import ray
    except ImportError as exc:
        raise EnvironmentProblem(
            "--cluster needs Ray: `pip install 'gta-bench[cluster]'`."
        ) from exc
    quiet_ray()
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address.startswith(("127.0.0.1:", "localhost:")):
        _stay_on_loopback()
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as exc:
        if address != AUTO:
            raise EnvironmentProblem(
                f"No Ray cluster answers at {address}: {str(exc).splitlines()[0]}"
            ) from exc
        _stay_on_loopback()
        ray.init(address="local", include_dashboard=False, **quiet)
    except ValueError as exc:
        raise UsageError(f"--cluster {address!r}: {exc}") from exc


def _stay_on_loopback() -> None:
    """Ray takes 127.0.0.1 for the address by which others reach this machine, unless told not to.

    The variable is for the processes that it starts; here it was read when Ray was imported.
    """
    from ray._private import ray_constants

    quiet_ray(loopback=True)
    ray_constants.ENABLE_RAY_CLUSTER = False
