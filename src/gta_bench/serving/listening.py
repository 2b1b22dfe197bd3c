"""uvicorn for the app, with a time limit for headers, which uvicorn itself does not have."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from gta_bench.errors import EnvironmentProblem
from gta_bench.serving.gate import App
from gta_bench.serving.limits import ServerLimits


def make_protocol(limits: ServerLimits) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP/1.1 protocol with a time limit for headers.

    If there are too many connections, the one that has been silent longest is closed, so that
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


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raises EnvironmentProblem if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small replies without delay only if the protocol is given.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
    except OSError as exc:
        taken.close()
        raise EnvironmentProblem(
            f"Cannot listen on {host} port {port}: {exc.strerror}; choose another port with --port."
        ) from exc
    return taken


class _Server(uvicorn.Server):
    """A server that lets its caller clean up after a signal: it does not raise the signal again.

    A guest runs in the event loop of another program, which handles the signals itself.
    """

    guest = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if not self.guest:
            loop = asyncio.get_running_loop()
            # Outside the main thread, where this raises, the caller stops the server.
            with suppress(RuntimeError, ValueError):
                for number in (signal.SIGINT, signal.SIGTERM):
                    loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def make_server(
    app: App, limits: ServerLimits, *, guest: bool = False, **options: Any
) -> uvicorn.Server:
    """Return a server; start it with `await server.serve(sockets=[…])`. A guest ignores signals."""
    config = uvicorn.Config(
        app,
        http=make_protocol(limits),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        **options,
    )
    server = _Server(config)
    server.guest = guest
    return server
