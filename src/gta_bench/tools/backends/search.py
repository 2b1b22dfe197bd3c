"""Web search services: Serper, SearXNG and Tavily."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gta_bench.tools.http import EXCERPT, FIRST_DELAY, RemoteServer, fetch_body

TIMEOUT = 10.0  # seconds for each attempt
FIX = "Check the key, the account's credit and the backend's address in gta.toml."
LATER = "Try again later, or choose another backend in `[tools.GoogleSearch]` of gta.toml."


class Hit(NamedTuple):
    """One result: a title and a text."""

    title: str
    text: str


class SearchReply(BaseModel):
    """A part of a service's reply; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SerperAnswer(SearchReply):
    """The box above the results."""

    answer: str | None = None
    snippet: str | None = None
    snippetHighlighted: str | list[str] | None = None


class SerperGraph(SearchReply):
    """Facts about a person, place or thing."""

    title: str | None = None
    type: str | None = None
    description: str | None = None
    attributes: Mapping[str, JsonValue] = {}


class SerperHit(SearchReply):
    """One result."""

    title: str | None = None
    snippet: str | None = None
    attributes: Mapping[str, JsonValue] = {}


class SerperReply(SearchReply):
    """A reply of Serper."""

    answerBox: SerperAnswer | None = None
    knowledgeGraph: SerperGraph | None = None
    organic: tuple[SerperHit, ...] = ()


class PlainHit(SearchReply):
    """One result of SearXNG or Tavily."""

    title: str | None = None
    content: str | None = None


class SearxngReply(SearchReply):
    """A reply of SearXNG; `answers` are texts, or objects in newer versions."""

    answers: tuple[str | Mapping[str, JsonValue], ...] = ()
    results: tuple[PlainHit, ...]


class TavilyReply(SearchReply):
    """A reply of Tavily."""

    answer: str | None = None
    results: tuple[PlainHit, ...]


@dataclass(frozen=True)
class SearchService(ABC):
    """A service at an address; `first_delay` is the delay before the second attempt, in seconds."""

    url: str
    key: str | None = None
    first_delay: float = FIRST_DELAY
    timeout: float = TIMEOUT

    @property
    def name(self) -> str:
        """Return the name for results and messages."""
        return type(self).__name__.lower()

    @abstractmethod
    def request(self, query: str, count: int) -> dict[str, Any]:
        """Return httpx's keyword arguments of a search."""

    @abstractmethod
    def read(self, body: bytes, count: int) -> tuple[Hit, ...]:
        """Return answer boxes first, then at most `count` results."""

    async def search(self, query: str, count: int) -> tuple[Hit, ...]:
        """Return the results of a query; retries if the service is busy."""
        secrets = (self.key,) if self.key else ()
        server = RemoteServer(self.name, FIX, secrets, alternative=LATER)
        body = await fetch_body(
            server,
            seconds=self.timeout,
            first_delay=self.first_delay,
            **self.request(query, count),
        )
        try:
            return self.read(body, count)
        except ValidationError as exc:
            shown = server.redact(body.decode("utf-8", "replace"))[:EXCERPT]
            raise server.explain_settings(f"sent a reply that cannot be read: {shown!r}.") from exc


class Serper(SearchService):
    """google.serper.dev, the service of upstream's tool."""

    def request(self, query: str, count: int) -> dict[str, Any]:
        """A POST; Serper's name for the number of results is `num`."""
        return {
            "method": "POST",
            "url": f"{self.url}/search",
            "json": {"q": query, "num": count},
            "headers": {"X-API-KEY": self.key or ""},
        }

    def read(self, body: bytes, count: int) -> tuple[Hit, ...]:
        """Return answer box, knowledge graph and results as upstream does."""
        reply = SerperReply.model_validate_json(body)
        hits = [_answer(reply.answerBox), _graph(reply.knowledgeGraph)]
        for hit in reply.organic[:count]:
            words = (hit.snippet or "") + _attributes(hit.attributes)
            hits.append(Hit(hit.title or "", words))
        return tuple(hit for hit in hits if hit is not None)


class Searxng(SearchService):
    """A SearXNG instance whose settings allow the format `json`."""

    def request(self, query: str, count: int) -> dict[str, Any]:
        """A GET; SearXNG has no parameter for the number of results."""
        return {
            "method": "GET",
            "url": f"{self.url}/search",
            "params": {"q": query, "format": "json"},
            "headers": _bearer(self.key),
        }

    def read(self, body: bytes, count: int) -> tuple[Hit, ...]:
        """Answers, then results."""
        reply = SearxngReply.model_validate_json(body)
        texts = [a if isinstance(a, str) else str(a.get("answer", "")) for a in reply.answers]
        answers = [Hit("Answer box", words) for words in texts if words]
        return (*answers, *_plain(reply.results, count))


class Tavily(SearchService):
    """api.tavily.com, or a service of the same form."""

    def request(self, query: str, count: int) -> dict[str, Any]:
        """A POST."""
        return {
            "method": "POST",
            "url": f"{self.url}/search",
            "json": {"query": query, "max_results": min(count, 20)},
            "headers": _bearer(self.key),
        }

    def read(self, body: bytes, count: int) -> tuple[Hit, ...]:
        """The answer if there is one, then results."""
        reply = TavilyReply.model_validate_json(body)
        answers = [Hit("Answer box", reply.answer)] if reply.answer else []
        return (*answers, *_plain(reply.results, count))


def _answer(box: SerperAnswer | None) -> Hit | None:
    if box is None:
        return None
    marked = box.snippetHighlighted
    words = (
        box.answer
        or box.snippet
        or (marked if isinstance(marked, str) else "; ".join(marked or ()))
    )
    return Hit("Answer box", words.replace("\n", " ")) if words else None


def _graph(graph: SerperGraph | None) -> Hit | None:
    if graph is None:
        return None
    title = f"{graph.title} knowledge graph" if graph.title else "knowledge graph"
    words = ". ".join(part for part in (graph.type, graph.description) if part)
    return Hit(title, words + _attributes(graph.attributes))


def _attributes(attributes: Mapping[str, JsonValue]) -> str:
    pairs = [
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in attributes.items()
    ]
    return f"({', '.join(pairs)})" if pairs else ""


def _plain(results: tuple[PlainHit, ...], count: int) -> tuple[Hit, ...]:
    return tuple(Hit(hit.title or "", hit.content or "") for hit in results[:count])


def _bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}
