"""Strict stand-ins for the APIs of model providers, on loopback.

Each API is one small class: a pure `check` of a request, in the API's own words, and the forms of
its replies. One server speaks for all of them; what it says is a script of `Reply`s.
"""

import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

from tests.serving import running

Json = dict[str, Any]
# What stands for nothing where an API refuses to be sent nothing; Inspect's word.
NO_CONTENT = "(no content)"


@dataclass(frozen=True)
class Call:
    """A call that the scripted model makes; a text is sent as it is where arguments are text."""

    arguments: Mapping[str, Any] | str
    name: str = "Calculator"

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """What the scripted model says next, in no API's form."""

    text: str = ""
    thought: str = ""
    calls: tuple[Call, ...] = ()
    stop: Literal["end", "cut off", "refused", "malformed"] = "end"


class Refusal(NamedTuple):
    """Why a request is not taken."""

    message: str
    status: int = 400
    code: str | None = None


@dataclass(frozen=True)
class Exchange:
    """A request that was taken, and the blocks of the reply as a client has to send them back."""

    request: Json
    given: Sequence[Json]


Rule = Callable[[Json], Refusal | None]


def first_refusal(request: Json, rules: Iterable[Rule]) -> Refusal | None:
    """What the first rule has against the request."""
    return next((found for rule in rules if (found := rule(request)) is not None), None)


def seal(*parts: object) -> str:
    """A signature that holds for these parts only, so that a stateless check finds changes."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_arguments(text: str) -> Any:
    """The arguments of a call; Inspect sends an empty object back for what is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


class Api(ABC):
    """One provider's API: what it refuses, and how it writes replies and errors."""

    # Inspect's name of a model, and its generation settings and provider's arguments.
    model: ClassVar[str]
    generate: ClassVar[Json] = {}
    args: ClassVar[Json] = {}
    # What follows the server's address in `base_url`, and how the path of a request ends.
    base: ClassVar[str] = ""
    path: ClassVar[str]

    @abstractmethod
    def check(self, request: Json) -> Refusal | None:
        """What the API has against the request; pure."""

    @abstractmethod
    def blocks(self, reply: Reply, number: int) -> list[Json]:
        """The reply in the form in which it is sent, and sent back; `number` makes ids of it."""

    @abstractmethod
    def body(self, reply: Reply, blocks: list[Json], request: Json) -> Json:
        """The whole response."""

    @abstractmethod
    def error(self, refusal: Refusal) -> Json:
        """The response to a request that is refused."""

    @abstractmethod
    def said(self, request: Json) -> list[Json]:
        """Every block of the model that the request sends back, in order."""

    @abstractmethod
    def plain(self, block: Json) -> Json | None:
        """A block without what clients may add, leave out or write differently; None: nothing."""

    def stream(self, body: Json) -> Iterator[tuple[str, Json]]:
        """The response as events, for clients that ask for a stream."""
        raise NotImplementedError(f"{type(self).__name__} does not stream")

    def changes(self, exchanges: Sequence[Exchange]) -> list[str]:
        """Where a request did not send back all that was said before it, unchanged and in order."""
        found = []
        for before, after in pairwise(exchanges):
            expected = self._plain([*self.said(before.request), *before.given])
            sent = self._plain(self.said(after.request))
            if sent and sent != expected:
                found.append(f"expected {json.dumps(expected)}, was sent {json.dumps(sent)}")
        return found

    def _plain(self, blocks: Iterable[Json]) -> list[Json]:
        return [plain for block in blocks if (plain := self.plain(block)) is not None]


@dataclass
class Conversation:
    """What a server is going to say to one who asks, and what it was asked so far.

    A `Refusal` in the script is a failure of the server itself, at that place.
    """

    script: list[Reply | Refusal]
    exchanges: list[Exchange] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def answer(self, api: Api, request: Json) -> tuple[int, Json]:
        """The status and body: the next reply of the script, if the request is legal."""
        refusal = api.check(request)
        if refusal is None and not self.script:
            refusal = Refusal("the script has ended, and more is asked")
        if refusal is not None:
            self.refusals.append(refusal)
            return refusal.status, api.error(refusal)
        reply = self.script.pop(0)
        if isinstance(reply, Refusal):
            return reply.status, api.error(reply)
        blocks = api.blocks(reply, len(self.exchanges) + 1)
        self.exchanges.append(Exchange(request, blocks))
        return 200, api.body(reply, blocks, request)


class StrictServer(ThreadingHTTPServer):
    """Answers legal requests by the script for what they ask, and refuses the others."""

    daemon_threads = True

    def __init__(self, api: Api, scripts: Mapping[str, Sequence[Reply | Refusal]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api
        # By a text that all requests of the conversation have.
        self.conversations = {key: Conversation([*script]) for key, script in scripts.items()}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self.api.base}"

    def answer(self, path: str, request: Json) -> tuple[int, Json]:
        """The status and body for a request."""
        if not path.partition("?")[0].endswith(self.api.path):
            return 404, self.api.error(Refusal(f"there is no {path}", 404))
        if not request.get("tools"):  # asked before the dialogue, whether anybody is there
            ready = Reply("ready")
            return 200, self.api.body(ready, self.api.blocks(ready, 0), request)
        text = json.dumps(request)
        with self.lock:
            key = next(key for key in self.conversations if key in text)
            return self.conversations[key].answer(self.api, request)


@contextmanager
def strict_server(
    api: Api, scripts: Mapping[str, Sequence[Reply | Refusal]]
) -> Iterator[StrictServer]:
    """A server that speaks an API as long as the block lasts."""
    with running(StrictServer(api, scripts)) as server:
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: StrictServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, body = self.server.answer(self.path, request)
        if status == 200 and request.get("stream"):
            events = self.server.api.stream(body)
            text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
            self._send(status, text, "text/event-stream")
        else:
            self._send(status, json.dumps(body), "application/json")

    def _send(self, status: int, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass
