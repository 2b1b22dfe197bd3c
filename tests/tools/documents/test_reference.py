import re
import xml.etree.ElementTree as ElementTree

import pytest

from gta_bench.tools.documents.markdown import build_reference_docx
from tests.tools.documents.making import parts

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def styles() -> ElementTree.Element:
    return ElementTree.fromstring(parts(build_reference_docx())["word/styles.xml"])


def style(name: str) -> ElementTree.Element:
    found = [node for node in styles().iter(f"{W}style") if node.get(f"{W}styleId") == name]
    assert len(found) == 1, name
    return found[0]


def test_it_is_the_same_every_time_and_every_part_is_xml() -> None:
    assert build_reference_docx() == build_reference_docx.__wrapped__()
    for name, data in parts(build_reference_docx()).items():
        assert ElementTree.fromstring(data) is not None, name


def test_every_part_is_announced() -> None:
    members = parts(build_reference_docx())
    announced = re.findall(rb'PartName="/([^"]+)"', members["[Content_Types].xml"])
    assert {name.decode() for name in announced} == {"word/document.xml", "word/styles.xml"}


@pytest.mark.parametrize(
    "name",
    [
        "Normal",
        "BodyText",
        "FirstParagraph",
        "Compact",
        "Title",
        *(f"Heading{level}" for level in range(1, 7)),
        "BlockText",
        "SourceCode",
        "VerbatimChar",
        "Hyperlink",
        "FootnoteText",
        "FootnoteReference",
        "Table",
        "ImageCaption",
        "TableCaption",
        "Definition",
        "DefinitionTerm",
    ],
)
def test_it_has_every_style_that_pandoc_uses(name: str) -> None:
    assert style(name).find(f"{W}name") is not None


def test_a_style_is_based_on_one_that_there_is() -> None:
    known = {node.get(f"{W}styleId") for node in styles().iter(f"{W}style")}
    bases = {node.get(f"{W}val") for node in styles().iter(f"{W}basedOn")}
    assert bases <= known


def test_headings_shrink_with_their_level_and_are_outlined() -> None:
    sizes = []
    for level in range(1, 7):
        heading = style(f"Heading{level}")
        size = heading.find(f"{W}rPr/{W}sz")
        outline = heading.find(f"{W}pPr/{W}outlineLvl")
        assert size is not None
        assert outline is not None
        assert outline.get(f"{W}val") == str(level - 1)
        sizes.append(int(size.get(f"{W}val", "0")))
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("side", ["top", "left", "bottom", "right", "insideH", "insideV"])
def test_tables_have_lines_on_every_side(side: str) -> None:
    line = style("Table").find(f"{W}tblPr/{W}tblBorders/{W}{side}")
    assert line is not None
    assert line.get(f"{W}val") == "single"


def test_latin_and_east_asian_fonts_are_named() -> None:
    fonts = styles().find(f"{W}docDefaults/{W}rPrDefault/{W}rPr/{W}rFonts")
    assert fonts is not None
    assert fonts.get(f"{W}ascii") == "Arial"
    assert fonts.get(f"{W}eastAsia") == "Microsoft YaHei"


def test_the_page_has_room_for_the_widest_picture() -> None:
    document = ElementTree.fromstring(parts(build_reference_docx())["word/document.xml"])
    page, margins = document.find(f".//{W}pgSz"), document.find(f".//{W}pgMar")
    assert page is not None
    assert margins is not None
    room = int(page.get(f"{W}w", "0")) - 2 * int(margins.get(f"{W}left", "0"))
    assert room / 1440 >= 6.0
