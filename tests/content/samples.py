"""Files for the tests, made here: by libraries where they are usual, by hand where they are odd."""

import io
import random
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import openpyxl
import xlsxwriter
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

CONTENT_TYPES = """<?xml version="1.0"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/word/document.xml" ContentType=
"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>
</Types>"""
PACKAGE = """<?xml version="1.0"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Target="word/document.xml" Type=
"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/>
</Relationships>"""
CATEGORIES: Any = CategoryChartData  # python-pptx types its charts in part only
POINTS: Any = XyChartData
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def docx(body: str, more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A Word document from the XML of its body, and further parts."""
    document = (
        f'<?xml version="1.0"?><w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    )
    parts = {"[Content_Types].xml": CONTENT_TYPES, "_rels/.rels": PACKAGE}
    return zipped({**parts, "word/document.xml": document, **(more or {})})


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def word_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows]
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def workbook() -> bytes:
    """Two sheets of openpyxl: no value of any formula is known."""
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Sales 销售"
    first.append(["item", "price", "count", "total"])
    first.append(["tea", 2.5, 4, "=B2*C2"])
    first.append(["007", 1, 3.0, "=B3*C3"])
    first.append([True, date(2026, 5, 19), datetime.fromisoformat("2026-05-19 13:30"), "#DIV/0!"])
    first.merge_cells("A6:C6")
    first["A6"] = "merged, with a comma"
    hidden = book.create_sheet("Notes")
    hidden.sheet_state = "hidden"
    hidden["C3"] = "far"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def calculated_workbook() -> bytes:
    """A sheet of XlsxWriter with the formulas' values, an array formula and a chart."""
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    sheet = book.add_worksheet("Sum")
    sheet.write_row(0, 0, [1, 2, 3.5])
    sheet.write_formula(0, 3, "=SUM(A1:C1)", value=6.5)
    sheet.write_array_formula("E1:E1", "{=SUM(A1:C1*2)}", value=13)
    sheet.write_formula(1, 0, "=1/0", value="#DIV/0!")
    sheet.write_string(2, 0, "shared")
    chart = book.add_chart({"type": "column"})
    chart.add_series({"values": "=Sum!$A$1:$C$1"})
    sheet.insert_chart("G1", chart)
    book.close()
    return stream.getvalue()


def deck() -> bytes:
    """A title, levels, a table, a group, two charts, a picture, notes, a hidden slide."""
    show = Presentation()
    one = show.slides.add_slide(show.slide_layouts[1])
    one.shapes.title.text = "Results\v2026"
    body = one.placeholders[1].text_frame
    body.text = "First point"
    below = body.add_paragraph()
    below.text, below.level = "Second 要点", 1
    one.notes_slide.notes_text_frame.text = "Say hello."
    two = show.slides.add_slide(show.slide_layouts[6])
    table = two.shapes.add_table(2, 3, Inches(1), Inches(1), Inches(6), Inches(1)).table
    for place, text in enumerate(["a", "b|c", "d", "1", "2", "3"]):
        table.cell(place // 3, place % 3).text = text
    table.cell(1, 1).merge(table.cell(1, 2))
    group = two.shapes.add_group_shape()
    group.shapes.add_textbox(0, Inches(3), Inches(1), Inches(1)).text_frame.text = "in a group"
    data = CATEGORIES()
    data.categories = ["Q1", "Q2"]
    data.add_series("North", (1.5, 2))
    box = (Inches(1), Inches(4), Inches(3), Inches(2))
    column = two.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, data).chart
    column.has_title = True
    column.chart_title.text_frame.text = "Revenue"
    points = POINTS()
    series = points.add_series("Line")
    series.add_data_point(0.5, 7)
    two.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, Inches(5), *box[1:], points)
    picture = two.shapes.add_picture(io.BytesIO(image(8, 8)), 0, Inches(6.5))
    picture._element.nvPicPr.cNvPr.set("descr", "a red square")
    three = show.slides.add_slide(show.slide_layouts[6])
    three._element.set("show", "0")
    stream = io.BytesIO()
    show.save(stream)
    return stream.getvalue()


def image(width: int, height: int, form: str = "PNG", color: str = "red") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (width, height), color).save(stream, form)
    return stream.getvalue()


def noise(side: int) -> bytes:
    """A picture that does not compress."""
    stream = io.BytesIO()
    data = random.Random(1).randbytes(side * side * 3)
    Image.frombytes("RGB", (side, side), data).save(stream, "PNG")
    return stream.getvalue()


def film(frames: int, side: int = 16) -> bytes:
    """A GIF whose frames differ."""
    pictures = [Image.new("P", (side, side), number % 200) for number in range(frames)]
    for number, picture in enumerate(pictures):
        picture.putpalette([value for shade in range(256) for value in (shade, number % 256, 9)])
    stream = io.BytesIO()
    pictures[0].save(stream, "GIF", save_all=True, append_images=pictures[1:], duration=40)
    return stream.getvalue()


def pdf(contents: Sequence[str]) -> bytes:
    """A PDF file from the drawing commands of its pages, with the font /F (Helvetica)."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(contents)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, content in enumerate(contents):
        resources = "/MediaBox [0 0 400 300] /Resources << /Font << /F 3 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return data + f"{tail}startxref\n{len(data)}\n%%EOF\n".encode("latin-1")


def words(text: str, x: int = 40, y: int = 250) -> str:
    return f"BT /F 14 Tf {x} {y} Td ({text}) Tj ET"


def ruled_table(rows: Sequence[Sequence[str]]) -> str:
    """A table with lines around its cells."""
    width, height = len(rows[0]) * 80, len(rows) * 20
    lines = [f"40 {200 - 20 * n} m {40 + width} {200 - 20 * n} l S" for n in range(len(rows) + 1)]
    lines += [
        f"{40 + 80 * n} 200 m {40 + 80 * n} {200 - height} l S" for n in range(len(rows[0]) + 1)
    ]
    texts = [
        words(cell, 45 + 80 * column, 185 - 20 * row)
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
    ]
    return "\n".join([*lines, *texts])


def scan(text: str) -> bytes:
    """A PDF file of one page that is a picture of a text."""
    page = Image.new("L", (800, 400), "white")
    font = ImageFont.load_default(size=48)
    ImageDraw.Draw(page).text((40, 150), text, fill="black", font=font)
    stream = io.BytesIO()
    page.save(stream, "PDF", resolution=100)
    return stream.getvalue()


def bomb(members: Mapping[str, bytes], megabytes: int) -> bytes:
    """An archive with one more member, of zeros, that unpacks to so many megabytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        with archive.open("media/zeros.bin", "w", force_zip64=True) as member:
            for _ in range(megabytes):
                member.write(bytes(1 << 20))
    return stream.getvalue()
