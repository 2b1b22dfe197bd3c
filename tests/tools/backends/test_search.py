import asyncio
import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from gta_bench.errors import GtaError, ToolError, ToolUnavailable
from gta_bench.tools.backends.search import Hit, SearchService, Searxng, Serper, Tavily
from tests.search_server import SearchServer, serving

KEY = "sk-secret-1234"


@pytest.fixture
def server(loopback: None) -> Iterator[SearchServer]:
    with serving() as running:
        yield running


def serper(server: SearchServer, **changes: object) -> Serper:
    options = {"first_delay": 0.01, **changes}
    return Serper(server.url, KEY, **options)  # type: ignore[arg-type]


def search(service: SearchService, query: str = "beer", count: int = 10) -> tuple[Hit, ...]:
    return asyncio.run(service.search(query, count))


class TestSerper:
    def test_the_query_the_number_and_the_key_are_sent(self, server: SearchServer) -> None:
        search(serper(server), "how far is it?", 4)
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("POST", "/search")
        assert json.loads(asked.body) == {"q": "how far is it?", "num": 4}
        assert asked.headers["x-api-key"] == KEY

    def test_box_graph_and_results_come_in_upstreams_words(self, server: SearchServer) -> None:
        server.reply = {
            "searchParameters": {"q": "x"},
            "answerBox": {"snippet": "It is\n7 euros.", "title": "t"},
            "knowledgeGraph": {
                "title": "Regency Cafe",
                "type": "Cafe",
                "description": "Permanently closed",
                "attributes": {"Address": "29 N Lansdowne Ave", "Rooms": 3},
            },
            "organic": [
                {"title": "A", "snippet": "a ...", "attributes": {"Missing": "100g"}},
                {"title": "B", "link": "http://b"},
                {"title": "C", "snippet": "c"},
            ],
        }
        assert search(serper(server), count=2) == (
            Hit("Answer box", "It is 7 euros."),
            Hit(
                "Regency Cafe knowledge graph",
                "Cafe. Permanently closed(Address: 29 N Lansdowne Ave, Rooms: 3)",
            ),
            Hit("A", "a ...(Missing: 100g)"),
            Hit("B", ""),
        )

    @pytest.mark.parametrize(
        ("box", "hits"),
        [
            ({"answer": "42"}, (Hit("Answer box", "42"),)),
            ({"snippetHighlighted": ["a", "b"]}, (Hit("Answer box", "a; b"),)),
            ({"snippetHighlighted": "a"}, (Hit("Answer box", "a"),)),
            ({"title": "only a title"}, ()),
        ],
    )
    def test_the_answer_box_has_several_forms(
        self, server: SearchServer, box: dict[str, object], hits: tuple[Hit, ...]
    ) -> None:
        server.reply = {"answerBox": box}
        assert search(serper(server)) == hits

    def test_no_results_are_no_error(self, server: SearchServer) -> None:
        """Upstream raised a KeyError where `organic` was absent."""
        server.reply = {"searchParameters": {}}
        assert search(serper(server)) == ()


class TestOthers:
    def test_searxng_is_asked_for_json(self, server: SearchServer) -> None:
        server.reply = {
            "answers": ["12", {"answer": "13", "template": "x"}],
            "results": [{"title": "A", "content": "a", "url": "http://a"}, {"title": "B"}],
        }
        hits = search(Searxng(server.url), "two words", 1)
        assert hits == (Hit("Answer box", "12"), Hit("Answer box", "13"), Hit("A", "a"))
        (asked,) = server.asked
        assert asked.method == "GET"
        assert parse_qs(urlsplit(asked.path).query) == {"q": ["two words"], "format": ["json"]}
        assert "authorization" not in asked.headers

    def test_tavily_is_asked_with_a_bearer_key(self, server: SearchServer) -> None:
        server.reply = {"answer": "7", "results": [{"title": "A", "content": "a", "score": 0.9}]}
        assert search(Tavily(server.url, KEY), "q", 50) == (Hit("Answer box", "7"), Hit("A", "a"))
        (asked,) = server.asked
        assert json.loads(asked.body) == {"query": "q", "max_results": 20}
        assert asked.headers["authorization"] == f"Bearer {KEY}"

    def test_a_reply_without_results_is_not_taken_for_none(self, server: SearchServer) -> None:
        server.reply = {"detail": "moved"}
        for service in (Searxng(server.url), Tavily(server.url, KEY)):
            with pytest.raises(ToolUnavailable, match="cannot be read"):
                search(service)


class TestTrouble:
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
    def test_a_busy_service_is_asked_again(self, server: SearchServer, status: int) -> None:
        server.statuses = [status, status]
        server.reply = {"organic": [{"title": "A", "snippet": "a"}]}
        assert search(serper(server)) == (Hit("A", "a"),)
        assert len(server.asked) == 3

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_but_only_three_times(self, server: SearchServer, status: int) -> None:
        server.statuses = [status] * 9
        with pytest.raises(
            ToolUnavailable, match=rf"serper is busy or failing \(status {status}\)"
        ):
            search(serper(server))
        assert len(server.asked) == 3

    def test_a_wish_to_wait_is_heard(self, server: SearchServer) -> None:
        server.statuses = [429]
        server.extra_headers = {"Retry-After": "1"}
        start = time.monotonic()
        search(serper(server))
        assert time.monotonic() - start >= 1

    @pytest.mark.parametrize("wish", ["soon", "-5", "Wed, 21 Oct 2026 07:28:00 GMT"])
    def test_a_wish_that_is_no_number_is_not(self, server: SearchServer, wish: str) -> None:
        server.statuses = [429]
        server.extra_headers = {"Retry-After": wish}
        start = time.monotonic()
        search(serper(server))
        assert time.monotonic() - start < 10

    @pytest.mark.parametrize(
        ("status", "kind", "said"),
        [
            (400, ToolError, "rejected the request"),
            (422, ToolError, "rejected the request"),
            (401, ToolUnavailable, "rejected the key"),
            (402, ToolUnavailable, "rejected the key"),
            (403, ToolUnavailable, "rejected the key"),
            (404, ToolUnavailable, r"at its address \(status 404\)"),
            (301, ToolUnavailable, r"at its address \(status 301\)"),
        ],
    )
    def test_a_refusal_is_typed_and_not_asked_again(
        self, server: SearchServer, status: int, kind: type[GtaError], said: str
    ) -> None:
        server.statuses = [status]
        server.reply = {"message": f"no {KEY}"}
        with pytest.raises(kind, match=said) as caught:
            search(serper(server))
        assert len(server.asked) == 1
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize(
        "reply",
        [b"<html>busy</html>", b"", b"[]", b'{"organic": 5}', b'{"organic": [', b"\xff\xfe"],
    )
    def test_a_reply_that_cannot_be_read_says_how_it_begins(
        self, server: SearchServer, reply: bytes
    ) -> None:
        server.reply = reply
        with pytest.raises(ToolUnavailable, match="sent a reply that cannot be read"):
            search(serper(server))

    def test_a_flood_is_cut_off(self, server: SearchServer) -> None:
        server.reply = b"x" * (5 << 20)
        with pytest.raises(ToolUnavailable, match="more than 4194304 bytes"):
            search(serper(server))

    def test_silence_is_not_waited_for(self, server: SearchServer) -> None:
        server.delay = 0.6
        with pytest.raises(ToolUnavailable, match=r"did not answer within 0\.1 seconds"):
            search(serper(server, timeout=0.1))
        assert len(server.asked) == 3

    def test_a_service_that_is_not_there_is_told(self, loopback: None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        service = Serper(f"http://127.0.0.1:{port}", KEY, first_delay=0.01)
        with pytest.raises(ToolUnavailable, match=r"cannot be reached\. .*another backend"):
            search(service)

    def test_many_searches_run_at_once(self, server: SearchServer) -> None:
        server.delay = 1

        async def together() -> float:
            await serper(server).search("warm", 1)
            start = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for number in range(10):
                    group.create_task(serper(server).search(str(number), 1))
            return time.monotonic() - start

        assert asyncio.run(together()) < 6
