"""Requests to a tool server: asked again while it does not answer, then given up as such."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from tenacity import AsyncRetrying

from gta_bench.errors import EnvironmentProblem, ToolServerFailure
from gta_bench.serving.choice import TOKEN_VARIABLE
from gta_bench.tools.http import RetryLater, certificates, read_retry_after, retry_policy

# 500 too: it is what a proxy says when the server behind it ended under the request.
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long a client asks; about 15 seconds until it gives a server up."""

    attempts: int = 6
    first_delay: float = 0.5
    longest_delay: float = 8
    connect_seconds: float = 10
    seconds: float = 1200  # more than the slowest tool may take

    def policy(self) -> AsyncRetrying:
        """Return the retries as a tenacity policy."""
        return retry_policy(
            attempts=self.attempts,
            first_delay=self.first_delay,
            longest_delay=self.longest_delay,
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """One server and a connection to it; close it in the event loop that it was used in."""

    url: str
    patience: Patience
    client: httpx.AsyncClient = field(repr=False)

    @classmethod
    def to(cls, url: str, token: str | None, patience: Patience | None = None) -> "Exchange":
        """A server at an address."""
        chosen = patience or Patience()
        headers = {"accept-encoding": "identity"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(chosen.seconds, connect=chosen.connect_seconds)
        client = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, verify=certificates()
        )
        return cls(url, chosen, client)

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        final: frozenset[int] = frozenset(),
        **body: Any,
    ) -> httpx.Response:
        """The server's answer; raises ToolServerFailure where there is none worth the name.

        Every request that is sent here may be sent twice. `final` are statuses that are answers.
        """

        async def attempt() -> httpx.Response:
            try:
                response = await self.client.request(method, path, headers=headers, **body)
            except httpx.HTTPError as exc:
                raise RetryLater(self._silent(str(exc) or type(exc).__name__)) from exc
            if response.status_code in final:
                return response
            if response.status_code in AGAIN:
                silent = self._silent(f"status {response.status_code}")
                raise RetryLater(silent, read_retry_after(response.headers))
            return self._checked(response)

        return await self.patience.policy()(attempt)

    def _silent(self, problem: str) -> ToolServerFailure:
        return ToolServerFailure(
            f"The tool server at {self.url} does not answer ({problem}). "
            "Start it, or check its log, and run the same command again."
        )

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.status_code in (401, 403):
            raise EnvironmentProblem(
                f"The tool server at {self.url} refuses the token; set {TOKEN_VARIABLE} to the one "
                "that `gta tools serve` was started with."
            )
        if response.status_code >= 500:
            raise ToolServerFailure(
                f"The tool server at {self.url} failed (status {response.status_code}); "
                "its log says why."
            )
        return response
