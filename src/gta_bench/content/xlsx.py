"""Excel workbooks: every sheet, values and formulas, merged cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

from pydantic import TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver
from gta_bench.content.office import count_parts, open_office
from gta_bench.content.tables import csv_text

MOST_CELLS = 200_000
LARGEST_GRID = 1_000_000
CellType = Literal["text", "number", "truth", "date", "error", "empty"]


class SheetCell(NamedTuple):
    """A cell that holds something, counted from 1; dates are ISO 8601, errors as `#DIV/0!`.

    A formula that no program has calculated yet has the type `empty`. `shown` is what a reader of
    the sheet sees, where that is more than the value: a date in its format, a number with its unit.
    """

    row: int
    column: int
    value: str
    type: CellType
    formula: str | None
    shown: str = ""

    @property
    def address(self) -> str:
        """The cell's name, such as `B3`."""
        letters, rest = "", self.column
        while rest:
            rest, letter = divmod(rest - 1, 26)
            letters = chr(ord("A") + letter) + letters
        return f"{letters}{self.row}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet; `cells` come row by row, `rows` and `columns` reach to the last of them."""

    name: str
    hidden: bool
    rows: int
    columns: int
    cells: tuple[SheetCell, ...]
    merged: tuple[str, ...]

    @property
    def formulas(self) -> tuple[SheetCell, ...]:
        """The cells that are calculated."""
        return tuple(cell for cell in self.cells if cell.formula is not None)

    @property
    def errors(self) -> tuple[SheetCell, ...]:
        """The cells that show an error."""
        return tuple(cell for cell in self.cells if cell.type == "error")

    @property
    def full(self) -> bool:
        """Whether its lines are all its rows; else empty ones are left out."""
        return self.rows * self.columns <= LARGEST_GRID

    def lines(self, *, as_shown: bool = False) -> Iterator[list[str]]:
        """The sheet as rows of equal length; a formula without a value stands for itself.

        Where the cells lie so far apart that the grid would be huge, empty rows are left out.
        """
        full = self.full
        expected = 1
        for number, cells in groupby(self.cells, key=lambda cell: cell.row):
            if full:
                yield from ([""] * self.columns for _ in range(expected, number))
            expected = number + 1
            line: list[str] = []
            for cell in cells:
                line += [""] * (cell.column - 1 - len(line))
                line.append((as_shown and cell.shown) or cell.value or cell.formula or "")
            yield line + [""] * (self.columns - len(line)) if full else line

    def as_text(self) -> str:
        """The sheet as CSV, then its formulas and merged cells."""
        hidden = ", hidden" if self.hidden else ""
        text = f"# Sheet {self.name!r} ({self.rows} rows, {self.columns} columns{hidden})\n"
        text += csv_text(self.lines())
        if self.formulas:
            pairs = [f"{cell.address} {cell.formula}" for cell in self.formulas]
            text += "\nFormulas:\n" + "\n".join(pairs) + "\n"
        if self.merged:
            text += f"\nMerged cells: {', '.join(self.merged)}\n"
        return text


@dataclass(frozen=True, slots=True)
class Workbook:
    """What the parser in the jail replies; `cut` if there were more cells than are read.

    It is `stale` if it asks to be calculated when it is opened: its values may be of no use.
    """

    sheets: tuple[Sheet, ...]
    cut: bool
    stale: bool


@dataclass(frozen=True, slots=True)
class XlsxContent:
    """A workbook; `charts` and `pictures` are counted only, `stale` as in `Workbook`."""

    sheets: tuple[Sheet, ...]
    cut: bool
    charts: int
    pictures: int
    stale: bool = False

    def as_text(self) -> str:
        """Every sheet as CSV under a heading."""
        text = "\n".join(sheet.as_text() for sheet in self.sheets)
        count = sum(len(sheet.cells) for sheet in self.sheets)
        return f"{text}\n[Only the first {count} cells were read.]\n" if self.cut else text


DRIVER = Driver("xlsx", "The xlsx reader", ("openpyxl",), TypeAdapter(Workbook))


async def read_xlsx(data: bytes, jail: Jail) -> XlsxContent:
    """Read a workbook; ToolError if it is none, broken, or too much."""
    parts = await open_office(data, "xlsx")
    book = await DRIVER.read(jail, data, most_cells=MOST_CELLS)
    return XlsxContent(
        sheets=book.sheets,
        cut=book.cut,
        charts=count_parts(parts, "xl/charts/chart"),
        pictures=count_parts(parts, "xl/media/"),
        stale=book.stale,
    )
