"""Checks of every request: its token, the rate, the size and speed of its body; then a log line.

Plain ASGI around the whole application, so that the same code guards HTTP routes and MCP, and the
body of a rejected request is not read.
"""

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from typing import Any

from gta_bench.serving.limits import Busy, Rate, ServerLimits
from gta_bench.serving.spaces import Space, Spaces
from gta_bench.serving.tokens import RunTokens, TokenHolder
from gta_bench.serving.wire import CallFailure, FailureKind

Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[_Message]]
Send = Callable[[_Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PUBLIC = frozenset({"/healthz", "/readyz"})
RUN, SPACE = "gta.run", "gta.space"  # keys of the scope, for the handlers
logger = logging.getLogger("gta_bench.serving.access")


class _Refused(Exception):
    """A request that is rejected."""

    def __init__(
        self, status: int, message: str, *, kind: FailureKind = "refused", wait: float | None = None
    ) -> None:
        self.status = status
        self.kind = kind
        self.wait = wait
        super().__init__(message)


class Gate:
    """The application behind its checks."""

    def __init__(
        self, app: App, *, tokens: RunTokens, spaces: Spaces, limits: ServerLimits
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._spaces = spaces
        self._limits = limits
        self._rate = Rate(limits.rate, limits.burst)
        self._uploads = asyncio.Semaphore(limits.uploads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request, pass it on, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        note = _Note(scope, send)
        try:
            await self._pass(scope, receive, note)
        except _Refused as exc:
            await _refuse(exc, note.send)
        finally:
            note.log()

    async def _pass(self, scope: Scope, receive: Receive, note: "_Note") -> None:
        headers = dict(scope["headers"])
        self._admit(scope, headers)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise _Refused(415, "Compressed bodies are not accepted.")
        upload = scope["method"] == "PUT"
        # Also where no body is expected: one that is not read would block its connection forever.
        most = 0 if scope["path"] in PUBLIC else self._limits.body_bytes
        async with self._uploads if upload else nullcontext():
            body = await self._body(
                headers, receive, self._limits.artefact_bytes if upload else most
            )
            note.received = len(body)
            await self._app(scope, _replay(body, receive), note.send)

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Find the run and workspace of a request; a run cannot see workspaces of another one."""
        path = scope["path"]
        if path in PUBLIC:
            return
        kind, _, given = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = given.strip() if kind.lower() == "bearer" else ""
        run = self._tokens.run(token)
        name = _find_workspace(path)
        if name is not None:
            space = self._space(name, token, run)
            scope[SPACE], run = space, space.run
        elif run is None:
            raise _Refused(401, "Send a valid token: `Authorization: Bearer …`.")
        scope[RUN] = run
        try:
            self._rate.take(run.id)
        except Busy as exc:
            raise _Refused(429, str(exc), kind="busy", wait=exc.wait) from exc

    def _space(self, name: str, token: str, run: TokenHolder | None) -> Space:
        space = self._spaces.get(name)
        if run is not None:
            if space is None or space.run.id != run.id:
                raise _Refused(404, "There is no such workspace; it may have been closed.")
            return space
        if space is None or not hmac.compare_digest(token.encode(), space.token.encode()):
            raise _Refused(401, "Send a valid token for this workspace.")
        return space

    async def _body(self, headers: dict[bytes, bytes], receive: Receive, most: int) -> bytes:
        """Return the body; raises _Refused if it is too large or too slow."""
        too_large = _Refused(413, f"The body has more than {most} bytes, which is the limit.")
        stated = headers.get(b"content-length", b"0")
        if not stated.isdigit() or int(stated) > most:
            raise too_large
        parts, size = [], 0
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            async with asyncio.timeout_at(start + self._limits.body_seconds) as limit:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Refused(400, "The body is not complete.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _Refused(
                            413, f"The body has more than {most} bytes, which is the limit."
                        )
                    if not message.get("more_body", False):
                        return b"".join(parts)
                    earned = size / self._limits.slowest_bytes
                    limit.reschedule(start + self._limits.body_seconds + earned)
        except TimeoutError:
            raise _Refused(408, "The body arrived too slowly.") from None


class _Note:
    """The log line of one request; never has a body, a query, a header or a token."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._start = time.perf_counter()
        self._status = 0
        self._sent = 0
        self.received = 0

    async def send(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        else:
            self._sent += len(message.get("body", b""))
        await self._send(message)

    def log(self) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        run, space = self._scope.get(RUN), self._scope.get(SPACE)
        entry = {
            "time": round(time.time(), 3),
            "method": self._scope["method"],
            # The path of a rejected request may be anything, even a token.
            "path": self._scope["path"] if run is not None else None,
            "run": run.id if run is not None else None,
            "workspace": space.id if space is not None else None,
            "status": self._status,
            "received": self.received,
            "sent": self._sent,
            "ms": round((time.perf_counter() - self._start) * 1000, 1),
        }
        logger.info(json.dumps(entry))


def _find_workspace(path: str) -> str | None:
    """Return the workspace ID in a path `/v1/w/ID/…` or `/w/ID/…`."""
    match path.split("/"):
        case ["", "w", name, *_] | ["", "v1", "w", name, *_]:
            return name
    return None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that sends the body that was read already, then what comes after it."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> _Message:
        return messages.pop() if messages else await receive()

    return receive_again


async def _refuse(refused: _Refused, send: Send) -> None:
    failure = CallFailure(kind=refused.kind, message=str(refused))
    headers = [(b"content-type", b"application/json")]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.wait is not None:
        headers.append((b"retry-after", f"{refused.wait:.3f}".encode()))
    else:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    body = failure.model_dump_json().encode()
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
