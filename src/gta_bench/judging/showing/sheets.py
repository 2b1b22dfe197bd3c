"""Show Excel workbooks and CSV files, and say exactly what is left out."""

import asyncio
from itertools import islice

from gta_bench.content.libreoffice import convert, missing_office
from gta_bench.content.needs import require
from gta_bench.content.office import normalize_package
from gta_bench.content.tables import format_csv, read_csv
from gta_bench.content.xlsx import Sheet, XlsxContent, read_xlsx
from gta_bench.errors import GtaError
from gta_bench.judging.showing.documents import add_package, read_office
from gta_bench.judging.showing.draft import Draft, Subject, describe_rest, quote, settle
from gta_bench.judging.showing.pages import add_pages

FORMULA_STARTS = ("=", "+", "@")
MOST_BYTES = 8 << 20  # of a CSV file, which takes many times as much memory


async def show_xlsx(draft: Draft) -> None:
    """Show each sheet as a picture, its values, its formulas and their errors."""
    content, pages, package = await read_office(draft.subject, read_xlsx)
    if isinstance(content, GtaError):
        add_pages(draft, pages)
        draft.add_missing("its cells", content)
    else:
        content = await _calculate(draft, content)
        visible = [sheet.name for sheet in content.sheets if not sheet.hidden and sheet.cells]
        add_pages(draft, pages, noun="sheet", names=visible)
        _add_cells(draft, content)
    add_package(draft, package, content)


async def _calculate(draft: Draft, content: XlsxContent) -> XlsxContent:
    """Compute values that the workbook was saved without, or asks to compute when opened."""
    formulas = [cell for sheet in content.sheets for cell in sheet.formulas]
    empty = sum(cell.type == "empty" for cell in formulas)
    count = len(formulas) if content.stale else empty
    if not count:
        return content
    computed = await settle(_calculate_by_office(draft.subject))
    saved = "saved without values" if empty == count else "saved to be calculated when opened"
    if isinstance(computed, GtaError):
        draft.add_missing(f"the values of {count:,} formulas that were {saved}", computed)
        return content
    draft.findings.append(
        f"{count:,} formulas were {saved}; LibreOffice calculated the values shown"
    )
    return computed


async def _calculate_by_office(subject: Subject) -> XlsxContent:
    """Return the workbook as LibreOffice saves it, with its formulas unchanged."""
    require(missing_office(subject.jail))
    data = normalize_package(subject.data) or subject.data
    return await read_xlsx(await convert(subject.jail, "book.xlsx", data, to="xlsx"), subject.jail)


def _add_cells(draft: Draft, content: XlsxContent) -> None:
    sheets = content.sheets
    if not draft.pictures:
        draft.add_fact("sheets", len(sheets))
    draft.add_fact("hidden sheets", sum(sheet.hidden for sheet in sheets))
    hidden = " ".join(cell.value for sheet in sheets if sheet.hidden for cell in sheet.cells)
    draft.add_hidden("sheets that are hidden", hidden, shown=True)
    for sheet in sheets[: draft.subject.limits.sheets]:
        draft.add_fact(
            f"size of {quote(sheet.name)}", f"{sheet.rows:,} rows, {sheet.columns:,} columns"
        )
    draft.add_fact("formulas", sum(len(sheet.formulas) for sheet in sheets))
    errors = [
        f"{sheet.name}!{cell.address} {cell.value}" for sheet in sheets for cell in sheet.errors
    ]
    draft.add_list("formula errors", errors, even_empty=True)
    draft.add_fact("charts", content.charts)
    draft.add_fact("pictures", content.pictures)
    if content.cut:
        count = sum(len(sheet.cells) for sheet in sheets)
        draft.cut.append(f"only the first {count:,} cells of the workbook were read")
    most = draft.subject.limits.sheets
    for sheet in sheets[:most]:
        _add_sheet(draft, sheet)
    if len(sheets) > most:
        draft.cut.append(describe_rest("sheet", most + 1, len(sheets), how="shown as text"))


def _add_sheet(draft: Draft, sheet: Sheet) -> None:
    limits = draft.subject.limits
    lines = [line[: limits.columns] for line in islice(sheet.lines(as_shown=True), limits.rows)]
    hidden = ", hidden" if sheet.hidden else ""
    head = f"# Sheet {sheet.name!r} ({sheet.rows:,} rows, {sheet.columns:,} columns{hidden})\n"
    formulas = [f"{cell.address} {cell.formula}" for cell in sheet.formulas[: limits.formulas]]
    below = f"\nFormulas:\n{chr(10).join(formulas)}\n" if formulas else ""
    below += f"\nMerged cells: {', '.join(sheet.merged)}\n" if sheet.merged else ""
    draft.add_text(head + format_csv(lines) + below + "\n", what=f"sheet {quote(sheet.name)}")
    of, last = f" of sheet {quote(sheet.name)}", limits.rows
    if not sheet.full:
        draft.cut.append(f"empty rows{of} are left out")
        filled = dict.fromkeys(cell.row for cell in sheet.cells)
        last = list(islice(filled, limits.rows))[-1]
    _note_cut(draft, rows=sheet.rows, columns=sheet.columns, of=of, last=last)
    count = len(sheet.formulas)
    if count > limits.formulas:
        first = limits.formulas + 1
        draft.cut.append(describe_rest("formula", first, count, of=of, how="listed"))


def _note_cut(draft: Draft, *, rows: int, columns: int, last: int, of: str = "") -> None:
    """Note the rows after the last one shown, and the columns beyond the limit."""
    most = draft.subject.limits.columns
    if rows > last:
        draft.cut.append(describe_rest("row", last + 1, rows, of=of))
    if columns > most:
        draft.cut.append(describe_rest("column", most + 1, columns, of=of))


async def show_csv(draft: Draft) -> None:
    """Show the first rows and columns of a CSV file, and its size."""
    found = await settle(asyncio.to_thread(read_csv, draft.read_lines(MOST_BYTES)))
    content = draft.take("its rows", found)
    if content is None:
        return
    limits = draft.subject.limits
    widths = {len(row) for row in content.rows if row}
    columns = max(widths, default=0)
    draft.add_fact("rows", len(content.rows))
    draft.add_fact("columns", columns)
    draft.add_fact("encoding", content.encoding)
    draft.add_fact("separator", content.separator)
    if len(widths) > 1:
        draft.findings.append(f"rows have different numbers of cells: {min(widths)} to {columns}")
    formulas = sum(cell.startswith(FORMULA_STARTS) for row in content.rows for cell in row)
    if formulas:
        draft.add_fact("cells that a spreadsheet would take for formulas", formulas)
    draft.add_text(
        format_csv(row[: limits.columns] for row in content.rows[: limits.rows]), what="rows"
    )
    _note_cut(draft, rows=len(content.rows), columns=columns, last=limits.rows)
