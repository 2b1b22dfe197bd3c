"""How records look in Python: a short `repr`, HTML in notebooks, and data frames.

Pages are made in a layer above, so `gta_bench.api` sets the function that renders them.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final

from gta_bench.errors import EnvironmentProblem
from gta_bench.packages import missing_packages

FrameRow = dict[str, Any]
Renderer = Callable[[object], str | None]
LONGEST: Final = 60
_renderers: list[Renderer] = []


class Displayed:
    """Something large that `repr` and `print` describe in a line, and notebooks show as HTML."""

    def describe(self) -> str:
        """What it is, in a line."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.describe()}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str | None:
        """The HTML for a notebook; None shows the text instead."""
        return _renderers[-1](self) if _renderers else None


class Tabular(Displayed):
    """Something that is a table, too."""

    def rows(self) -> list[FrameRow]:
        """Its rows; results tables and data frames use the same names of columns."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Its rows as a data frame of pandas, or of Polars if pandas is not installed."""
        return make_frame(self.rows())


def use_renderer(renderer: Renderer) -> None:
    """Render what is `Displayed` with this function; it returns None for what it cannot show."""
    _renderers[:] = [renderer]


def make_frame(rows: list[FrameRow]) -> Any:
    """Return a data frame of pandas, or of Polars if pandas is not installed."""
    if not missing_packages("pandas"):
        return import_module("pandas").DataFrame(rows)
    if not missing_packages("polars"):
        # All rows decide the types of columns, because the first ones may have no value.
        return import_module("polars").DataFrame(rows, infer_schema_length=None)
    raise EnvironmentProblem(
        "A data frame needs pandas or polars, and neither is installed: pip install pandas"
    )


def shorten(text: str, most: int = LONGEST) -> str:
    """The text in one line, cut to `most` characters.

    >>> shorten("What does the receipt say?", 10)
    'What does…'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def list_numbers(values: Iterable[tuple[str, float | None]]) -> str:
    """Names with numbers of two decimals, for a line.

    >>> list_numbers([("tool_acc", 100.0), ("arg_acc", None)])
    'tool_acc 100.00, arg_acc -'
    """
    return ", ".join(f"{name} {'-' if value is None else f'{value:.2f}'}" for name, value in values)
