"""A server on loopback that runs in a thread of its own while a test needs it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

Served = TypeVar("Served", bound=BaseServer)


@contextmanager
def running(server: Served) -> Iterator[Served]:
    """The server, answering; ended and closed afterwards."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
