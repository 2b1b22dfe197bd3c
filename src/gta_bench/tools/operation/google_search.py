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
NOTHING = "No good Google Search Result was found"  # upstream's text


@dataclass(frozen=True)
class Service:
    """The default address and key of a backend; without `url`, gta.toml must set one."""

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
    """Asks the configured search service, which the result names as its backend."""

    name = "GoogleSearch"
    category = "operation"
    description = (
        "The tool can search the input query text from Google and return the related results."
    )
    version = "1"
    input_type = GoogleSearchInput

    def check(self) -> Availability:
        found = find_service(self.equipment)
        return Available(found.name) if isinstance(found, SearchService) else found

    async def apply(self, workspace: Workspace, given: GoogleSearchInput) -> Made:
        found = find_service(self.equipment)
        if isinstance(found, Unavailable):
            raise ToolUnavailable(found.reason, fix=found.fix)
        query = given.query.strip()
        if not query:
            raise ToolError("GoogleSearch: the query is empty.")
        try:
            hits = await found.search(query, given.k)
        except ToolError as exc:
            raise ToolError(f"GoogleSearch: {exc}") from exc
        return Made((text(format_hits(hits)),), backend=found.name)


def find_service(equipment: Equipment) -> SearchService | Unavailable:
    """Return the service from `[tools.GoogleSearch]` in gta.toml; default: Serper."""
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
    settings = None if endpoint is None else equipment.settings.endpoints[endpoint]
    url, variable = (settings.url, settings.key_env) if settings else (known.url, known.key)
    if url is None:
        return Unavailable(
            f"The address of {name} is not set.",
            f'In gta.toml, set `url = "http://…"` in `[endpoints.search]`, and '
            f'`backend = "{name}"` and `endpoint = "search"` in `[tools.GoogleSearch]`.',
        )
    key = None if variable is None else equipment.key(variable)
    if variable is not None and key is None:
        return Unavailable(f"The key of {name} is not set.", f"export {variable}=…")
    return known.kind(url.rstrip("/"), key)


def format_hits(hits: Sequence[Hit]) -> str:
    """Return blocks such as `1 - title: text`, cut at upstream's limit."""
    if not hits:
        return NOTHING
    lines = (": ".join(part for part in hit if part) for hit in hits)
    blocks = [f"{number} - {line}" for number, line in enumerate(lines, start=1)]
    whole = "\n\n".join(blocks)
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[:MOST_CHARACTERS]}..."
