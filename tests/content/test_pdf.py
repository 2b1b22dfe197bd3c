import asyncio
import io
from pathlib import Path

import pypdf
import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.content import pdf
from gta_bench.content.images import measure_picture
from gta_bench.content.pdf import PdfContent, read_pdf, render_pdf
from gta_bench.errors import ToolError
from tests.content import samples

TABLE = [["item", "price"], ["tea", "2.50"], ["", "7"]]
THREE = samples.pdf([samples.words("Hello, this is page one."), samples.ruled_table(TABLE), ""])


def read(data: bytes, jail: Jail) -> PdfContent:
    return asyncio.run(read_pdf(data, jail))


def encrypted(data: bytes, *, user: str, owner: str, algorithm: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(user_password=user, owner_password=owner, algorithm=algorithm)
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def test_text_and_tables_of_each_page_come_back(jail: Jail) -> None:
    content = read(THREE, jail)
    one, two, three = content.pages
    assert (one.text, one.origin, one.tables, one.image) == (
        "Hello, this is page one.",
        "text",
        (),
        None,
    )
    assert two.tables == (tuple(tuple(row) for row in TABLE),)
    assert (three.text, three.origin) == ("", "none")
    assert (content.page_count, content.pages_searched_for_tables) == (3, 3)


def test_the_text_marks_pages_and_shows_tables_as_markdown(jail: Jail) -> None:
    text = read(THREE, jail).as_text()
    assert text.startswith("[Page 1]\nHello, this is page one.\n\n[Page 2]\n")
    assert "[Table]\n| item | price |\n| --- | --- |\n| tea | 2.50 |\n|  | 7 |" in text
    assert text.endswith("[Page 3]\n[This page has no text; it is a picture or empty.]")


def test_a_scanned_page_is_given_as_a_picture_to_whoever_can_read_it(jail: Jail) -> None:
    seen: list[Image.Image] = []

    async def ocr(png: bytes) -> str:
        seen.append(Image.open(io.BytesIO(png)))
        return "HELLO 42"

    content = asyncio.run(read_pdf(samples.scan("HELLO 42"), jail, ocr=ocr))
    assert (content.pages[0].text, content.pages[0].origin) == ("HELLO 42", "ocr")
    assert "[Text recognized in a picture of this page:]\nHELLO 42" in content.as_text()
    picture = seen[0].convert("L")
    assert picture.size == (1200, 600)  # 8 x 4 inches at 150 dots an inch
    low, high = picture.getextrema()
    assert low == 0
    assert high == 255


def test_pages_with_text_are_not_recognized(jail: Jail) -> None:
    async def ocr(png: bytes) -> str:
        raise AssertionError("nothing to recognize here")

    content = asyncio.run(
        read_pdf(samples.pdf([samples.words("Long enough to be text.")]), jail, ocr=ocr)
    )
    assert content.pages[0].origin == "text"


def test_a_page_on_which_nothing_is_recognized_stays_without_text(jail: Jail) -> None:
    async def ocr(png: bytes) -> str:
        return "  "

    content = asyncio.run(read_pdf(samples.pdf([""]), jail, ocr=ocr))
    assert content.pages[0].origin == "none"


def test_a_stamp_on_a_scan_is_kept_beside_what_is_recognized(jail: Jail) -> None:
    async def ocr(png: bytes) -> str:
        return "the scan"

    content = asyncio.run(read_pdf(samples.pdf([samples.words("Seite 1")]), jail, ocr=ocr))
    assert (content.pages[0].text, content.pages[0].origin) == ("Seite 1\nthe scan", "ocr")


def test_pages_are_rendered_within_a_bound(jail: Jail) -> None:
    images = asyncio.run(render_pdf(THREE, jail, [2, 1, 9], longest_side=200))
    assert [(page.number, *measure_picture(page.data)) for page in images.pages] == [
        (2, "image/png", 200, 150),
        (1, "image/png", 200, 150),
    ]
    assert images.page_count == 3
    assert Image.open(io.BytesIO(images.pages[0].data)).size == (200, 150)


def test_of_a_very_long_page_a_part_is_shown_that_can_be_read(jail: Jail) -> None:
    """A sheet of 2000 rows as one page would be a thread."""
    data = samples.pdf([samples.words("top", y=8950)]).replace(b"[0 0 400 300]", b"[0 0 400 9000]")
    page = asyncio.run(render_pdf(data, jail, [1], longest_side=800)).pages[0]
    assert measure_picture(page.data)[1:] == (800, 800)
    assert page.part == pytest.approx(400 / 9000, rel=0.05)
    top = Image.open(io.BytesIO(page.data)).convert("L").crop((0, 0, 800, 200))
    assert min(top.tobytes()) < 99


def test_a_page_of_a_huge_size_is_rendered_small(jail: Jail) -> None:
    data = samples.pdf([samples.words("x")]).replace(b"[0 0 400 300]", b"[0 0 1e6 1e6]")
    images = asyncio.run(render_pdf(data, jail, [1]))
    assert max(measure_picture(images.pages[0].data)[1:]) <= pdf.LONGEST_SIDE + 1


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_a_file_that_is_only_protected_against_changes_is_read(algorithm: str, jail: Jail) -> None:
    data = encrypted(THREE, user="", owner="boss", algorithm=algorithm)
    assert read(data, jail).pages[0].text == "Hello, this is page one."
    assert read(data, jail).pages[1].tables


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_a_file_with_a_password_is_refused_and_says_so(algorithm: str, jail: Jail) -> None:
    data = encrypted(THREE, user="secret", owner="boss", algorithm=algorithm)
    with pytest.raises(ToolError, match="encrypted and needs a password"):
        read(data, jail)


def test_a_file_longer_than_is_read_says_so(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MOST_PAGES", 2)
    content = read(THREE, jail)
    assert (len(content.pages), content.page_count) == (2, 3)
    assert "[2 of 3 pages were read.]" in content.as_text()


def test_pages_that_were_not_searched_for_tables_are_reported() -> None:
    page = pdf.PdfPage(1, "x", (), "text", None)
    assert "[Tables were looked for on the first 0 pages.]" in PdfContent((page,), 1, 0).as_text()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"hello", "not pdf; it is text"),
        (b"%PDF-1.7\nnothing else", "broken"),
        (b"%PDF-1.7\n" + bytes(1000), "broken"),
    ],
)
def test_what_is_no_pdf_is_refused_with_the_reason(data: bytes, said: str, jail: Jail) -> None:
    with pytest.raises(ToolError, match=said):
        read(data, jail)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_read_in_part_or_refused(share: float, jail: Jail) -> None:
    data = THREE[: int(len(THREE) * share)]
    try:
        content = read(data, jail)
    except ToolError:
        return
    assert content.page_count <= 3


def test_real_files_of_other_makers_are_read_whole(data_dir: Path, jail: Jail) -> None:
    files = sorted((data_dir / "predictions").rglob("*.pdf"))[:3]
    assert files
    for file in files:
        content = read(file.read_bytes(), jail)
        assert len(content.pages) == content.page_count > 0, file.name
        assert all(page.origin == "text" for page in content.pages), file.name


def test_forms_notes_links_bookmarks_and_attachments_are_read(jail: Jail) -> None:
    from tests.judging.planted.other_files import pdf_by_pypdf
    from tests.judging.planted.planting import Field

    field = Field()
    data = pdf_by_pypdf(field.bed("a.pdf"))
    word = {plant.place: plant.word for plant in field.plants}
    content = asyncio.run(read_pdf(data, jail, scans=0))
    assert content.fields[0][0] == word["field name"]
    assert content.fields[0][1] == f"{word['field value']} (hint: {word['field hint']})"
    assert word["choice of a field"] in content.fields[1][1]
    assert content.remarks == (f"page 1: {word['annotation']}",)
    assert content.bookmarks == (word["bookmark"],)
    assert [one.name for one in content.attachments] == ["attached.png", "attached.txt"]
    assert content.attachments[1].data == word["attached text"].encode()
    assert (content.properties, content.signed) == ((("Subject", word["subject"]),), True)
    assert f"[Form fields]\n{word['field name']}: " in content.as_text()


def raw_pdf(*objects: bytes) -> bytes:
    """Objects by their numbers; the first is the catalog."""
    numbered = (b"%d 0 obj %b endobj\n" % pair for pair in enumerate(objects, 1))
    end = b"trailer <</Root 1 0 R>>\nstartxref\n0\n%%EOF"
    return b"%PDF-1.7\n" + b"".join(numbered) + end


def stream(content: bytes) -> bytes:
    return b"<</Length %d>>stream\n%b\nendstream" % (len(content), content)


def annotated(*notes: bytes, catalog: bytes = b"") -> bytes:
    return raw_pdf(
        b"<</Type/Catalog/Pages 2 0 R %b>>" % catalog,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Annots[%b]>>" % b" ".join(notes),
        stream(b"pinned words"),
        stream(b"<form><text>words of a form</text></form>"),
    )


def test_a_file_that_hangs_on_a_page_is_attached(jail: Jail) -> None:
    """Only the list of attachments was read."""
    note = b"<</Subtype/FileAttachment/FS<</F(pin.txt)/Desc(a pin)/EF<</F 4 0 R>>>>>>"
    content = read(annotated(note, note), jail)
    assert [(one.name, one.about, one.data) for one in content.attachments] == [
        ("pin.txt", "a pin", b"pinned words")
    ]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (b"/Subtype/Text/Contents(short)/T(Ann)/Subj(money)", "short (about: money; by: Ann)"),
        (b"/Subtype/FreeText/Contents(a)/RC(<p>rich &amp; more</p>)", "a rich & more"),
        (b"/Subtype/FreeText/Contents(same)/RC(<p>same</p>)", "same"),
        (b"/Subtype/Redact/OverlayText(gone)", "gone"),
        (b"/Subtype/Widget/T(field)/Contents(hint)", "hint"),
    ],
)
def test_notes_say_who_says_what_about_what(note: bytes, said: str, jail: Jail) -> None:
    assert read(annotated(b"<<%b>>" % note), jail).remarks == (f"page 1: {said}",)


def test_tags_say_what_stands_in_place_of_pictures(jail: Jail) -> None:
    inner = b"<</S/Formula/ActualText(x squared)/E(for example)/K[0 1]>>"
    catalog = b"/StructTreeRoot<</K[<</S/Figure/Alt(a chart)/K %b>> 7]>>" % inner
    content = read(annotated(catalog=catalog), jail)
    assert content.descriptions == ("a chart", "x squared", "for example")
    assert "[Alternative texts]\na chart\nx squared\nfor example" in content.as_text()


@pytest.mark.parametrize(
    ("note", "catalog"),
    [
        (b"", b"/Names<</JavaScript<</Names[(j)<</S/JavaScript/JS(1)>>]>>>>"),
        (b"", b"/OpenAction<</S/JavaScript/JS(1)>>"),
        (b"<</Subtype/Widget/AA<</K<</S/JavaScript/JS(1)>>>>>>", b""),
    ],
    ids=["list", "opening", "key"],
)
def test_scripts_are_noticed(note: bytes, catalog: bytes, jail: Jail) -> None:
    assert read(annotated(note, catalog=catalog), jail).scripts
    assert not read(annotated(catalog=b"/OpenAction[3 0 R/Fit]"), jail).scripts


@pytest.mark.parametrize("form", [b"5 0 R", b"[(template) 5 0 R]"])
def test_a_form_in_xml_is_read(form: bytes, jail: Jail) -> None:
    content = read(annotated(catalog=b"/AcroForm<</Fields[]/XFA %b>>" % form), jail)
    assert content.xfa
    assert [value for _, value in content.fields] == ["words of a form"]


XMP = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>
<rdf:Description xmlns:dc="u" pdf:Keywords="tides" xmpMM:DocumentID="uuid:1">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Of &amp; by</rdf:li></rdf:Alt></dc:title>
<dc:creator><rdf:Seq><rdf:li>Ada</rdf:li></rdf:Seq></dc:creator>
<xmp:CreatorTool>x</xmp:CreatorTool></rdf:Description></rdf:RDF></x:xmpmeta>"""


def test_metadata_labels_and_layers_are_read(jail: Jail) -> None:
    """They were neither in the text nor named."""
    catalog = (
        b"/Metadata 4 0 R/PageLabels<</Nums[0<</P(Plate )/S/R>>]>>"
        b"/OCProperties<</OCGs[5 0 R 6 0 R]/D<</OFF[6 0 R]>>>>"
    )
    content = read(
        raw_pdf(
            b"<</Type/Catalog/Pages 2 0 R %b>>" % catalog,
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
            stream(XMP),
            b"<</Type/OCG/Name(Roads)>>",
            b"<</Type/OCG/Name(Pipes)>>",
        ),
        jail,
    )
    assert content.properties == (("pdf:Keywords", "tides"), ("dc:title", "Of & by"))
    assert content.signed
    assert "[Page labels]\npage 1: Plate I" in content.as_text()
    assert "[Layers]\nRoads\nPipes (switched off)" in content.as_text()


def test_letters_that_are_set_close_are_one_word(jail: Jail) -> None:
    """Titles that LibreOffice prints were read as `T able`."""
    close = "BT /F 18 Tf 40 250 Td [(T) 300 (able of V) 80 (alues)] TJ ET"
    (page,) = read(samples.pdf([close]), jail).pages
    assert page.text == "Table of Values"
