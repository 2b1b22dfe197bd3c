"""GoogleSearch: the first results of a web search, in upstream's text form."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.tools.backends.search import Hit, SearchService, Searxng, Serper, Tavily
from gta_bench.tools.contract import (
    Availability,
    Available,
    Equipment,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    text,
)

MOST_CHARACTERS = 1500  # upstream's
NOTHING = "No good Google Search Result was found"  # upstream's words


@dataclass(frozen=True)
class Service:
    """How a backend is reached unless gta.toml says otherwise; `url` None: it must say so."""

    kind: type[SearchService]
    url: str | None
    key: str | None


SERVICES = {
    "serper": Service(Serper, "https://google.serper.dev", "SERPER_API_KEY"),
    "tavily": Service(Tavily, "https://api.tavily.com", "TAVILY_API_KEY"),
    "searxng": Service(Searxng, None, None),
}


class GoogleSearchInput(ToolInput):
    """A query."""

    query: str = Field(description="Search keywords or question to look up.")
    k: int = Field(10, ge=1, le=100, description="Select the first k results")


class GoogleSearch(Tool[GoogleSearchInput]):
    """Asks the configured service; what ran is recorded."""

    name = "GoogleSearch"
    category = "operation"
    description = (
        "The tool can search the input query text from Google and return the related results."
    )
    version = "1"
    input_type = GoogleSearchInput

    def check(self) -> Availability:
        """A known backend, its address and its key; the service is not asked."""
        found = service(self.equipment)
        return Available(found.name) if isinstance(found, SearchService) else found

    async def apply(self, workspace: Workspace, given: GoogleSearchInput) -> Made:
        """Search."""
        found = service(self.equipment)
        if isinstance(found, Unavailable):
            raise ToolUnavailable(found.reason, mend=found.mend)
        query = given.query.strip()
        if not query:
            raise ToolError("GoogleSearch: the query is empty.")
        try:
            hits = await found.search(query, given.k)
        except ToolError as exc:
            raise ToolError(f"GoogleSearch: {exc}") from exc
        return Made((text(listing(hits)),), backend=found.name)


def service(equipment: Equipment) -> SearchService | Unavailable:
    """The service that `[tools.GoogleSearch]` names, or Serper."""
    chosen = equipment.settings.tools.get("GoogleSearch")
    name = (chosen.backend if chosen else None) or "serper"
    known = SERVICES.get(name)
    if known is None:
        choices = ", ".join(f'"{choice}"' for choice in SERVICES)
        return Unavailable(
            f"{name!r} is not a backend of GoogleSearch.",
            f"In `[tools.GoogleSearch]` of gta.toml set `backend` to one of {choices}.",
        )
    endpoint = chosen.endpoint if chosen else None
    if endpoint is None:
        return _with_key(equipment, known, known.url, known.key, name)
    settings = equipment.settings.endpoints[endpoint]
    return _with_key(equipment, known, settings.url, settings.key_env, name)


def _with_key(
    equipment: Equipment, known: Service, url: str | None, variable: str | None, name: str
) -> SearchService | Unavailable:
    if url is None:
        return Unavailable(
            f"The address of {name} is not set.",
            f'In gta.toml: `[endpoints.search]` with `url = "http://…"`, and in '
            f'`[tools.GoogleSearch]` `backend = "{name}"` and `endpoint = "search"`.',
        )
    key = None if variable is None else equipment.key(variable)
    if variable is not None and key is None:
        return Unavailable(f"The key of {name} is not set.", f"export {variable}=…")
    return known.kind(url.rstrip("/"), key)


def listing(hits: Sequence[Hit]) -> str:
    """`1 - title: text` blocks, cut where upstream cuts them."""
    if not hits:
        return NOTHING
    blocks = [f"{number} - {_line(hit)}" for number, hit in enumerate(hits, start=1)]
    whole = "\n\n".join(blocks)
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[:MOST_CHARACTERS]}..."


def _line(hit: Hit) -> str:
    return ": ".join(part for part in hit if part)
