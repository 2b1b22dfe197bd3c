"""Excel workbooks: every sheet, values and formulas, merged cells."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, NamedTuple

from pydantic import Base64Bytes, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver
from gta_bench.content.office import count_parts, open_office
from gta_bench.content.tables import format_csv

MOST_CELLS = 200_000
LARGEST_GRID = 1_000_000
CellType = Literal["text", "number", "truth", "date", "error", "empty"]


class SheetCell(NamedTuple):
    """A cell that is not empty, counted from 1; dates are ISO 8601, errors such as `#DIV/0!`.

    A formula that no program has calculated yet has the type `empty`. `shown` is what the sheet
    displays, if that is more than the value: a date in its format, a number with its unit.
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
    """One sheet; `cells` are ordered by row, `rows` and `columns` include the last of them.

    `hidden_columns` are ranges; the cells of hidden rows and columns are among `cells`.
    """

    name: str
    hidden: bool
    rows: int
    columns: int
    cells: tuple[SheetCell, ...]
    merged: tuple[str, ...]
    hidden_rows: tuple[int, ...] = ()
    hidden_columns: tuple[tuple[int, int], ...] = ()

    @property
    def formulas(self) -> tuple[SheetCell, ...]:
        """The cells with a formula."""
        return tuple(cell for cell in self.cells if cell.formula is not None)

    @property
    def errors(self) -> tuple[SheetCell, ...]:
        """The cells that show an error."""
        return tuple(cell for cell in self.cells if cell.type == "error")

    @property
    def full(self) -> bool:
        """Whether `lines` includes empty rows; in a huge sparse sheet it does not."""
        return self.rows * self.columns <= LARGEST_GRID

    def lines(self, *, as_shown: bool = False) -> Iterator[list[str]]:
        """Yield the rows, all of the same length; a formula without a value is shown itself.

        If the grid would be huge because the cells are far apart, empty rows are left out.
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
        text += format_csv(self.lines())
        if self.formulas:
            pairs = [f"{cell.address} {cell.formula}" for cell in self.formulas]
            text += "\nFormulas:\n" + "\n".join(pairs) + "\n"
        if self.merged:
            text += f"\nMerged cells: {', '.join(self.merged)}\n"
        return text


@dataclass(frozen=True, slots=True)
class XlsxContent:
    """A workbook. `charts` and `pictures` are only counted.

    `cut` means that there are more cells than were read. `stale` means that the workbook asks to
    be recalculated when it is opened, so its stored values may be useless.
    """

    sheets: tuple[Sheet, ...]
    cut: bool
    stale: bool = False
    charts: int = 0
    pictures: int = 0

    def as_text(self) -> str:
        """Every sheet as CSV under a heading."""
        text = "\n".join(sheet.as_text() for sheet in self.sheets)
        count = sum(len(sheet.cells) for sheet in self.sheets)
        return f"{text}\n[Only the first {count} cells were read.]\n" if self.cut else text


@dataclass(frozen=True, slots=True)
class ChangedBook:
    """The reply of the jail: a workbook without stored values."""

    data: Base64Bytes


DRIVER = Driver("xlsx", "The xlsx reader", ("openpyxl",), TypeAdapter(XlsxContent))
CHANGER = Driver("xlsx_change", "The xlsx writer", ("openpyxl",), TypeAdapter(ChangedBook))


async def read_xlsx(data: bytes, jail: Jail) -> XlsxContent:
    """Read a workbook. Raises ToolError if it is not a workbook, is broken, or is too large."""
    parts = await open_office(data, "xlsx")
    book = await DRIVER.read(jail, data, most_cells=MOST_CELLS)
    return replace(
        book,
        charts=count_parts(parts, "xl/charts/chart"),
        pictures=count_parts(parts, "xl/media/"),
    )


async def change_cells(data: bytes, jail: Jail, change: Mapping[str, float]) -> bytes:
    """Return a copy of a workbook with these numbers in cells such as `Input!B2`.

    Its formulas have no values until a program calculates them. Raises ToolError if the workbook
    is broken or has no such sheet.
    """
    await open_office(data, "xlsx")
    return (await CHANGER.read(jail, data, change=dict(change))).data
