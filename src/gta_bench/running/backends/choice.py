"""Which backend a command asks for."""

from collections.abc import Iterator
from contextlib import contextmanager

from gta_bench.running.backends.backend import INLINE, Backend
from gta_bench.running.backends.processes import Processes


@contextmanager
def open_backend(workers: int | None, cluster: str | None) -> Iterator[Backend]:
    """The backend for the block; what it started ends with it."""
    backend = _chosen(workers, cluster)
    try:
        yield backend
    finally:
        backend.close()


def _chosen(workers: int | None, cluster: str | None) -> Backend:
    if cluster is not None:
        # Ray is large, and belongs to an extra.
        from gta_bench.running.backends.ray_tasks import RayTasks

        return RayTasks(cluster, workers)
    return INLINE if workers is None else Processes(workers)
