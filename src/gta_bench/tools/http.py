"""HTTP for tools: certificates, retries, and errors that name the server and the next step."""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from gta_bench.confine.limits import MIB
from gta_bench.errors import GtaError, ToolError, ToolUnavailable

MOST_BYTES = 4 * MIB
ATTEMPTS = 3
FIRST_DELAY, LONGEST_DELAY = 0.5, 8.0  # seconds
BUSY = frozenset({408, 425, 429})
UNFIT = frozenset({400, 413, 414, 422})  # faults of the request itself
EXCERPT = 200


@cache
def certificates() -> ssl.SSLContext:
    """Return the trusted certificates; blocks on the first call, which is slow."""
    return httpx.create_ssl_context()


class RetryLater(Exception):
    """A failed attempt that may succeed later.

    `error` is raised after the last attempt; `delay` is what the server asked for, in seconds.
    """

    def __init__(self, error: GtaError, delay: float = 0.0) -> None:
        self.error = error
        self.delay = delay
        super().__init__(str(error))


def retry_policy(*, attempts: int, first_delay: float, longest_delay: float) -> AsyncRetrying:
    """Return a tenacity policy: `await policy(function)` retries while RetryLater is raised."""
    backoff = wait_exponential(multiplier=first_delay, max=longest_delay) + wait_random(
        0, first_delay / 4
    )

    def wait(state: RetryCallState) -> float:
        return max(backoff(state), min(_last_failure(state).delay, longest_delay))

    def give_up(state: RetryCallState) -> None:
        raise _last_failure(state).error

    return AsyncRetrying(
        stop=stop_after_attempt(attempts),
        wait=wait,
        retry=retry_if_exception_type(RetryLater),
        retry_error_callback=give_up,
    )


def _last_failure(state: RetryCallState) -> RetryLater:
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, RetryLater)
    return failure


def read_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of a Retry-After header; 0 for a date or anything else."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server that a tool calls: its name in messages, and how to fix its settings.

    `secrets` are removed from every message. With `alternative`, a server that is down or busy
    raises ToolUnavailable with that next step instead of ToolError.
    """

    name: str
    fix: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    alternative: str = ""

    def redact(self, text: str) -> str:
        """Return the text without keys, even if the server repeats one."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def explain_outage(self, problem: str) -> GtaError:
        """Return the error for a server that does not work at the moment."""
        message = f"{self.name} {problem}"
        if self.alternative:
            return ToolUnavailable(message, fix=self.alternative)
        return ToolError(message)

    def explain_settings(self, problem: str) -> ToolUnavailable:
        """Return the error for a server whose settings need a fix."""
        return ToolUnavailable(f"{self.name} {problem}", fix=self.fix)

    def explain_status(self, status: int, body: bytes) -> GtaError:
        """Return the error for a reply with a status other than success."""
        message = self.redact(_read_message(body))[:EXCERPT]
        detail = f"(status {status})." + (f" The server's message: {message}" if message else "")
        if is_busy(status):
            return self.explain_outage(f"is busy or failing {detail}")
        if status in (401, 402, 403):
            return self.explain_settings(f"rejected the key {detail}")
        if status in (404, 405) or 300 <= status < 400:
            return self.explain_settings(f"does not offer this service at its address {detail}")
        if self.alternative and status not in UNFIT:
            return self.explain_outage(f"rejected the request {detail}")
        return ToolError(f"{self.name} rejected the request {detail}")

    def explain_size(self, most_bytes: int) -> GtaError:
        """Return the error for a reply above the size limit."""
        return self.explain_outage(f"sent more than {most_bytes} bytes, which is the limit.")


def is_busy(status: int) -> bool:
    """Return whether a request with that status may succeed later."""
    return status in BUSY or status >= 500


def _read_message(body: bytes) -> str:
    """Return the server's own explanation as one line; empty if there is none, or a web page."""
    text = body[: 16 * EXCERPT].decode("utf-8", "replace")
    if text.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
        return ""
    try:
        found = json.loads(text)
        while isinstance(found, dict):
            found = found.get("error") or found.get("message") or found.get("detail") or ""
        text = str(found)
    except ValueError:
        pass
    return " ".join(text.split())


async def fetch_body(
    server: RemoteServer,
    *,
    seconds: float,
    attempts: int = ATTEMPTS,
    first_delay: float = FIRST_DELAY,
    longest_delay: float = LONGEST_DELAY,
    **request: Any,
) -> bytes:
    """Send a request, described by httpx's keyword arguments, and return the body of the reply.

    Retries a server that is busy, late or unreachable. `seconds` limits each attempt.
    """

    async def attempt() -> bytes:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(seconds),
                httpx.AsyncClient(verify=verify, timeout=seconds) as client,
                client.stream(**request) as response,
            ):
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise server.explain_size(MOST_BYTES)
        except (TimeoutError, httpx.TimeoutException):
            late = server.explain_outage(f"did not answer within {seconds:g} seconds.")
            raise RetryLater(late) from None
        except httpx.InvalidURL:
            raise server.explain_settings("has an invalid address.") from None
        except httpx.ConnectError as exc:
            explain = server.explain_outage if server.alternative else server.explain_settings
            raise RetryLater(explain("cannot be reached.")) from exc
        except httpx.TransportError as exc:
            broken = server.explain_outage(f"cannot be reached ({type(exc).__name__}).")
            raise RetryLater(broken) from exc
        if response.is_success:
            return bytes(body)
        error = server.explain_status(response.status_code, bytes(body))
        if is_busy(response.status_code):
            raise RetryLater(error, read_retry_after(response.headers))
        raise error

    verify = await asyncio.to_thread(certificates)
    request["headers"] = {**request.get("headers", {}), "accept-encoding": "identity"}
    policy = retry_policy(attempts=attempts, first_delay=first_delay, longest_delay=longest_delay)
    return await policy(attempt)
