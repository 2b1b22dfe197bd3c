"""One file of every kind that a system may deliver, made by the programs that usually make them."""

import asyncio
import io
import json
from pathlib import Path

import openpyxl
from openpyxl.chart import BarChart
from openpyxl.chart import Reference as ChartData
from PIL import Image, ImageDraw

from gta_bench.content.libreoffice import convert
from tests.content import samples
from tests.content.films import ffmpeg
from tests.tools.documents.making import as_json, bench, jail
from tests.tools.documents.sample import MARKDOWN, SLIDES, wide_picture
from tests.tools.media_files import make_video
from tests.tools.media_weights import fetch_speech

SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 200">
<rect width="300" height="200" fill="#eef6ff"/><circle cx="80" cy="100" r="60" fill="#1f6feb"/>
<text x="160" y="105" font-size="22" font-family="sans-serif">Logo 标志</text></svg>"""
PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Shop</title>
<link rel="stylesheet" href="style.css"></head><body>
<h1>Shop 商店</h1><p id="start">Open <a href="#end">the end</a>, <a href="#nowhere">nothing</a>,
<a href="more.html">more</a>.</p><img src="wide.png" width="300"><img src="https://web.invalid/a.png">
<ul id="list"></ul><div style="height:1700px"></div><p id="end">The end.</p>
<script>for (const name of ["tea", "coffee"]) list.innerHTML += `<li>${name}</li>`;
undefinedFunction();</script></body></html>"""
TEXT = "Notes for the meeting.\nSecond line with Ünïcödé and 中文。\n"
CODE = 'def total(prices: list[float]) -> float:\n    """All of them."""\n    return sum(prices)\n'


def animation() -> bytes:
    frames = []
    for number in range(12):
        frame = Image.new("RGB", (240, 120), "white")
        drawing = ImageDraw.Draw(frame)
        drawing.ellipse((10 + 16 * number, 40, 50 + 16 * number, 80), fill="crimson")
        drawing.text((5, 5), f"frame {number + 1}", fill="black")
        frames.append(frame)
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:], duration=80, loop=0)
    return stream.getvalue()


def workbook() -> bytes:
    """Formulas without values, one of them wrong, a chart, a long sheet."""
    book = openpyxl.Workbook()
    del book["Sheet"]
    sheet = book.create_sheet("Budget")
    for row in (["item", "price", "count", "total"], ["tea", 2.5, 4, "=B2*C2"],
                ["coffee", 3, 2, "=B3*C3"], ["all", None, None, "=SUM(D2:D3)"],
                ["wrong", 1, 0, "=B5/C5"]):  # fmt: skip
        sheet.append(row)
    chart = BarChart()
    chart.add_data(ChartData(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "F2")
    data = book.create_sheet("Data")
    for number in range(1, 1001):
        data.append([number, number * number, f"row {number}"])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def picture(form: str) -> bytes:
    stream = io.BytesIO()
    Image.open(io.BytesIO(wide_picture())).convert("RGB").save(stream, form)
    return stream.getvalue()


def one_of_each(folder: Path) -> dict[str, bytes]:
    """The files by their names."""
    desk = bench(folder)
    docx = desk.make("DocxFileGenerator", content=MARKDOWN, image_paths="inputs/wide.png")
    pictures = "inputs/wide.png,inputs/tall.png"
    pptx = desk.make(
        "PptxFileGenerator", slides_content_str=as_json(SLIDES[:3]), image_paths=pictures
    )
    pdf = desk.make("PdfFileGenerator", content=MARKDOWN, image_paths="inputs/wide.png")
    book = workbook()
    speech = fetch_speech().read_bytes()
    spoken = folder / "spoken.wav"
    spoken.write_bytes(speech)
    files = {
        "report.docx": docx,
        "deck.pptx": pptx,
        "budget.xlsx": book,
        "report.pdf": pdf,
        "table.csv": "".join(f"{n};{n * n};row {n}\n" for n in range(500)).encode(),
        "page.html": PAGE.encode(),
        "style.css": b"h1 { color: teal; border-bottom: 3px solid teal; }",
        "notes.md": f"{MARKDOWN}\n![lost](nowhere.png) ![here](wide.png)\n".encode(),
        "notes.txt": TEXT.encode(),
        "data.json": json.dumps({"tea": [1, 2, {"茶": None}]}, ensure_ascii=False).encode(),
        "total.py": CODE.encode(),
        "wide.png": wide_picture(),
        "photo.jpg": picture("JPEG"),
        "moving.gif": animation(),
        "logo.svg": SVG.encode(),
        "photo.webp": picture("WEBP"),
        "photo.bmp": picture("BMP"),
        "photo.tiff": picture("TIFF"),
        "photo.avif": picture("AVIF"),
        "speech.wav": speech,
        "film.mp4": make_video(folder / "film.mp4", seconds=2).read_bytes(),
        "archive.zip": samples.zipped({"a/readme.txt": TEXT, "b.png": wide_picture()}),
        "unknown.bin": bytes(range(256)) * 3,
        "empty.txt": b"",
        "README": TEXT.encode(),
    }
    for suffix in ("mp3", "m4a", "flac", "ogg"):
        files[f"speech.{suffix}"] = ffmpeg(folder, f"speech.{suffix}", "-i", str(spoken))
    film = str(folder / "film.mp4")
    files["film.mov"] = ffmpeg(folder, "film.mov", "-i", film, "-c", "copy")
    files["film.webm"] = ffmpeg(folder, "film.webm", "-i", film, "-t", "1", "-c:v", "libvpx", "-an")
    return files | asyncio.run(_by_office(docx, pptx, book))


async def _by_office(docx: bytes, pptx: bytes, xlsx: bytes) -> dict[str, bytes]:
    """What LibreOffice saves in its own and in older formats."""
    wanted = {
        "other.odt": ("a.docx", docx),
        "other.rtf": ("a.docx", docx),
        "old.doc": ("a.docx", docx),
        "other.odp": ("a.pptx", pptx),
        "old.xls": ("a.xlsx", xlsx),
    }
    calls = [
        convert(jail(), source, data, to=name.rpartition(".")[2])
        for name, (source, data) in wanted.items()
    ]
    return dict(zip(wanted, await asyncio.gather(*calls), strict=True))
