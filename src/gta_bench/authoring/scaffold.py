"""`gta task new`: a small task that runs, lints and scores at once, to be replaced by one's own."""

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from gta_bench.datasets.files import TASK_ID
from gta_bench.datasets.folders import TASK_FILE
from gta_bench.errors import UsageError

_Rows = Sequence[Sequence[str | float]]

INPUT: Final[_Rows] = (
    ("Region", "Month", "Amount"),
    ("North", "July", 1820.40),
    ("South", "July", 905.15),
    ("West", "July", 1310.00),
    ("North", "August", 2011.35),
    ("South", "August", 998.60),
    ("West", "August", 1275.50),
)
HEAD: Final = ("Region", "Revenue")
# North + South + West = 8,321.00, by another road.
SUMS: Final[_Rows] = (("North", 3831.75), ("West", 2585.50), ("South", 1903.75))
REQUEST: Final = """\
inputs/sales.csv lists amounts by region and month. Add up the amounts of each region, and deliver
the sums in {file}: one table with the columns Region and Revenue and one row for each of the 3
regions, sorted by Revenue from large to small.
"""
TASK: Final = """\
format = 1
id = "{id}"
category = "Data Analysis & Quantitative Reasoning"
license = "CC-BY-4.0"

[deliverables]
"{file}" = "{kind}"

[[group]]
id = "table"

  [[group.leaf]]
  id = "sums"
  weight = 2
  says = "The table has the revenue of each of the 3 regions, right to the cent."
  checks = [
    {{ is = "table.value", file = "{file}", row = "North", column = "Revenue", equals = 3831.75, within = 0.005 }},
    {{ is = "table.value", file = "{file}", row = "West", column = "Revenue", equals = 2585.50, within = 0.005 }},
    {{ is = "table.value", file = "{file}", row = "South", column = "Revenue", equals = 1903.75, within = 0.005 }},
  ]

  [[group.leaf]]
  id = "rows"
  says = "The table has one row for each of the 3 regions and no other row."
  checks = [{{ is = "table.shape", file = "{file}", rows = {{ min = 3, max = 3 }}, head = ["Region", "Revenue"] }}]

  [[group.leaf]]
  id = "order"
  says = "The rows are sorted by revenue, from large to small."
  checks = [{{ is = "table.order", file = "{file}", by = "Revenue", desc = true }}]

# A leaf without checks is scored by a judge; `levels` say what a score means:
#
#   [[group.leaf]]
#   id = "advice"
#   says = "The answer names the weakest region and by how much it trails."
#   levels = {{ 0 = "neither", 5 = "the region only", 10 = "the region and the amount" }}
"""  # noqa: E501 - a check is easier to read in one line
WRONG: Final[Mapping[str, tuple[str, _Rows]]] = {
    "one-sum-off": ("sums", ((*HEAD,), ("North", 3931.75), *SUMS[1:])),
    "invented-row": ("rows", ((*HEAD,), *SUMS, ("East", 0.0))),
    "not-sorted": ("order", ((*HEAD,), *reversed(SUMS))),
}


def scaffold(folder: Path, kind: str) -> list[str]:
    """Write the task to a new folder, whose name is its id, and return the paths of its files."""
    name = folder.resolve().name
    if not TASK_ID.fullmatch(name):
        problem = "use letters, digits, dots, dashes and underscores, at most 64"
        raise UsageError(f"{name!r} is not the id of a task: {problem}.")
    if folder.exists():
        raise UsageError(f"{folder} exists already. Choose another name.")
    if (folder.parent / TASK_FILE).exists():
        raise UsageError(f"{folder.parent} is a task itself. Name a folder beside it.")
    files = build_files(name, kind)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return [*files]


def build_files(name: str, kind: str) -> dict[str, bytes]:
    """Return the files of the task by their paths in its folder."""
    write = WRITERS[kind]
    file = f"summary.{kind}"
    texts = {
        "task.toml": TASK.format(id=name, file=file, kind=KIND_OF_ENDING.get(kind, kind)),
        "request.md": REQUEST.format(file=file),
    }
    files = {path: text.encode() for path, text in texts.items()}
    files["inputs/sales.csv"] = write_csv(INPUT)
    # Two right ways: the second has a column that nobody asked for.
    shares = (f"{row[1] / 8321.00:.1%}" for row in SUMS if isinstance(row[1], float))
    wide = [(*row, share) for row, share in zip(SUMS, shares, strict=True)]
    files[f"gold/plain/{file}"] = write([HEAD, *SUMS])
    files[f"gold/with-shares/{file}"] = write([(*HEAD, "Share"), *wide])
    for wrong, (leaf, rows) in WRONG.items():
        files[f"wrong/{wrong}/{file}"] = write(rows)
        files[f"wrong/{wrong}/wrong.toml"] = f'breaks = ["{leaf}"]\nfrom = "plain"\n'.encode()
    # The input in another file, as if that were an answer.
    files[f"cheat/input-renamed/{file}"] = write(INPUT)
    return files


def _format(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}"


def write_csv(rows: _Rows) -> bytes:
    """Return a table as CSV."""
    return "".join(f"{','.join(map(_format, row))}\n" for row in rows).encode()


def write_markdown(rows: _Rows) -> bytes:
    """Return a table as Markdown."""
    lines = [f"| {' | '.join(map(_format, row))} |" for row in rows]
    lines.insert(1, f"|{'---|' * len(rows[0])}")
    return "\n".join([*lines, ""]).encode()


def write_html(rows: _Rows) -> bytes:
    """Return a table as a page."""
    first, *others = (map(escape, map(_format, row)) for row in rows)
    lines = [f"<tr><th>{'</th><th>'.join(first)}</th></tr>"]
    lines += [f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in others]
    table = "\n".join(["<table>", *lines, "</table>"])
    page = f"<!doctype html>\n<html>\n<title>Summary</title>\n{table}\n</html>\n"
    return page.encode()


# The smallest packages that Word, Excel and LibreOffice open, with the same bytes every time.
_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TYPES: Final = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEET: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPE_OF: Final = {
    "xl/workbook.xml": "spreadsheetml.sheet.main",
    "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet",
    "word/document.xml": "wordprocessingml.document.main",
}


def write_xlsx(rows: _Rows) -> bytes:
    """Return a table as a workbook with the sheet Summary."""
    lines = []
    for number, row in enumerate(rows, 1):
        cells = (
            f'<c r="{chr(65 + column)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            if isinstance(cell, str)
            else f'<c r="{chr(65 + column)}{number}"><v>{cell:.2f}</v></c>'
            for column, cell in enumerate(row)
        )
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    sheet = f'<worksheet xmlns="{_SHEET}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    book = (
        f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="Summary" sheetId="1" r:id="rId1"/></sheets></workbook>'
    )
    parts = {"xl/workbook.xml": book, "xl/worksheets/sheet1.xml": sheet}
    inner = _relation("worksheet", "worksheets/sheet1.xml")
    return _pack(parts, {"xl/_rels/workbook.xml.rels": inner})


def write_docx(rows: _Rows) -> bytes:
    """Return a table as a document."""

    def write_cell(text: str) -> str:
        return f"<w:tc><w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p></w:tc>"

    lines = (f"<w:tr>{''.join(map(write_cell, map(_format, row)))}</w:tr>" for row in rows)
    grid = f"<w:tblGrid>{'<w:gridCol/>' * len(rows[0])}</w:tblGrid>"
    body = f"<w:tbl><w:tblPr/>{grid}{''.join(lines)}</w:tbl><w:p/>"
    document = f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return _pack({"word/document.xml": document}, {})


def _pack(parts: Mapping[str, str], relations: Mapping[str, str]) -> bytes:
    """Pack the parts of an Office file; the first is its main part."""
    types = "".join(
        f'<Override PartName="/{path}" ContentType="application/vnd.openxmlformats-'
        f'officedocument.{_TYPE_OF[path]}+xml"/>'
        for path in parts
    )
    default = (
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}">{default}{types}</Types>',
        "_rels/.rels": _relation("officeDocument", next(iter(parts))),
        **parts,
        **relations,
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), _XML + text)
    return packed.getvalue()


def _relation(kind: str, target: str) -> str:
    inner = f'<Relationship Id="rId1" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_RELATIONS}">{inner}</Relationships>'


KIND_OF_ENDING: Final = {"md": "markdown"}
WRITERS: Final[Mapping[str, Callable[[_Rows], bytes]]] = {
    "xlsx": write_xlsx,
    "docx": write_docx,
    "csv": write_csv,
    "html": write_html,
    "md": write_markdown,
}
