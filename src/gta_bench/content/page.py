"""The source of a web page: its text, headings and tables, without running its scripts."""

from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import LIMITS, Driver
from gta_bench.content.tables import TableRows


@dataclass(frozen=True, slots=True)
class PageContent:
    """The visible text on one line, the headings with their levels, and the tables."""

    text: str = field(repr=False)
    headings: tuple[tuple[int, str], ...]
    tables: tuple[TableRows, ...]


DRIVER = Driver(
    "page",
    "The page reader",
    (),
    TypeAdapter(PageContent),
    replace(LIMITS, wall_seconds=10.0, cpu_seconds=10),
)


async def read_page(markup: str, jail: Jail) -> PageContent:
    """Read the source of a page. Raises ToolError if it is too large or takes too long."""
    return await DRIVER.read(jail, markup.encode("utf-8", "replace"))
