"""HTML pages from the templates of this package, and the tables that they show.

Everything that is filled in is escaped, and hidden characters in it are shown.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gta_bench.errors import format_count
from gta_bench.records.visible import show_hidden
from gta_bench.reports.tables import Table, short
from gta_bench.web.task_view import score_text

if TYPE_CHECKING:
    # Needs scipy, which the core does not install.
    from gta_bench.reports.estimates import Estimate

DASH: Final = "\N{EN DASH}"


class PageCell(NamedTuple):
    """A text with an optional small line below, a link, and a state such as passed or failed."""

    text: str
    small: str = ""
    href: str = ""
    state: str = ""


class PageTable(NamedTuple):
    """A table with a name for screen readers; the columns in `texts` are left-aligned.

    `parts` has the titles of sections by the index of their first row.
    """

    name: str
    heading: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    texts: tuple[int, ...] = (0,)
    parts: Mapping[int, str] = {}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gta_bench.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(counted=format_count, score=score_text, short=short)
    return environment


def _finalize(value: object) -> object:
    """Show hidden characters of text; markup consists of parts that were filled in before."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else show_hidden(value)


def render(template: str, **values: object) -> str:
    """Fill in a template; a missing value is an error."""
    return _environment().get_template(template).render(values)


def read_asset(name: str) -> str:
    """Return the text of a style sheet or script from the templates folder."""
    return (files("gta_bench.web") / "templates" / name).read_text(encoding="utf-8")


def read_style() -> str:
    """Return the style sheet of every page."""
    return "".join(map(read_asset, ("basics.css", "components.css", "style.css")))


def style_values(*more: str) -> dict[str, str]:
    """Return the style sheet for a page that contains it, and its hash for the page's policy.

    `more` are style sheets of this page.
    """
    style = "".join([read_style(), *map(read_asset, more)])
    # From this package, without any data of a run.
    return {"style": Markup(style), "style_hash": _hash(style)}


def script_values(name: str) -> dict[str, str]:
    """Return the script of a page that contains it, and its hash for the page's policy."""
    script = read_asset(name)
    return {"script": Markup(script), "script_hash": _hash(script)}


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def page_table(name: str, table: Table, texts: Sequence[int] = (0,)) -> PageTable:
    """Convert a table of text."""
    rows = tuple(tuple(PageCell(text) for text in row) for row in table.rows)
    return PageTable(name, table.heading, rows, tuple(texts))


def estimate_cell(found: "Mapping[str, Estimate]", metric: str) -> PageCell:
    """Return a score with its interval below, and its bounds if results are missing."""
    one = found.get(metric)
    if one is None:
        return PageCell(DASH)
    missing = f"; {one.cases} with missing results" if one.bounds is not None else ""
    return PageCell(one.text, f"{one.span}{missing}")


def number_cell(value: float | None) -> PageCell:
    """Return a number with two decimals, or a dash for None."""
    return PageCell(DASH if value is None else f"{value:.2f}")
