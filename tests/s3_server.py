"""A server that speaks S3 on loopback, and the environment in which clients find it."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer

BUCKET = "runs"


class S3Server:
    """What it holds outlasts a stop, as a store outlasts a broken line to it."""

    def __init__(self) -> None:
        self.delay = 0.0  # seconds that every write takes
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.start()
        self.port = self._server.get_host_and_port()[1]

    def start(self) -> None:
        """Answer, at the same address as before."""
        self._server.start()

    def stop(self) -> None:
        """Refuse connections."""
        self._server.stop()
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)

    @property
    def environment(self) -> dict[str, str]:
        """What a client of the bucket needs; two attempts, for tests of a broken line."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_MAX_ATTEMPTS": "2",
        }


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server with the empty bucket, and this process as its client.

    Both sides remember: the server's data and the client's connections are the process's.
    """
    from s3fs import S3FileSystem  # type: ignore[import-untyped]

    from gta_bench.runs import store

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = S3Server()
    reset = Request(f"http://127.0.0.1:{server.port}/moto-api/reset", method="POST")
    urlopen(reset).close()
    S3FileSystem.clear_instance_cache()
    store._filesystem.cache_clear()  # it knows the address of an earlier server
    answer = DomainDispatcherApplication.__call__

    def answer_slowly(app: DomainDispatcherApplication, environ: dict[str, Any], start: Any) -> Any:
        if environ["REQUEST_METHOD"] == "PUT":
            time.sleep(server.delay)
        return answer(app, environ, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DomainDispatcherApplication, "__call__", answer_slowly)
        for name, value in server.environment.items():
            patch.setenv(name, value)
        S3FileSystem().mkdir(BUCKET)
        yield server
    server.stop()
