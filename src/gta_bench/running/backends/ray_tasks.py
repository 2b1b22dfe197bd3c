"""Tasks on Ray: a cluster that is there, or one that is started on this machine.

A task whose worker or node is lost is begun again by Ray. The cluster's token stays in force:
nothing here turns its authentication off.
"""

import logging
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.packages import require_packages
from gta_bench.running.backends.backend import (
    PAUSE,
    RETRIES,
    ItemFailure,
    Tick,
    WorkFunction,
    guarded,
)
from gta_bench.settings import keep_ray_here, quiet_ray

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

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items, never on more than `at_once`, whatever the cluster grows to."""
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=MAX_CALLS)(work_in)
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


def work_in(folder: str, work: WorkFunction, item: Any) -> ItemFailure | None:
    """The work in the command's folder, where the machine has it: relative names mean the same."""
    if Path(folder).is_dir():
        os.chdir(folder)
    return guarded(work, item)


def connect(address: str) -> None:
    """Join the cluster of that address; `auto` is the one of this machine, started if need be."""
    require_packages("--cluster", "ray", extra="cluster")
    import ray

    quiet_ray()
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address.startswith(("127.0.0.1:", "localhost:")):
        stay_on_loopback()
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as exc:
        if address != AUTO:
            raise EnvironmentProblem(
                f"No Ray cluster answers at {address}: {str(exc).splitlines()[0]}"
            ) from exc
        stay_on_loopback()
        ray.init(address="local", include_dashboard=False, **quiet)
    except ValueError as exc:
        raise UsageError(f"--cluster {address!r}: {exc}") from exc


def stay_on_loopback() -> None:
    """A cluster of this machine alone, also where Ray was imported before that was known.

    The variable is for the processes that it starts; here it was read when Ray was imported.
    """
    keep_ray_here()
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = False
