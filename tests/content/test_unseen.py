"""Text that readers of a file do not see."""

import asyncio
import io
import zipfile

import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.content.images import read_image
from gta_bench.content.leftovers import find_unseen_markup, find_unseen_office
from gta_bench.content.members import read_zip
from gta_bench.content.office import read_package
from gta_bench.content.pdf import read_pdf, render_pdf
from gta_bench.judge_quality.attacks import files
from tests.content import samples

SECRET = "words that only a machine will ever read"


def unseen(data: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {one.why: one.words for one in find_unseen_office(archive) if one.words}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (files.build_docx(SECRET, style="<w:vanish/>"), "text that is set to be hidden"),
        (files.build_docx(SECRET, comment=True), "comments"),
        (files.build_pptx(SECRET, where="hidden"), "shapes that are hidden"),
        (files.build_pptx(SECRET, where="outside"), "shapes outside of their slides"),
        (files.build_xlsx(SECRET, where="comment"), "comments on cells"),
    ],
    ids=["vanish", "comment", "hidden-shape", "outside", "cell-comment"],
)
def test_hidden_parts_of_office_files_are_found(data: bytes, why: str) -> None:
    assert SECRET in unseen(data)[why]
    facts = asyncio.run(read_package(data))
    assert why in [one.why for one in facts.unseen]


def test_properties_of_office_files_are_told_apart_from_who_made_them() -> None:
    facts = asyncio.run(read_package(files.build_docx(SECRET, properties=True)))
    assert SECRET in [words for _, words in facts.properties]
    deck = asyncio.run(read_package(samples.deck()))
    assert (deck.signed, deck.properties) == (
        True,
        (("description", "generated using python-pptx"),),
    )


def test_deleted_text_with_its_traces_is_found() -> None:
    body = f"<w:p><w:del><w:r><w:delText>{SECRET}</w:delText></w:r></w:del></w:p>"
    assert unseen(samples.docx(body)) == {"text that was deleted with its traces kept": SECRET}


def test_hidden_rows_and_columns_are_counted() -> None:
    sheet = (
        '<worksheet><cols><col min="1" hidden="1"/></cols><row r="2" hidden="true"/></worksheet>'
    )
    found = unseen(samples.zipped({"xl/worksheets/sheet1.xml": sheet}))
    assert found == {"rows or columns that are hidden, each told as a word": "col row"}


def test_ordinary_office_files_hide_nothing() -> None:
    assert unseen(samples.docx(samples.paragraph("All of it is to be seen."))) == {}
    assert unseen(samples.calculated_workbook()) == {}
    assert unseen(samples.deck()) == {}


def test_comments_and_descriptions_of_markup_are_found() -> None:
    found = find_unseen_markup("<p>a</p><!-- one --><svg><desc>two <b>three</b></desc></svg>")
    assert [one.words for one in found] == ["one", "two  three"]


@pytest.mark.parametrize("where", ["white", "layer"])
def test_words_that_a_page_does_not_show_are_told_from_those_that_it_shows(
    where: str, jail: Jail
) -> None:
    page = asyncio.run(render_pdf(files.build_pdf(SECRET, where=where), jail, [1])).pages[0]  # type: ignore[arg-type]
    assert page.unseen == SECRET


def test_ordinary_pages_hide_nothing(jail: Jail) -> None:
    shown = samples.pdf([samples.words("Thin letters - i | l . , ' and more"), ""])
    pages = asyncio.run(render_pdf(shown, jail, [1, 2])).pages
    assert [page.unseen for page in pages] == ["", ""]


def test_words_on_a_dark_ground_and_behind_a_picture(jail: Jail) -> None:
    """White on black is seen; black under a black box is not."""
    dark = f"0 0 0 rg 0 200 400 100 re f 1 1 1 rg {samples.words('seen on black')}"
    below = f"0 0 0 rg {samples.words('covered words')} 0 200 400 100 re f"
    pages = asyncio.run(render_pdf(samples.pdf([dark, below]), jail, [1, 2])).pages
    assert [page.unseen for page in pages] == ["", "covered words"]


def test_properties_and_annotations_of_a_pdf_are_read(jail: Jail) -> None:
    about = asyncio.run(read_pdf(files.build_pdf(SECRET, where="properties"), jail, scans=0))
    assert (about.properties, about.remarks) == ((("Subject", SECRET),), ())
    noted = asyncio.run(read_pdf(files.build_pdf(SECRET, where="annotation"), jail, scans=0))
    assert (noted.properties, noted.remarks) == ((), (f"page 1: {SECRET}",))


def test_words_in_the_properties_of_pictures_are_read(jail: Jail) -> None:
    for png in (True, False):
        data = files.build_tagged_picture(SECRET, png=png)
        assert asyncio.run(read_image(data, jail)).words == SECRET
    stream = io.BytesIO()
    fields = Image.Exif()
    fields[0x9C9C] = SECRET.encode("utf-16-le")
    fields.get_ifd(0x8769)[0x9286] = b"ASCII\0\0\0" + b"and a comment"
    Image.new("RGB", (8, 8)).save(stream, "JPEG", exif=fields, comment=b"of the file")
    words = asyncio.run(read_image(stream.getvalue(), jail)).words
    assert (SECRET in words, "and a comment" in words, "of the file" in words) == (True, True, True)


def test_an_archives_comment_is_read() -> None:
    data = files.build_zip({"a.txt": "a"}, SECRET)
    assert asyncio.run(read_zip(data)).comment == SECRET
