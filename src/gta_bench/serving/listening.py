"""The app behind a port: uvicorn, with a time limit on headers, which it does not have itself."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from gta_bench.errors import EnvironmentProblem
from gta_bench.serving.gate import App
from gta_bench.serving.limits import ServerLimits


def guarded_protocol(limits: ServerLimits) -> type[asyncio.Protocol]:
    """HTTP/1.1 for uvicorn where a connection must send its headers in time.

    When there are too many connections the one that has been silent longest is closed, so
    connections that send nothing cannot keep others out.
    """
    silent: dict[H11Protocol, asyncio.TimerHandle] = {}

    class GuardedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_headers()
            if len(self.connections) > limits.connections:
                next(iter(silent)).transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._headers_came()
            elif self not in silent and not self.transport.is_closing():
                self._expect_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            self._headers_came()
            super().connection_lost(exc)

        def _expect_headers(self) -> None:
            silent[self] = self.loop.call_later(limits.header_seconds, self.transport.abort)

        def _headers_came(self) -> None:
            timer = silent.pop(self, None)
            if timer is not None:
                timer.cancel()

    return GuardedProtocol


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening address, or one line that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends small answers at once only where it is.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
    except OSError as exc:
        taken.close()
        raise EnvironmentProblem(
            f"Cannot listen on {host} port {port}: {exc.strerror}; choose another with --port."
        ) from exc
    return taken


class _Server(uvicorn.Server):
    """Ends on a signal as uvicorn does, but lets its caller clean up: it sends no second one."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.handle_exit, number, None)
        except (RuntimeError, ValueError):  # not in the main thread: whoever started it ends it
            pass
        yield


class _Guest(uvicorn.Server):
    """A server inside another program's event loop: signals are that program's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(
    app: App, limits: ServerLimits, *, guest: bool = False, **options: Any
) -> uvicorn.Server:
    """A server that is started with `await server.serve(sockets=[…])`; a guest heeds no signal."""
    config = uvicorn.Config(
        app,
        http=guarded_protocol(limits),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        **options,
    )
    return (_Guest if guest else _Server)(config)
