"""An app behind a port of loopback while a test needs it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The app's address; the server is ended afterwards."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", ws="none", lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([taken],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        taken.close()
