# ruff: noqa: E501 - lines of markup
"""Pages, texts, pictures, sounds, films, archives, mails, notebooks with planted words."""

import base64
import io
import json
import tarfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pypdf
import typst
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pypdf.annotations import FreeText
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from tests.content import samples
from tests.content.films import ffmpeg
from tests.judging.planted.office_files import AUTHORS, drawn
from tests.judging.planted.planting import Bed
from tests.tools.media_weights import fetch_speech

HIDDEN_PROPERTIES = "words in its properties"


def pdf_by_typst(words: Bed) -> bytes:
    source = f"""#set document(title: "{words("property title")}", keywords: ("{words("keywords")}",))
#set page(header: [{words("header")}], footer: [{words("footer")}])
= {words("heading")}
{words("paragraph")} #footnote[{words("footnote")}]
#link("https://{words("link target").lower()}.invalid/")[{words("link text")}]
#table(columns: 2, [{words("table cell")}], [b])
$ "{words("equation")}" $
"""
    return bytes(typst.compile(source.encode()))


def pdf_by_pypdf(words: Bed) -> bytes:
    """A form, an annotation, an attachment, a bookmark, text that is not to be seen."""
    seen = samples.words(words("paragraph"))
    white = f"1 1 1 rg {samples.words(words('white text'), y=100)}"
    writer = pypdf.PdfWriter(io.BytesIO(samples.pdf([f"{seen} {white}"])))
    writer.add_metadata({"/Subject": words("subject"), "/Author": words("author", named=AUTHORS)})
    writer.add_outline_item(words("bookmark"), 0)
    writer.add_attachment("attached.txt", words("attached text").encode())
    writer.add_attachment("attached.png", drawn(words("attached picture", drawn=True)))
    writer.add_annotation(0, FreeText(text=words("annotation"), rect=(50, 150, 250, 180)))
    field = DictionaryObject({
        NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Widget"),
        NameObject("/FT"): NameObject("/Tx"), NameObject("/T"): TextStringObject(words("field name")),
        NameObject("/V"): TextStringObject(words("field value")),
        NameObject("/TU"): TextStringObject(words("field hint")),
        NameObject("/Rect"): ArrayObject([NumberObject(n) for n in (50, 50, 300, 80)]),
    })  # fmt: skip
    choice = DictionaryObject({
        NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Widget"),
        NameObject("/FT"): NameObject("/Ch"), NameObject("/T"): TextStringObject("choice"),
        NameObject("/Opt"): ArrayObject([TextStringObject(words("choice of a field"))]),
        NameObject("/Rect"): ArrayObject([NumberObject(n) for n in (50, 10, 300, 40)]),
    })  # fmt: skip
    fields = ArrayObject([writer._add_object(field), writer._add_object(choice)])
    page = writer.pages[0]
    page[NameObject("/Annots")] = ArrayObject([*page.get("/Annots", ()), *fields])
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): fields})
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def pdf_with_layers(words: Bed) -> bytes:
    """Metadata in XML, a page with a name of its own, layers of which one is switched off."""
    seen = f"/OC /On BDC {samples.words(words('text on a layer'))} EMC"
    off = f"/OC /Off BDC {samples.words(words('text on a layer that is off'), y=100)} EMC"
    writer = pypdf.PdfWriter(io.BytesIO(samples.pdf([f"{seen} {off}"])))
    writer.xmp_metadata = f"""<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:own="urn:own"
own:note="{words("attribute of XMP")}"><dc:title><rdf:Alt><rdf:li xml:lang="x-default">{words("title in XMP")}
</rdf:li></rdf:Alt></dc:title><dc:description><rdf:Alt><rdf:li xml:lang="x-default">{words("long words in XMP", named="its properties, 7 words")}
and six words more in it</rdf:li></rdf:Alt></dc:description><dc:creator><rdf:Seq><rdf:li>{words("author in XMP", named=AUTHORS)}
</rdf:li></rdf:Seq></dc:creator></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>""".encode()
    writer.set_page_label(0, 0, prefix=words("page label"))
    names = {"/On": words("name of a layer"), "/Off": words("name of a layer that is off")}
    groups = {
        key: writer._add_object(
            DictionaryObject({
                NameObject("/Type"): NameObject("/OCG"), NameObject("/Name"): TextStringObject(name)
            })
        )
        for key, name in names.items()
    }  # fmt: skip
    resources: Any = writer.pages[0]["/Resources"].get_object()
    resources[NameObject("/Properties")] = DictionaryObject(
        {NameObject(key): group for key, group in groups.items()}
    )
    writer.root_object[NameObject("/OCProperties")] = DictionaryObject({
        NameObject("/OCGs"): ArrayObject(groups.values()),
        NameObject("/D"): DictionaryObject({NameObject("/OFF"): ArrayObject([groups["/Off"]])}),
    })  # fmt: skip
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def scan(words: Bed) -> bytes:
    return samples.scan(words("scanned page", drawn=True))


def page(words: Bed) -> bytes:
    drawing = words("canvas", drawn=True)
    return f"""<!doctype html><html><head><meta charset="utf-8"><title>{words("title")}</title>
<meta name="description" content="{words("meta description")}">
<style>p.s::after {{ content: "{words("style content")}"; }}</style></head><body>
<h1>{words("heading")}</h1><p class="s">{words("paragraph")}</p><!-- {words("comment")} -->
<div style="display:none">{words("hidden element")}</div>
<img alt="{words("alt text")}" src="data:image/png;base64,{_base64(drawn(words("embedded picture", drawn=True)))}">
<input value="{words("input value")}" placeholder="{words("placeholder")}">
<select><option>a</option><option>{words("option")}</option></select>
<svg width="200" height="40"><text x="5" y="30">{words("drawing")}</text></svg>
<details><summary>s</summary>{words("closed details")}</details>
<canvas id="c" width="400" height="80"></canvas><p id="w"></p>
<script>const k = c.getContext("2d"); k.font = "40px sans-serif"; k.fillText("{drawing}", 10, 50);
w.textContent = "{words("written by a script")}";</script>
<noscript>{words("noscript")}</noscript></body></html>""".encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def markdown(words: Bed) -> bytes:
    return f"""---
title: {words("front matter")}
---
# {words("heading")}

{words("paragraph")} [{words("link text")}](https://{words("link target").lower()}.invalid/)
![{words("alt text")}](https://a.invalid/a.png) <!-- {words("comment")} -->

| {words("table cell")} | b |
|---|---|

```python
{words("code block")} = 1
```
""".encode()


def texts(words_of: dict[str, Bed]) -> dict[str, bytes]:
    """Plain texts of several kinds."""
    table = words_of["table.csv"]
    chinese = words_of["chinese.csv"]
    data = words_of["data.json"]
    code = words_of["code.py"]
    styles = words_of["style.css"]
    plain = words_of["notes.txt"]
    return {
        "table.csv": f"{table('header')},b\n{table('cell')},1\n".encode(),
        "chinese.csv": f"名称;数量\n茶叶 {chinese('cell')};12\n".encode("gb18030"),
        "data.json": json.dumps(
            {data("key"): [data("value"), {"a": data("nested value")}]}
        ).encode(),
        "code.py": f"# {code('comment')}\n{code('name')} = '{code('string')}'\n".encode(),
        "style.css": f".{styles('class')} {{ content: '{styles('content')}'; }}".encode(),
        "notes.txt": f"{plain('text')}\n".encode("utf-16"),
    }


def pictures(words_of: dict[str, Bed]) -> dict[str, bytes]:
    about = PngInfo()
    png, jpeg, gif = words_of["a.png"], words_of["a.jpg"], words_of["a.gif"]
    about.add_text("Description", png("text chunk", named=HIDDEN_PROPERTIES))
    fields = Image.Exif()
    fields[0x010E] = jpeg("description", named=HIDDEN_PROPERTIES)
    fields[0x013B] = jpeg("artist", named=HIDDEN_PROPERTIES)
    svg = words_of["a.svg"]
    made = {
        "a.png": drawn(png("picture", drawn=True), pnginfo=about),
        "a.jpg": drawn(jpeg("picture", drawn=True), "JPEG", exif=fields, quality=90),
        "a.gif": drawn(
            gif("picture", drawn=True),
            "GIF",
            comment=gif("comment", named=HIDDEN_PROPERTIES).encode(),
        ),
        "a.svg": f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="60"><title>{svg("title")}'
        f"</title><desc>{svg('description')}</desc><text x='5' y='40'>{svg('text')}</text></svg>".encode(),
    }
    for suffix, form in (("webp", "WEBP"), ("bmp", "BMP"), ("tiff", "TIFF"), ("avif", "AVIF")):
        made[f"a.{suffix}"] = drawn(words_of[f"a.{suffix}"]("picture", drawn=True), form)
    return made


def film(words: Bed, folder: Path) -> bytes:
    """Words on its frames, in its subtitles, its tags and its chapters."""
    (folder / "still.png").write_bytes(drawn(words("frames", drawn=True)))
    subtitles = f"1\n00:00:00,000 --> 00:00:00,900\n{words('subtitles')}\n"
    (folder / "s.srt").write_text(subtitles, encoding="utf-8")
    chapters = (
        f";FFMETADATA1\ntitle={words('tag title')}\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=900\n"
    )
    (folder / "m.txt").write_text(f"{chapters}title={words('chapter')}\n", encoding="utf-8")
    return ffmpeg(
        folder, "film.mp4", "-loop", "1", "-t", "1", "-i", str(folder / "still.png"),
        "-i", str(folder / "s.srt"), "-i", str(folder / "m.txt"), "-map_metadata", "2",
        "-map", "0:v", "-map", "1:s", "-c:s", "mov_text", "-pix_fmt", "yuv420p", "-r", "10",
    )  # fmt: skip


def speech(words: Bed, folder: Path) -> bytes:
    """A recording whose words are known, and tags."""
    for word in ("tried", "failed"):
        words(f"spoken {word}", word=word)
    tags = (
        "-metadata",
        f"title={words('tag title')}",
        "-metadata",
        f"comment={words('tag comment')}",
    )
    return ffmpeg(folder, "speech.mp3", "-i", str(fetch_speech()), *tags)


def archive(words: Bed) -> bytes:
    """Files of several kinds, and an archive within."""
    from tests.judging.planted.office_files import workbook_by_xlsxwriter

    inner = samples.zipped(
        {words("name of a member") + ".txt": words("text in an archive in an archive")}
    )
    document = samples.docx(samples.paragraph(words("document in an archive")))
    data = samples.zipped({
        "a/notes.txt": words("text in an archive"),
        "b.docx": document,
        "c.png": drawn(words("picture in an archive", drawn=True)),
        "d.zip": inner,
        "e.xlsx": workbook_by_xlsxwriter(Bed(words.field, words.file)),
    })  # fmt: skip
    return data


def tarball(words: Bed) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for name, data in (
            ("a.txt", words("text in a tar archive").encode()),
            ("b.pdf", samples.pdf([samples.words(words("page in a tar archive"))])),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def mail(words: Bed) -> bytes:
    message = EmailMessage()
    message["From"] = f"{words('sender')} <a@example.org>"
    message["Subject"] = words("subject")
    message.set_content(words("plain body"))
    message.add_alternative(f"<p>{words('HTML body')}</p>", subtype="html")
    text = words("attached table")
    message.add_attachment(f"{text},1\n".encode(), maintype="text", subtype="csv", filename="t.csv")
    picture = drawn(words("attached picture", drawn=True))
    message.add_attachment(picture, maintype="image", subtype="png", filename="p.png")
    return message.as_bytes()


def notebook(words: Bed) -> bytes:
    output = {
        "output_type": "display_data", "metadata": {},
        "data": {"text/plain": words("plain output"), "image/png": _base64(drawn(words("plot", drawn=True)))},
    }  # fmt: skip
    printed = {"output_type": "stream", "name": "stdout", "text": [words("printed output")]}
    shown = {
        "output_type": "execute_result", "execution_count": 1, "metadata": {},
        "data": {"text/html": f"<b>{words('HTML output')}</b>", "text/plain": words("repr")},
    }  # fmt: skip
    code = {
        "cell_type": "code", "execution_count": 1, "metadata": {}, "id": "a",
        "source": [f"{words('code')} = 1"], "outputs": [output, printed, shown],
    }  # fmt: skip
    cells = [
        {"cell_type": "markdown", "metadata": {}, "id": "b", "source": [words("markdown cell")]},
        code,
        {"cell_type": "raw", "metadata": {}, "id": "c", "source": [words("raw cell")]},
    ]
    about = {"title": words("metadata"), "kernelspec": {"name": "p", "display_name": "p"}}
    return json.dumps(
        {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    ).encode()
