from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.settings import Settings
from gta_bench.tools.backends.search import Hit
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.operation.google_search import GoogleSearch, format_hits
from tests.search_server import SearchServer, serving
from tests.tools.calling import call, error


@pytest.fixture
def server(loopback: None) -> Iterator[SearchServer]:
    with serving() as running:
        yield running


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "space", {})


def equipment(
    *, backend: str | None = None, url: str | None = None, key_env: str | None = None, **keys: str
) -> Equipment:
    written: dict[str, object] = {}
    if url is not None:
        written["endpoints"] = {"search": {"url": url, "key_env": key_env}}
    if backend is not None or url is not None:
        endpoint = None if url is None else "search"
        written["tools"] = {"GoogleSearch": {"backend": backend, "endpoint": endpoint}}
    return Equipment(Settings.model_validate(written), key=keys.get)


class TestAvailability:
    def test_serper_is_the_default_and_needs_its_key(self) -> None:
        state = GoogleSearch(equipment()).check()
        assert state == Unavailable("The key of serper is not set.", "export SERPER_API_KEY=…")
        assert GoogleSearch(equipment(SERPER_API_KEY="k")).check() == Available("serper")

    def test_tavily_needs_its_own_key(self) -> None:
        state = GoogleSearch(equipment(backend="tavily", SERPER_API_KEY="k")).check()
        assert isinstance(state, Unavailable)
        assert state.fix == "export TAVILY_API_KEY=…"

    def test_searxng_needs_an_address_and_no_key(self) -> None:
        state = GoogleSearch(equipment(backend="searxng")).check()
        assert isinstance(state, Unavailable)
        assert 'backend = "searxng"' in state.fix
        state = GoogleSearch(equipment(backend="searxng", url="http://127.0.0.1:1")).check()
        assert state == Available("searxng")

    def test_an_endpoint_brings_its_own_key(self) -> None:
        chosen = {"url": "http://127.0.0.1:1", "key_env": "MY_KEY"}
        state = GoogleSearch(equipment(**chosen)).check()
        assert state == Unavailable("The key of serper is not set.", "export MY_KEY=…")
        assert GoogleSearch(equipment(**chosen, MY_KEY="k")).check() == Available("serper")

    def test_an_unknown_backend_is_refused_with_the_known_ones(self) -> None:
        state = GoogleSearch(equipment(backend="bing")).check()
        assert isinstance(state, Unavailable)
        assert state.reason == "'bing' is not a backend of GoogleSearch."
        assert '"serper", "tavily", "searxng"' in state.fix

    def test_a_call_without_a_key_says_how_to_get_one(self, workspace: Workspace) -> None:
        with pytest.raises(ToolUnavailable, match="export SERPER_API_KEY"):
            call("GoogleSearch", workspace, equipment(), query="x")


class TestCalls:
    def test_the_first_results_are_numbered_blocks(
        self, server: SearchServer, workspace: Workspace
    ) -> None:
        server.reply = {
            "answerBox": {"answer": "599 USD"},
            "organic": [{"title": f"T{n}", "snippet": f"S{n}"} for n in range(9)],
        }
        chosen = equipment(url=server.url, key_env="K", K="k")
        result = call("GoogleSearch", workspace, chosen, query="price", k=2)
        assert result.text == "1 - Answer box: 599 USD\n\n2 - T0: S0\n\n3 - T1: S1"
        assert result.backend == "serper"

    @pytest.mark.parametrize("backend", ["searxng", "tavily"])
    def test_other_services_give_the_same_form(
        self, server: SearchServer, workspace: Workspace, backend: str
    ) -> None:
        server.reply = {"results": [{"title": "T", "content": "S"}]}
        chosen = equipment(backend=backend, url=f"{server.url}/")
        result = call("GoogleSearch", workspace, chosen, query="price")
        assert (result.text, result.backend) == ("1 - T: S", backend)

    def test_trouble_of_the_service_is_not_an_answer(
        self, server: SearchServer, workspace: Workspace
    ) -> None:
        server.statuses = [403]
        with pytest.raises(ToolUnavailable, match="rejected the key"):
            call("GoogleSearch", workspace, equipment(url=server.url), query="x")
        server.statuses = [400]
        said = error("GoogleSearch", workspace, equipment(url=server.url), query="x")
        assert said == "GoogleSearch: serper rejected the request (status 400)."

    @pytest.mark.parametrize("k", [0, -1, 101, "many"])
    def test_a_number_that_makes_no_sense_is_refused(
        self, workspace: Workspace, k: int | str
    ) -> None:
        said = error("GoogleSearch", workspace, equipment(SERPER_API_KEY="k"), query="x", k=k)
        assert "argument 'k'" in said

    def test_an_empty_query_is_refused(self, workspace: Workspace) -> None:
        said = error("GoogleSearch", workspace, equipment(SERPER_API_KEY="k"), query="  ")
        assert said == "GoogleSearch: the query is empty."


class TestListing:
    def test_it_is_cut_where_upstream_cuts_it(self) -> None:
        hits = [Hit("title", "words " * 50)] * 10
        text = format_hits(hits)
        assert len(text) == 1503
        assert text.endswith("...")

    def test_a_short_one_is_whole(self) -> None:
        assert (
            format_hits([Hit("A", "a"), Hit("", "b"), Hit("C", "")]) == "1 - A: a\n\n2 - b\n\n3 - C"
        )

    def test_no_results_give_the_text_of_upstream(self) -> None:
        assert format_hits([]) == "No good Google Search Result was found"
