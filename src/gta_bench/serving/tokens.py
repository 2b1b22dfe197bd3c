"""Who may do what: a token for each run, and one derived from it for each workspace.

A workspace's token opens that workspace and nothing else, so it can be given to a harness that
is being measured. It is computed from the run's token, so nothing has to be kept for it.
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
    """Whoever holds a run's token; `id` is fit for logs and folder names."""

    id: str
    token: str = field(repr=False)

    def workspace_token(self, workspace: str) -> str:
        """The token that opens one workspace of this run."""
        return hmac.new(
            self.token.encode(), f"workspace:{workspace}".encode(), "sha256"
        ).hexdigest()


class RunTokens:
    """The runs that a server serves."""

    def __init__(self, tokens: Iterable[str]) -> None:
        # Looked up by digest: how long a lookup takes says nothing about a token.
        self._runs = {
            _digest(token): TokenHolder(_digest(token)[:12], _checked(token)) for token in tokens
        }

    def run(self, token: str) -> TokenHolder | None:
        """The run whose token that is."""
        return self._runs.get(_digest(token))


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def same(given: str, wanted: str) -> bool:
    """Whether two tokens are equal, in a time that says nothing about them."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _checked(token: str) -> str:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"A token of the tool server needs {SHORTEST} or more printable ASCII characters "
            'without blanks; make one with `python -c "import secrets; '
            'print(secrets.token_urlsafe(32))"`.'
        )
    return token


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
