"""Tables: Excel workbooks and CSV files, with exact words on what is left out."""

import asyncio
from itertools import islice

from gta_bench.content.libreoffice import convert, missing_office
from gta_bench.content.needs import require
from gta_bench.content.office import normalized, read_package
from gta_bench.content.tables import csv_text, read_csv
from gta_bench.content.xlsx import Sheet, XlsxContent, read_xlsx
from gta_bench.errors import GtaError
from gta_bench.judging.showing.documents import add_package
from gta_bench.judging.showing.draft import Draft, Subject, left_out, quoted, settled
from gta_bench.judging.showing.pages import add_pages, office_pages

FORMULA_STARTS = ("=", "+", "@")
MOST_BYTES = 8 << 20  # of a CSV file, which takes many times as much in memory


async def show_xlsx(draft: Draft) -> None:
    """Each sheet as a picture, its values, its formulas and their errors."""
    subject = draft.subject
    content, pages, package = await asyncio.gather(
        settled(read_xlsx(subject.data, subject.jail)),
        settled(office_pages(subject)),
        settled(read_package(subject.data)),
    )
    if isinstance(content, GtaError):
        add_pages(draft, pages)
        draft.missed("its cells", content)
    else:
        content = await _calculated(draft, content)
        visible = [sheet.name for sheet in content.sheets if not sheet.hidden and sheet.cells]
        add_pages(draft, pages, noun="sheet", names=visible)
        _add_cells(draft, content)
    add_package(draft, package, content)


async def _calculated(draft: Draft, content: XlsxContent) -> XlsxContent:
    """The workbook with values where it was saved without them, or asks for new ones."""
    formulas = [cell for sheet in content.sheets for cell in sheet.formulas]
    empty = sum(cell.type == "empty" for cell in formulas)
    count = len(formulas) if content.stale else empty
    if not count:
        return content
    computed = await settled(_by_office(draft.subject))
    saved = "saved without values" if empty == count else "saved to be calculated when opened"
    if isinstance(computed, GtaError):
        draft.missed(f"the values of {count:,} formulas that were {saved}", computed)
        return content
    draft.findings.append(
        f"{count:,} formulas were {saved}; LibreOffice calculated the values shown"
    )
    return computed


async def _by_office(subject: Subject) -> XlsxContent:
    """The workbook after a round through LibreOffice, with the formulas as they were spelled."""
    require(missing_office(subject.jail))
    data = normalized(subject.data) or subject.data
    return await read_xlsx(await convert(subject.jail, "book.xlsx", data, to="xlsx"), subject.jail)


def _add_cells(draft: Draft, content: XlsxContent) -> None:
    sheets = content.sheets
    if not draft.pictures:
        draft.probe("sheets", len(sheets))
    draft.probe("hidden sheets", sum(sheet.hidden for sheet in sheets))
    hidden = " ".join(cell.value for sheet in sheets if sheet.hidden for cell in sheet.cells)
    draft.hidden("sheets that are hidden", hidden, shown=True)
    for sheet in sheets[: draft.subject.limits.sheets]:
        draft.probe(
            f"size of {quoted(sheet.name)}", f"{sheet.rows:,} rows, {sheet.columns:,} columns"
        )
    draft.probe("formulas", sum(len(sheet.formulas) for sheet in sheets))
    errors = [
        f"{sheet.name}!{cell.address} {cell.value}" for sheet in sheets for cell in sheet.errors
    ]
    draft.listed("formula errors", errors)
    draft.probe("charts", content.charts)
    draft.probe("pictures", content.pictures)
    if content.cut:
        count = sum(len(sheet.cells) for sheet in sheets)
        draft.cut.append(f"only the first {count:,} cells of the workbook were read")
    most = draft.subject.limits.sheets
    for sheet in sheets[:most]:
        _add_sheet(draft, sheet)
    if len(sheets) > most:
        draft.cut.append(left_out("sheet", most + 1, len(sheets), how="shown as text"))


def _add_sheet(draft: Draft, sheet: Sheet) -> None:
    limits = draft.subject.limits
    lines = [line[: limits.columns] for line in islice(sheet.lines(as_shown=True), limits.rows)]
    hidden = ", hidden" if sheet.hidden else ""
    head = f"# Sheet {sheet.name!r} ({sheet.rows:,} rows, {sheet.columns:,} columns{hidden})\n"
    formulas = [f"{cell.address} {cell.formula}" for cell in sheet.formulas[: limits.formulas]]
    below = f"\nFormulas:\n{chr(10).join(formulas)}\n" if formulas else ""
    below += f"\nMerged cells: {', '.join(sheet.merged)}\n" if sheet.merged else ""
    draft.text(head + csv_text(lines) + below + "\n", what=f"sheet {quoted(sheet.name)}")
    place = f" of sheet {quoted(sheet.name)}"
    if not sheet.full:
        draft.cut.append(f"empty rows{place} are left out")
    _cut_table(
        draft,
        rows=sheet.rows,
        columns=sheet.columns,
        place=place,
        shown=_last_row(sheet, limits.rows),
    )
    count = len(sheet.formulas)
    if count > limits.formulas:
        draft.cut.append(left_out("formula", limits.formulas + 1, count, place=place, how="listed"))


def _last_row(sheet: Sheet, most: int) -> int:
    """The last row that is shown of a sheet."""
    if sheet.full:
        return most
    filled = list(islice(dict.fromkeys(cell.row for cell in sheet.cells), most))
    return filled[-1]


def _cut_table(draft: Draft, *, rows: int, columns: int, place: str, shown: int = 0) -> None:
    limits = draft.subject.limits
    shown = shown or limits.rows
    if rows > shown:
        draft.cut.append(left_out("row", shown + 1, rows, place=place))
    if columns > limits.columns:
        draft.cut.append(left_out("column", limits.columns + 1, columns, place=place))


async def show_csv(draft: Draft) -> None:
    """The first rows and columns, and the table's measures."""
    content = await settled(asyncio.to_thread(read_csv, draft.whole_lines(MOST_BYTES)))
    if isinstance(content, GtaError):
        draft.missed("its rows", content)
        return
    limits = draft.subject.limits
    widths = {len(row) for row in content.rows if row}
    columns = max(widths, default=0)
    draft.probe("rows", len(content.rows))
    draft.probe("columns", columns)
    draft.probe("encoding", content.encoding)
    draft.probe("separator", content.separator)
    if len(widths) > 1:
        draft.findings.append(f"rows have different numbers of cells: {min(widths)} to {columns}")
    formulas = sum(cell.startswith(FORMULA_STARTS) for row in content.rows for cell in row)
    if formulas:
        draft.probe("cells that a spreadsheet would take for formulas", formulas)
    draft.text(csv_text(row[: limits.columns] for row in content.rows[: limits.rows]), what="rows")
    _cut_table(draft, rows=len(content.rows), columns=columns, place="")
