"""One HTTP exchange with a server that tools call: bounded in time, size and number of tries."""

import asyncio
import json
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx
from pydantic import JsonValue

from gta_bench.errors import GtaError, ToolError, ToolUnavailable
from gta_bench.tools.certificates import certificates

logger = logging.getLogger(__name__)

MIB = 1 << 20
BUSY = frozenset({408, 425, 429})
EXCERPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long, how large and how often. `seconds` is one attempt, `total_seconds` all of them."""

    attempts: int = 4
    seconds: float = 120
    total_seconds: float = 300
    connect_seconds: float = 10
    first_delay: float = 0.5
    longest_delay: float = 30
    reply_bytes: int = 4 * MIB
    image_bytes: int = 48 * MIB
    video_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class Server:
    """Who is called: a name for messages, how to mend its settings, and keys to keep secret."""

    name: str
    mend: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def safe(self, text: str) -> str:
        """The text without a key, even where a server repeats it."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


FilePart = tuple[str, bytes, str]  # name, content, media type


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent, as often as needed."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    json: JsonValue = None
    form: Mapping[str, str] | None = None
    files: Mapping[str, FilePart] | Sequence[tuple[str, FilePart]] | None = None


class Fault(NamedTuple):
    """An attempt that failed: what it comes to, and how soon another one makes sense, if ever."""

    error: GtaError
    again: bool = False
    wait: float | None = None


async def exchange(server: Server, request: HttpRequest, bounds: RetryPolicy) -> bytes:
    """The body of the server's answer; ToolError or ToolUnavailable when there is none."""
    clock = asyncio.get_running_loop().time
    end = clock() + bounds.total_seconds
    for attempt in range(1, bounds.attempts + 1):  # pragma: no branch (the last one raises)
        answer = await _attempt(server, request, bounds)
        if isinstance(answer, bytes):
            return answer
        pause = _pause(answer, attempt, bounds)
        if attempt == bounds.attempts or pause is None or clock() + pause > end:
            raise answer.error
        logger.debug("%s: attempt %d failed, next in %.1f s", server.name, attempt, pause)
        await asyncio.sleep(pause)
    raise AssertionError("unreachable")


def _pause(fault: Fault, attempt: int, bounds: RetryPolicy) -> float | None:
    """Seconds until the next attempt; None where there is none.

    A server that asks for more patience than we have is taken at its word.
    """
    if not fault.again:
        return None
    if fault.wait is not None:
        return fault.wait if fault.wait <= bounds.longest_delay else None
    delay = min(bounds.longest_delay, bounds.first_delay * 2.0 ** (attempt - 1))
    return delay * random.uniform(0.8, 1.2)


async def _attempt(server: Server, request: HttpRequest, bounds: RetryPolicy) -> bytes | Fault:
    timeout = httpx.Timeout(bounds.seconds, connect=bounds.connect_seconds)
    context = await asyncio.to_thread(certificates)
    try:
        async with (
            asyncio.timeout(bounds.seconds),
            httpx.AsyncClient(verify=context, timeout=timeout) as client,
            client.stream(
                request.method,
                request.url,
                headers={**request.headers, "accept-encoding": "identity"},
                json=request.json,
                data=request.form,
                files=request.files,
            ) as response,
        ):
            return await _read(server, response, bounds)
    except (TimeoutError, httpx.TimeoutException):
        late = ToolError(f"{server.name} did not answer within {bounds.seconds:g} seconds.")
        return Fault(late, again=True)
    except httpx.InvalidURL:
        reason = f"{server.name} has an unusable address."
        return Fault(ToolUnavailable(reason, mend=server.mend))
    except httpx.TransportError as exc:
        return Fault(_unreachable(server, exc), again=True)


async def _read(server: Server, response: httpx.Response, bounds: RetryPolicy) -> bytes | Fault:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > bounds.reply_bytes:
            return Fault(ToolError(f"{server.name} sent more than {bounds.reply_bytes} bytes."))
    if response.is_success:
        return bytes(body)
    return _refusal(server, response, bytes(body))


def _unreachable(server: Server, exc: httpx.TransportError) -> GtaError:
    if isinstance(exc, httpx.ConnectError):
        return ToolUnavailable(f"{server.name} cannot be reached.", mend=server.mend)
    return ToolError(f"{server.name} broke off the connection ({type(exc).__name__}).")


def _refusal(server: Server, response: httpx.Response, body: bytes) -> Fault:
    status = response.status_code
    said = server.safe(_message(body))
    if status in BUSY or status >= 500:
        error = ToolError(f"{server.name} is not able to answer now (status {status}).{said}")
        return Fault(error, again=True, wait=_retry_after(response))
    if status in (401, 403):
        reason = f"{server.name} refused the key (status {status}).{said}"
        return Fault(ToolUnavailable(reason, mend=server.mend))
    if status in (404, 405) or response.is_redirect:
        reason = f"{server.name} offers no such service (status {status}).{said}"
        return Fault(ToolUnavailable(reason, mend=server.mend))
    return Fault(ToolError(f"{server.name} refused the request (status {status}).{said}"))


def _message(body: bytes) -> str:
    """What the server says about a refusal, in one short line, led by a blank; often nothing."""
    text = body[: 16 * EXCERPT].decode("utf-8", errors="replace")
    try:
        found = json.loads(text)
        while isinstance(found, dict):
            found = found.get("error") or found.get("message") or found.get("detail") or ""
        text = str(found)
    except ValueError:
        pass
    line = " ".join(text.split())
    return f" It says: {line[:EXCERPT]}" if line else ""


def _retry_after(response: httpx.Response) -> float | None:
    """The wait that the server asks for: seconds, or a date."""
    value = response.headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
