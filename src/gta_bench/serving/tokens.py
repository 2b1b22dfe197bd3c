"""Tokens of the tool server: one for each run, and one derived from it for each workspace.

A workspace's token gives access to that workspace only, so a harness that is measured may have it.
It is computed from the run's token, so it does not have to be stored.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from gta_bench.errors import UsageError

SHORTEST = 20


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """A run and its token; `id` is safe for logs and folder names."""

    id: str
    token: str = field(repr=False)

    def workspace_token(self, workspace: str) -> str:
        """Return the token for one workspace of this run."""
        return hmac.new(
            self.token.encode(), f"workspace:{workspace}".encode(), "sha256"
        ).hexdigest()


class RunTokens:
    """The runs that may use a server."""

    def __init__(self, tokens: Iterable[str]) -> None:
        # Looked up by digest, so that the time of a lookup reveals nothing about a token.
        self._runs: dict[str, TokenHolder] = {}
        for token in tokens:
            _check(token)
            self._runs[_digest(token)] = TokenHolder(_digest(token)[:12], token)

    def run(self, token: str) -> TokenHolder | None:
        """Return the run that a token belongs to, if any."""
        return self._runs.get(_digest(token))


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def _check(token: str) -> None:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"A token of the tool server needs {SHORTEST} or more printable ASCII characters "
            'without blanks. Make one with `python -c "import secrets; '
            'print(secrets.token_urlsafe(32))"`.'
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
